// An object of the program's, as the checker remembers it. Objects are shared pointers: one that
// was destroyed lives for as long as somebody remembers it, and reports can still name it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "verbs_shim/checker/report/place.h"

namespace rocemu::check {

class Model;
struct Context;

// A detector's memory of an object: detectors derive from this, and find theirs by
// Detector::note().
struct Note {
  virtual ~Note() = default;
};
inline constexpr unsigned kDetectorsMax = 48;

struct Object {
  Object(const Call& call, rocemu_check_kind of_kind, Context* of_context, void* at,
         uint32_t known_by);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // The name in reports: "QP 0x000011 (RC)".
  virtual std::string name() const;

  const rocemu_check_kind kind;
  Context* const context;  // outlives it; null for a context itself
  void* const handle;      // the program's pointer, which dangles once the object is destroyed
  const uint32_t number;   // QPN, SRQ number, descriptor of a channel, else the NIC's handle
  const PlaceId made_at;
  const pid_t made_by;
  const char* const made_with;  // the verb

  std::shared_ptr<Object> parent;           // its PD, or what it was made of; may be null
  std::atomic<PlaceId> gone_at = kNoPlace;  // where it was destroyed
  std::atomic<bool> gone = false;

  // One for each detector, which makes it when it first asks for it; owned by the object.
  std::array<std::atomic<Note*>, kDetectorsMax> notes = {};
};

const char* name_of(rocemu_check_kind kind);  // "QP"

}  // namespace rocemu::check
