// A fault that a row asks the NIC for, by the command as a person would, and takes back at its end.
#pragma once

#include <cstdint>
#include <string>

namespace rocemu::e2e {

class AskedFault {
 public:
  // Words as behind `rocemu fault`. Throws Failure when the NIC refuses.
  explicit AskedFault(const std::string& words);
  ~AskedFault();
  AskedFault(const AskedFault&) = delete;
  AskedFault& operator=(const AskedFault&) = delete;

  void clear();
  // These say how often it has struck, and whether it is "waiting", "active" or "over"; of the
  // faults of a family the first one.
  uint64_t strikes() const;
  std::string state() const;

 private:
  std::string listed(const std::string& key) const;
  std::string ids_;  // separated by commas; empty once cleared
};

}  // namespace rocemu::e2e
