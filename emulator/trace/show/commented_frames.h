// Frames as they pass, each with what the NIC knows of it as a comment, as the blocks of a pcapng
// file. The frames are a capture's, and what is known comes as the records of a trace.
//
// What becomes of a frame is known after it has passed, so frames are held back for a while; their
// order stays. What comes to be known later than that is not in the file.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/trace/format/names.h"
#include "emulator/trace/format/record.h"
#include "emulator/wire/packet.h"

namespace rocemu::trace {

class CommentedFrames {
 public:
  // kNoDevice: nobody here has the address.
  using DeviceOf = std::function<uint16_t(const wire::Gid&)>;
  using Write = std::function<void(std::string_view block)>;

  static constexpr uint64_t kHoldNs = 200'000'000;
  // Beyond these the oldest frames are written before their time.
  static constexpr size_t kMaxHeldBytes = size_t{32} << 20;

  // Writes the section's head. `creator`: the program that writes the file.
  CommentedFrames(std::string_view creator, DeviceOf device_of, Write write);

  // A record of Kind::name, or any other: in the order in which their device makes them, and those
  // of a packet that is sent before its frame passes.
  void take_record(const Record& record);
  // A frame that passes now, by the clock that records have.
  void take_frame(std::span<const std::byte> frame, uint64_t unix_ns, uint64_t now_ns);

  // Writes the frames that have been held for long enough, or all.
  void write_due(uint64_t now_ns);
  void write_all();
  bool is_empty() const { return held_.empty(); }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  // Notes of packets whose frames do not come, lost on their way out, would pile up without it.
  static constexpr size_t kMaxNotes = 65536;

  struct Held {
    std::vector<std::byte> bytes;
    uint64_t unix_ns = 0;
    uint64_t ns = 0;
    uint16_t from = kNoDevice;
    uint16_t to = kNoDevice;
    bool has_key = false;
    bool has_come = false;  // to whom it was sent, or it was lost
    uint8_t opcode = 0;
    uint64_t key = 0;
    uint64_t before = kNone;  // the frame held before it that has the same key
    std::string comment;
  };
  struct Qp {
    uint16_t program = kNoProgram;
    bool introduced = false;
    std::map<Kind, Record> last;  // of the events that make packets be sent again, and refusals
    uint64_t current = kNone;     // the frame that it looks at
    size_t refusal_at = 0;        // where the comment says how it was refused
  };

  static uint64_t key_of(uint32_t qpn, uint32_t psn) { return uint64_t{qpn} << 24 | psn; }
  static uint64_t note_key(uint32_t qpn, const Record& record) {
    return key_of(qpn, record.psn) << 8 | record.opcode;
  }
  Qp& qp_of(const Record& record) { return qps_[{record.device, record.qpn}]; }
  Held* at(uint64_t number);
  uint64_t find(uint32_t qpn, const Record& record, uint16_t from, uint16_t to);
  void say(uint64_t number, const std::string& text);
  void on_sent(const Record& record);
  void on_lost(const Record& record);
  void on_received(const Record& record);
  void on_refused(const Record& record);
  void on_answered(const Record& record);
  void remark(const Record& record, const std::string& text);
  std::string introduction(const Record& record);
  std::string sent_text(const Record& record);
  uint32_t interface_of(uint16_t device);
  void write_first();

  const DeviceOf device_of_;
  const Write write_;
  Names names_;
  std::deque<Held> held_;
  uint64_t first_ = 0;  // the number of the first of them
  size_t held_bytes_ = 0;
  std::unordered_map<uint64_t, uint64_t> last_of_key_;
  std::unordered_map<uint64_t, std::string> notes_;  // on frames that are to come
  std::map<std::pair<uint16_t, uint32_t>, Qp> qps_;
  std::map<uint16_t, uint32_t> interfaces_;
};

}  // namespace rocemu::trace
