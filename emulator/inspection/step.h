// The time of an inspection: how much has happened before. Requests that are taken, accesses that
// are made and requests that are over each make one step, so that of two of them one is the
// earlier.
#pragma once

#include <cstdint>

namespace rocemu::inspection {

using Step = uint64_t;

class Clock {
 public:
  Step next() { return ++now_; }

 private:
  Step now_ = 0;
};

}  // namespace rocemu::inspection
