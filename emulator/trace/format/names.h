// Texts for what records have as numbers: those of the format itself, and those of a file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// "packet sent", "early probe". Empty for a number that is none.
std::string_view to_text(Kind kind);
std::string_view to_text(Cause cause);

struct Name {
  std::string text;
  uint32_t detail = 0;
};

// The names of one file.
class Names {
 public:
  static constexpr size_t kMaxNames = 65536;

  // False: the record is none of the format's, or goes on with a text that has not begun. Control
  // characters and what is no ASCII become '?'.
  bool add(const NameRecord& record);

  // Returns what the file calls `number`; where it calls it nothing, "device 3", "rule 7".
  std::string text(Table table, uint16_t number) const;
  // Null when the file does not name it.
  const Name* find(Table table, uint16_t number) const;
  // In the order of their numbers.
  const std::map<uint16_t, Name>& all(Table table) const;
  std::span<const std::string> addresses(uint16_t device) const;

 private:
  static constexpr size_t kTables = static_cast<size_t>(Table::counter) + 1;

  size_t count_ = 0;
  std::map<uint16_t, Name> tables_[kTables];
  std::map<uint16_t, std::vector<std::string>> addresses_;
};

// The records of one name: as many as it needs. What is beyond their bound is cut off.
std::vector<Record> name_records(Table table, uint16_t number, std::string_view text,
                                 uint32_t detail = 0, uint64_t time_ns = 0);

}  // namespace rocemu::trace
