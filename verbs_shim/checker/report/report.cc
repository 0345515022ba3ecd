#include "verbs_shim/checker/report/report.h"

#include <cstdio>

namespace rocemu::check {
namespace {

constexpr size_t kWidth = 100;

bool is_ours(const SourcePlace& place) {
  return place.module.find("/librocemu-") != std::string::npos;
}

// Wrapped at blanks, each line after the first under the text of the first.
std::string paragraph(std::string_view title, std::string_view text) {
  const std::string indent(4, ' ');
  std::string result = "  " + std::string(title);
  size_t column = result.size();
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column + word.size() + 1 > kWidth) {
      result += "\n" + indent;
      column = indent.size();
    } else if (column > 2) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + "\n";
}

std::string as_text(const Backtrace& backtrace) {
  std::string text = "  " + backtrace.label;
  if (backtrace.thread != 0) text += ", thread " + std::to_string(backtrace.thread);
  text += ":\n";
  for (size_t i = 0; i < backtrace.frames.size(); ++i) {
    text += "    #" + std::to_string(i) + " " + as_text(backtrace.frames[i]) + "\n";
  }
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // Bytes that are not ASCII may be no UTF-8 either: they are shown as what they are in
      // Latin-1.
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", unsigned{byte});
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string as_json(const SourcePlace& place) {
  std::string text = "{\"function\":" + quoted(place.function);
  if (!place.file.empty()) {
    text += ",\"file\":" + quoted(place.file) + ",\"line\":" + std::to_string(place.line);
  }
  return text + ",\"module\":" + quoted(place.module) +
         ",\"offset\":" + std::to_string(place.module_offset) + "}";
}

std::string as_json(const Backtrace& backtrace) {
  std::string text = "{\"label\":" + quoted(backtrace.label);
  if (backtrace.thread != 0) text += ",\"thread\":" + std::to_string(backtrace.thread);
  text += ",\"frames\":[";
  for (size_t i = 0; i < backtrace.frames.size(); ++i) {
    if (i > 0) text += ',';
    text += as_json(backtrace.frames[i]);
  }
  return text + "]}";
}

}  // namespace

std::vector<SourcePlace> program_frames(PlaceId place) {
  std::vector<SourcePlace> frames;
  for (const uintptr_t address : frames_of(place)) {
    for (SourcePlace& frame : symbols_of(address)) {
      if (!is_ours(frame)) frames.push_back(std::move(frame));
    }
  }
  return frames;
}

std::string as_text(const Report& report) {
  const std::string process = std::to_string(report.process);
  std::string text = "==" + process + "== rocemu check: " + report.name + "\n";
  text += paragraph("", report.finding.sentence);
  for (const Backtrace& backtrace : report.backtraces) text += as_text(backtrace);
  if (!report.finding.why.empty()) text += paragraph("Why:", report.finding.why);
  if (!report.finding.advice.empty()) text += paragraph("To do:", report.finding.advice);
  return text + "==" + process + "==\n";
}

std::string as_json_line(const Report& report) {
  std::string text = "{\"name\":" + quoted(report.name);
  text += ",\"sentence\":" + quoted(report.finding.sentence);
  text += ",\"why\":" + quoted(report.finding.why);
  text += ",\"advice\":" + quoted(report.finding.advice);
  text += ",\"verb\":" + quoted(report.verb);
  text += ",\"program\":" + quoted(report.program);
  text += ",\"process\":" + std::to_string(report.process);
  text += ",\"thread\":" + std::to_string(report.thread);
  text += ",\"objects\":[";
  for (size_t i = 0; i < report.finding.objects.size(); ++i) {
    if (i > 0) text += ',';
    text += quoted(report.finding.objects[i]);
  }
  text += "],\"backtraces\":[";
  for (size_t i = 0; i < report.backtraces.size(); ++i) {
    if (i > 0) text += ',';
    text += as_json(report.backtraces[i]);
  }
  return text + "]}\n";
}

}  // namespace rocemu::check
