// The program of a script, which calls verbs: the common part of that on a device of the simulator
// and that over libibverbs. It reads the arguments of calls, with their defaults, and says what
// came of them. Each kind of program has a function for each verb, which gets names and numbers,
// and answers an errno value or 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "emulator/script/language/script.h"
#include "emulator/script/play/objects.h"
#include "emulator/script/play/program.h"
#include "emulator/script/play/program_memory.h"
#include "emulator/script/play/qp_settings.h"

namespace rocemu::script {

inline constexpr uint32_t kDefaultDepth = 64;  // for CQs and for queues of requests
inline constexpr uint32_t kInlineBytes = 64;
inline constexpr const char* kDefaultCq = "cq";

// Names are those of the script; an empty one: none.
struct QpRequest {
  std::string name;
  std::string type;  // a word of kQpTypes
  std::string send_cq;
  std::string receive_cq;
  std::string srq;
  uint32_t send_wr = 0;
  uint32_t receive_wr = 0;
  bool signals_all = false;
};

struct QpLook {
  uint32_t state = 0;  // base/verbs/numbers.h
  bool draining = false;
  uint8_t timeout = 0;
  uint8_t retry_cnt = 0;
  uint8_t rnr_retry = 0;
  uint8_t min_rnr_timer = 0;
};

struct SrqRequest {
  std::string name;
  bool xrc = false;  // with the domain that the program has, and the CQ kDefaultCq
  uint32_t max_wr = 0;
};

struct RegionRequest {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t access = 0;
};

struct RegionKeys {
  uint32_t rkey = 0;
  uint32_t lkey = 0;
};

struct Element {
  uint64_t address = 0;
  uint32_t bytes = 0;
  uint32_t lkey = 0;
};

struct ReceiveRequest {
  uint64_t wr_id = 0;
  std::optional<Element> element;
};

// The window that bind_mw binds, and the region that it binds it to.
struct Binding {
  std::string window;
  std::string region;
  uint32_t access = 0;
};

struct SendRequest {
  uint64_t wr_id = 0;
  uint32_t opcode = 0;  // its number in kSendOpcodes
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  bool inlined = false;
  std::optional<Element> element;  // bind_mw: the memory that is bound
  uint64_t remote_address = 0;
  uint32_t key = 0;        // the key that is invalidated, or the rkey
  uint32_t immediate = 0;  // in network order
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  uint32_t srqn = 0;     // XRC
  uint32_t to_qpn = 0;   // UD
  uint32_t to_qkey = 0;  // UD
  Binding binding;
};

struct ProgramEvent {
  uint32_t type = 0;   // enum ibv_event_type
  std::string object;  // "qp" or "srq"
  std::string name;
};

class VerbsProgram {
 public:
  virtual ~VerbsProgram() = default;
  VerbsProgram(const VerbsProgram&) = delete;
  VerbsProgram& operator=(const VerbsProgram&) = delete;

  // Never waits. Throws Impossible for what names no object.
  Fields call(const Call& call);

 protected:
  explicit VerbsProgram(std::optional<uint64_t> memory_base = std::nullopt)
      : memory_(memory_base) {}

  ProgramMemory& memory() { return memory_; }
  // The type of a QP that was made: a word of kQpTypes.
  const std::string& type_of(const std::string& qp) const;
  std::string name_of(uint32_t qpn) const { return objects_.name_of(wire::Qpn{qpn}); }

 private:
  using Handler = Fields (VerbsProgram::*)(const Fields&);

  virtual int make_cq(const std::string& name, uint32_t depth) = 0;
  virtual int make_qp(const QpRequest& request, uint32_t& qpn) = 0;
  virtual int change_qp(const std::string& qp, const QpSettings& settings) = 0;
  virtual QpLook look_at(const std::string& qp) = 0;
  virtual int drop_qp(const std::string& qp) = 0;
  // `number`: of one for XRC, else 0.
  virtual int make_srq(const SrqRequest& request, uint32_t& number) = 0;
  virtual int limit_srq(const std::string& srq, uint32_t limit) = 0;
  virtual int make_region(const RegionRequest& request, RegionKeys& keys) = 0;
  virtual int drop_region(const std::string& region) = 0;
  virtual int make_window(const std::string& name, bool of_type_1, uint32_t& rkey) = 0;
  virtual int drop_window(const std::string& window) = 0;
  virtual int receive(const std::string& qp, const ReceiveRequest& request) = 0;
  virtual int receive_shared(const std::string& srq, const ReceiveRequest& request) = 0;
  virtual int send(const std::string& qp, const SendRequest& request) = 0;
  virtual std::optional<CompletionText> poll(const std::string& cq) = 0;
  virtual int arm(const std::string& cq, bool solicited_only) = 0;
  virtual bool take_cq_event(const std::string& cq) = 0;
  virtual std::optional<ProgramEvent> take_event() = 0;

  static const std::map<std::string, Handler>& handlers();
  Fields create_cq(const Fields& arguments);
  Fields create_qp(const Fields& arguments);
  Fields modify_qp(const Fields& arguments);
  Fields connect(const Fields& arguments);
  Fields query_qp(const Fields& arguments);
  Fields destroy_qp(const Fields& arguments);
  Fields reg_mr(const Fields& arguments);
  Fields dereg_mr(const Fields& arguments);
  Fields alloc_mw(const Fields& arguments);
  Fields dealloc_mw(const Fields& arguments);
  Fields create_srq(const Fields& arguments);
  Fields modify_srq(const Fields& arguments);
  Fields post_srq_recv(const Fields& arguments);
  Fields post_recv(const Fields& arguments);
  Fields post_send(const Fields& arguments);
  Fields poll_cq(const Fields& arguments);
  Fields req_notify_cq(const Fields& arguments);
  Fields get_cq_event(const Fields& arguments);
  Fields get_async_event(const Fields& arguments);
  Fields read_memory(const Fields& arguments);
  Fields set_memory(const Fields& arguments);

  int change(const Fields& arguments, const std::string& to);
  std::optional<Element> element(const Fields& arguments) const;
  uint32_t key(const Fields& arguments, const char* name) const;
  ReceiveRequest receive_request(const Fields& arguments) const;
  SendRequest send_request(const Fields& arguments) const;

  Objects objects_;
  std::map<std::string, std::string> types_;  // by QP
  ProgramMemory memory_;
};

// Returns the object that a program has under a name. Throws Impossible.
template <class Map>
auto& named(Map& made, const std::string& name, const char* kind) {
  const auto found = made.find(name);
  if (found == made.end()) throw Impossible(std::string("there is no ") + kind + " '" + name + "'");
  return found->second;
}

}  // namespace rocemu::script
