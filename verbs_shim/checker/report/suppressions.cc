#include "verbs_shim/checker/report/suppressions.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "verbs_shim/abi/check_names.h"

namespace rocemu::check {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// The whole of `text`, with * for anything.
bool matches_whole(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos;
  size_t resume = 0;
  size_t p = 0;
  size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Returns the mistake in the line, or nothing.
std::string parse_line(std::string_view line, std::string& name, std::string& pattern) {
  const size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == line.size())
    return "a suppression is NAME:PATTERN, like leaks:my_cache_*";
  name = line.substr(0, colon);
  pattern = line.substr(colon + 1);
  if (name == "*" || is_check_name(name)) return {};
  return "there is no check '" + name + "'";
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  std::string whole(pattern);
  if (whole.starts_with('^')) {
    whole.erase(0, 1);
  } else {
    whole.insert(0, "*");
  }
  if (whole.ends_with('$')) {
    whole.pop_back();
  } else {
    whole += '*';
  }
  return matches_whole(whole, text);
}

std::string Suppressions::parse(std::string_view text) {
  std::string problem;
  for (unsigned number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Line parsed;
    const std::string wrong = parse_line(line, parsed.name, parsed.pattern);
    if (wrong.empty()) {
      lines_.push_back(std::move(parsed));
    } else if (problem.empty()) {
      problem = std::to_string(number) + ": " + wrong;
    }
  }
  return problem;
}

std::string Suppressions::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "can't read the suppressions in " + path + ": " + strerror(errno);
  std::stringstream text;
  text << file.rdbuf();
  const std::string problem = parse(text.str());
  return problem.empty() ? problem : path + ":" + problem;
}

bool Suppressions::covers(std::string_view name, const std::vector<SourcePlace>& backtrace) const {
  return std::ranges::any_of(lines_, [&](const Line& line) {
    if (line.name != "*" && line.name != name) return false;
    return std::ranges::any_of(backtrace, [&](const SourcePlace& place) {
      return (!place.function.empty() && matches(line.pattern, place.function)) ||
             (!place.file.empty() && matches(line.pattern, place.file)) ||
             (!place.module.empty() && matches(line.pattern, place.module));
    });
  });
}

}  // namespace rocemu::check
