// A control connection to rocemud (verbs_shim/abi/control.h): status, links and shutdown.
// Every call waits at most a few seconds and throws Failure when the daemon does not answer,
// answers something else, or has another version of the ABI.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {

using Json = nlohmann::ordered_json;

// The NIC has answered, and has done nothing.
class Refusal : public Failure {
 public:
  using Failure::Failure;
};

class ControlClient {
 public:
  // Connects and says HELLO without opening a device.
  explicit ControlClient(const std::filesystem::path& socket_path);

  // Both return what control.h says: an object and an array.
  Json status();
  Json links();
  std::string metrics();  // Prometheus' text format

  // `text` is as impairment::parse_assignment() takes it. Throws Failure (usage) when the NIC has
  // no such device.
  void set_link(const std::string& text);

  // faults() returns what fault.h says, an array; add_fault() the ids of the faults that were
  // added. `text` is as fault::parse_faults() takes it; clear_fault(0) clears all. They throw
  // Failure (usage) when there is no such device or id.
  Json faults();
  std::vector<std::uint32_t> add_fault(const std::string& text);
  void clear_fault(std::uint32_t id);

  // Traces go to `file`, empty and open for writing. `filter` is as verbs_shim/abi/trace.h has it;
  // max_bytes 0: the NIC's own bound. Both throw Failure: it is traced already, or it is not.
  struct TraceEnd {
    std::uint64_t written_bytes = 0;
    std::uint64_t lost_records = 0;
    int write_error = 0;  // errno; 0: none
  };
  void start_trace(int file, const std::string& filter, std::uint64_t max_bytes);
  TraceEnd stop_trace();

  // Returns when the daemon has agreed; it ends a moment later.
  void shutdown();

 private:
  // `reply_bytes` is the size of `reply` and of the only reply that is right. A refusal throws, but
  // with a status in `expected` it is the reply.
  UniqueFd request(const void* message, std::size_t message_bytes, void* reply,
                   std::size_t reply_bytes, std::initializer_list<int> expected = {},
                   int file = -1);
  std::string text_request(std::uint32_t op);
  Json json_request(std::uint32_t op, Json::value_t type);
  UniqueFd simple_request(std::uint32_t op);
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path socket_path_;
  UniqueFd socket_;
  std::uint64_t cookie_ = 0;
};

}  // namespace rocemu::cli
