#include "emulator/cli/status_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace rocemu::cli {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f", value.get<double>());
  return text;
}

bool is_zero(const Json& value) {
  return value.is_null() || (value.is_number() && value.get<double>() == 0);
}

bool is_plain(const Json& value) { return !value.is_object() && !value.is_array(); }

enum class Zeros { kShow, kHide };

// "key value, key value" of the plain members, `except` left out.
std::string plain_members(const Json& object, std::string_view except, Zeros zeros = Zeros::kShow) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    if (!is_plain(value) || key == except) continue;
    if (zeros == Zeros::kHide && is_zero(value)) continue;
    if (!text.empty()) text += ", ";
    text += key + " " + value_text(value);
  }
  return text;
}

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += row[i] + std::string(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() ? *found : kNothing;
}

std::string object_table(const std::vector<const Json*>& devices) {
  Row header = {"DEVICE"};
  for (const Json* device : devices) {
    for (const auto& [kind, count] : member(*device, "objects").items()) {
      if (is_plain(count) && std::ranges::find(header, kind) == header.end()) {
        header.push_back(kind);
      }
    }
  }
  if (header.size() == 1) return "";
  std::vector<Row> rows = {header};
  for (const Json* device : devices) {
    Row row = {value_text(member(*device, "name"))};
    for (std::size_t i = 1; i < header.size(); ++i) {
      const Json& count = member(member(*device, "objects"), header[i].c_str());
      row.push_back(count.is_null() ? "-" : value_text(count));
    }
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string gid_table(const std::vector<const Json*>& devices) {
  std::vector<Row> rows = {{"DEVICE", "INDEX", "GID"}};
  for (const Json* device : devices) {
    std::size_t index = 0;
    for (const Json& gid : member(*device, "gids")) {
      Row row = {value_text(member(*device, "name")), std::to_string(index)};
      if (!gid.is_object()) {
        row.push_back(value_text(gid));
      } else {
        if (const Json& given = member(gid, "index"); !given.is_null()) row[1] = value_text(given);
        row.push_back(value_text(member(gid, "gid")));
        for (const auto& [key, value] : gid.items()) {
          if (is_plain(value) && key != "index" && key != "gid") row.push_back(value_text(value));
        }
      }
      rows.push_back(std::move(row));
      ++index;
    }
  }
  return rows.size() > 1 ? table(rows) : "";
}

// Groups of counters: what is not zero in them.
std::string counter_table(const std::vector<const Json*>& devices) {
  std::vector<Row> rows;
  for (const Json* device : devices) {
    for (const auto& [key, value] : device->items()) {
      if (!value.is_object() || key == "objects") continue;
      const std::string counts = plain_members(value, "", Zeros::kHide);
      if (!counts.empty()) rows.push_back({value_text(member(*device, "name")), key, counts});
    }
  }
  return table(rows);
}

// The counts at the ports of a network of switches that are not zero.
std::string network_table(const Json& ports) {
  std::vector<Row> rows = {{"NETWORK PORT"}};
  for (const Json& port : ports) {
    if (!port.is_object()) continue;
    std::string counts = plain_members(port, "port", Zeros::kHide);
    for (const char* group : {"queue_max_bytes", "lost"}) {
      const std::string some = plain_members(member(port, group), "", Zeros::kHide);
      if (!some.empty())
        counts += std::string(counts.empty() ? "" : ", ") + group + " (" + some + ")";
    }
    rows.push_back({value_text(member(port, "port")), counts});
  }
  return rows.size() > 1 ? table(rows) : "";
}

}  // namespace

std::string status_text(const Json& status) {
  std::vector<std::string> parts;
  parts.push_back(plain_members(status, "") + "\n");
  for (const auto& [key, value] : status.items()) {
    if (value.is_object()) parts[0] += key + ": " + plain_members(value, "", Zeros::kHide) + "\n";
  }
  std::vector<const Json*> devices;
  std::vector<Row> rows;
  for (const Json& device : member(status, "devices")) {
    if (!device.is_object()) continue;
    devices.push_back(&device);
    rows.push_back({value_text(member(device, "name")), plain_members(device, "name")});
  }
  parts.push_back(table(rows));
  parts.push_back(gid_table(devices));
  parts.push_back(object_table(devices));
  parts.push_back(counter_table(devices));
  parts.push_back(network_table(member(status, "network")));

  std::string text;
  for (const std::string& part : parts) {
    if (part.find_first_not_of('\n') == std::string::npos) continue;
    if (!text.empty()) text += '\n';
    text += part;
  }
  return text;
}

std::string links_text(const Json& links) {
  std::vector<Row> rows = {{"DEVICE", "DIR", "IMPAIRMENTS", ""}};
  for (const Json& link : links) {
    Json counts = link;
    for (const char* name : {"device", "direction", "spec"}) counts.erase(name);
    rows.push_back({value_text(member(link, "device")), value_text(member(link, "direction")),
                    value_text(member(link, "spec")), plain_members(counts, "", Zeros::kHide)});
  }
  return table(rows);
}

std::string faults_text(const Json& faults) {
  if (faults.empty()) return "no faults\n";
  std::vector<Row> rows = {{"ID", "STATE", "STRIKES", "FAULT", ""}};
  for (const Json& fault : faults) {
    const Json& quirks = member(fault, "quirks");
    rows.push_back({value_text(member(fault, "id")), value_text(member(fault, "state")),
                    value_text(member(fault, "strikes")), value_text(member(fault, "text")),
                    quirks.is_null() ? "" : "(quirk of " + value_text(quirks) + ")"});
  }
  return table(rows);
}

}  // namespace rocemu::cli
