#include "emulator/daemon/configuration_file.h"

#include <string>
#include <utility>

#include "emulator/fault/grammar.h"

namespace rocemu::daemon {
namespace {

constexpr char kFault[] = "fault";

bool of_faults(const CLI::ConfigItem& item) {
  return item.parents.size() == 1 && item.parents.front() == kFault;
}

// CLI11 marks where a section begins and ends by items with these names.
bool is_mark(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigurationFile::from_config(std::istream& input) const {
  std::vector<CLI::ConfigItem> read;
  CLI::ConfigItem faults;
  faults.name = kFault;
  std::vector<std::pair<std::string, std::string>> table;
  for (CLI::ConfigItem& item : CLI::ConfigTOML::from_config(input)) {
    if (of_faults(item) && !is_mark(item)) {
      table.emplace_back(item.name, joined(item.inputs));
      continue;
    }
    if (!table.empty()) faults.inputs.push_back(fault::text_of_table(std::exchange(table, {})));
    const bool is_list = item.parents.empty() && item.name == kFault;
    if (is_list) faults.inputs.insert(faults.inputs.end(), item.inputs.begin(), item.inputs.end());
    if (!of_faults(item) && !is_list) read.push_back(std::move(item));
  }
  if (!table.empty()) faults.inputs.push_back(fault::text_of_table(table));
  if (!faults.inputs.empty()) read.push_back(std::move(faults));
  return read;
}

}  // namespace rocemu::daemon
