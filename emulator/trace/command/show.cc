#include "emulator/trace/command/show.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/trace/format/reader.h"
#include "emulator/trace/show/ladder.h"
#include "emulator/trace/show/pcapng.h"
#include "emulator/trace/show/perfetto.h"
#include "emulator/trace/show/story.h"
#include "emulator/trace/show/text.h"
#include "emulator/trace/show/vocabulary.h"
#include "emulator/trace/show/why.h"

namespace rocemu::trace {
namespace {

using cli::Failure;

// What is made of a trace names its records by 32 bits.
constexpr uint64_t kMaxRecords = uint64_t{1} << 26;

[[noreturn]] void fail_usage(const std::string& what) {
  throw Failure(what + "; see: rocemu trace --help", cli::kUsage);
}

// Decimal, or hexadecimal behind 0x.
uint32_t qpn_of(const std::string& text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const char* const begin = text.data() + (is_hexadecimal ? 2 : 0);
  const char* const end = text.data() + text.size();
  uint32_t qpn = 0;
  const auto read = std::from_chars(begin, end, qpn, is_hexadecimal ? 16 : 10);
  if (read.ec != std::errc{} || read.ptr != end || qpn == 0 || qpn > 0xffffff)
    fail_usage("--qp: '" + text + "' is no QP's number");
  return qpn;
}

// One of the formats that a trace can be shown in.
struct Format {
  const char* name;
  void (*show)(const Trace& trace, const Selection& selection, const ShowOptions& options,
               std::ostream& out);
};

constexpr Format kFormats[] = {
    {"text", [](const Trace& trace, const Selection& selection, const ShowOptions&,
                std::ostream& out) { show_text(trace, selection, out); }},
    {"ladder",
     [](const Trace& trace, const Selection& selection, const ShowOptions& options,
        std::ostream& out) {
       LadderOptions ladder;
       ladder.title = options.file.filename().string();
       ladder.selection = selection;
       show_ladder(tell(trace), ladder, out);
     }},
    {"perfetto", [](const Trace& trace, const Selection& selection, const ShowOptions&,
                    std::ostream& out) { show_perfetto(tell(trace), selection, out); }},
    {"pcapng", [](const Trace& trace, const Selection& selection, const ShowOptions&,
                  std::ostream& out) { show_pcapng(tell(trace), selection, out); }},
};

const Format& format_named(const std::string& name) {
  const auto* const found = std::ranges::find(kFormats, name, &Format::name);
  if (found != std::end(kFormats)) return *found;
  std::string known;
  for (const Format& format : kFormats)
    known += std::string(known.empty() ? "" : ", ") + format.name;
  fail_usage("--as: there is no format '" + name + "', but " + known);
}

Trace read(const std::filesystem::path& file) {
  try {
    return load(file, kMaxRecords);
  } catch (const TraceError& error) {
    throw Failure(error.what());
  }
}

[[noreturn]] void fail_unknown(const ShowOptions& options, const std::string& what,
                               const std::map<uint16_t, Name>& known) {
  std::string text = options.file.string() + ": has no " + what;
  const char* between = ", but ";
  for (const auto& [number, name] : known) {
    text += between + name.text;
    between = ", ";
  }
  throw Failure(text);
}

// The numbers that the trace has for what is named. A program may have several, as it may have run
// several times.
Selection select(const Trace& trace, const ShowOptions& options) {
  Selection selection{.qpn = options.qpn};
  const auto& devices = trace.names.all(Table::device);
  for (const auto& [number, name] : devices)
    if (name.text == options.device) selection.device = number;
  if (!options.device.empty() && selection.device == kNoDevice)
    fail_unknown(options, "device '" + options.device + "'", devices);
  const auto& programs = trace.names.all(Table::program);
  if (options.program.empty()) return selection;
  for (const auto& [number, name] : programs)
    if (name.text == options.program || std::to_string(name.detail) == options.program)
      selection.programs.push_back(number);
  if (selection.programs.empty())
    fail_unknown(options, "program '" + options.program + "'", programs);
  return selection;
}

void write_to(const std::filesystem::path& file, const Trace& trace, const ShowOptions& options) {
  const Selection selection = select(trace, options);
  std::ofstream out;
  errno = 0;
  if (!file.empty()) out.open(file, std::ios::binary);
  std::ostream& stream = file.empty() ? std::cout : out;
  if (stream) format_named(options.format).show(trace, selection, options, stream);
  stream.flush();
  if (!stream)
    throw Failure("can't write " + (file.empty() ? "the output" : file.string()) + ": " +
                  std::strerror(errno != 0 ? errno : EIO));
}

}  // namespace

ShowOptions parse_show(std::span<const std::string> words, bool is_why) {
  ShowOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    if (!option.starts_with("--")) {
      if (!options.file.empty()) fail_usage("'" + words[i] + "' is one word too many");
      options.file = words[i];
      continue;
    }
    const auto value = [&] {
      if (equals != std::string::npos) return words[i].substr(equals + 1);
      if (++i == words.size()) fail_usage(option + " wants a value");
      return words[i];
    };
    if (option == "--qp") {
      options.qpn = qpn_of(value());
    } else if (option == "--device") {
      options.device = value();
    } else if (option == "--program") {
      options.program = value();
    } else if (!is_why && option == "--as") {
      options.format = format_named(value()).name;
    } else if (!is_why && option == "--out") {
      options.out = value();
    } else {
      fail_usage("'" + option + "' is no option of trace " + (is_why ? "why" : "show"));
    }
  }
  if (options.file.empty()) fail_usage("which file?");
  return options;
}

int show(std::span<const std::string> words) {
  const ShowOptions options = parse_show(words);
  write_to(options.out, read(options.file), options);
  return cli::kSuccess;
}

int why(std::span<const std::string> words) {
  const ShowOptions options = parse_show(words, true);
  const Trace trace = read(options.file);
  const Selection selection = select(trace, options);
  if (tell_why(tell(trace), selection, std::cout)) return cli::kSuccess;
  throw Failure(options.file.string() + ": has nothing of " +
                (options.qpn == 0 ? "any QP" : "QP " + hexadecimal(options.qpn)) +
                (options.device.empty() ? "" : " of " + options.device) +
                (options.program.empty() ? "" : " of " + options.program));
}

}  // namespace rocemu::trace
