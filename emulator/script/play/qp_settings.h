// The attributes of ibv_modify_qp(3) as a script gives them, with defaults for those that a change
// of states needs.
#pragma once

#include <cstdint>

#include "emulator/script/language/script.h"
#include "emulator/script/play/objects.h"

namespace rocemu::script {

struct QpSettings {
  uint32_t mask = 0;  // base/verbs/numbers.h, qp_attribute
  uint32_t state = 0;
  uint32_t access = 0;
  uint32_t qkey = kDefaultQkey;
  uint32_t path_mtu = 3;  // enum ibv_mtu
  uint32_t rq_psn = kDefaultRqPsn;
  uint32_t sq_psn = kDefaultSqPsn;
  uint32_t dest_qpn = 0;
  uint8_t max_rd_atomic = 4;
  uint8_t max_dest_rd_atomic = 4;
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t timeout = 0;        // none
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  bool sqd_event = false;
};

// The settings that a call of modify_qp or connect asks for to get to `state`, which is "" to
// change attributes alone. Where `from` is the state before it, attributes that this step needs
// have defaults.
QpSettings settings_of(const Fields& arguments, const std::string& type, const std::string& state,
                       const std::string& from, wire::Qpn wire_qpn);

// "remote_write|remote_read" as bits of base/verbs/numbers.h.
uint32_t access_bits(const std::string& flags);
// The number of a word in a list of the vocabulary, from 0.
uint32_t index_of(std::string_view words, std::string_view word);
std::string_view word_at(std::string_view words, uint32_t index);

}  // namespace rocemu::script
