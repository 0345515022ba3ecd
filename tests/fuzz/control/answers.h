// Answers of a session, held against the model of what its program has made.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "tests/fuzz/control/model.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::fuzz {

struct Answer {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> fds;

  template <class Body>
  Body as() const {
    Body body{};
    std::memcpy(&body, bytes.data(), std::min(bytes.size(), sizeof(body)));
    return body;
  }
  rocemu_header header() const { return as<rocemu_header>(); }
};

// Memory that a descriptor of an answer stands for, as the program maps it.
Mapping map(int fd, size_t size_bytes);

// `request` is well formed, and an operation of contexts. The model becomes what the answer says.
void check_answer(Model& model, std::span<const std::byte> request, const Answer& answer);

// A request of the form `Message`, and what came of it.
template <class Message>
struct Exchange {
  Message request;
  const Answer& answer;

  int status() const { return answer.header().status; }
  template <class Body>
  Body reply() const {
    return answer.as<Body>();
  }
};

// Check is what is checked after an operation.
struct Check {
  uint32_t op = 0;
  void (*run)(Model& model, std::span<const std::byte> request, const Answer& answer) = nullptr;
};

template <auto kCheck>
struct CheckOf;
template <class Message, void (*kCheck)(Model&, const Exchange<Message>&)>
struct CheckOf<kCheck> {
  static void run(Model& model, std::span<const std::byte> request, const Answer& answer) {
    Exchange<Message> exchange{{}, answer};
    std::memcpy(&exchange.request, request.data(), sizeof(Message));
    kCheck(model, exchange);
  }
};

std::span<const Check> memory_checks();      // answers_memory.cc
std::span<const Check> service_checks();     // answers_services.cc
std::span<const Check> flow_checks();        // answers_flows.cc
std::span<const Check> inspection_checks();  // answers_inspection.cc

// True when `status` may be the answer about an object that the request asks something of that may
// be wrong, which can be looked at first.
template <class Objects>
bool may_be_refused(const Objects& objects, uint32_t handle, int status) {
  const bool exists = objects.contains(handle);
  return status == EINVAL || status == (exists ? 0 : ENOENT);
}

// Returns what destroying something that may be in use is to come to. It is in one of the model's
// maps whose objects count their users.
template <class Objects>
int expected_outcome(const Objects& objects, uint32_t handle) {
  const auto found = objects.find(handle);
  if (found == objects.end()) return ENOENT;
  return found->second.users > 0 ? EBUSY : 0;
}

}  // namespace rocemu::fuzz
