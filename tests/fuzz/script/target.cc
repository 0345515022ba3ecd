// Scripts of verbs and frames: any text is parsed or refused with a place that is in it, and what
// is parsed and short is played.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "emulator/script/language/parser.h"
#include "emulator/script/play/player.h"
#include "emulator/script/virtual_time/virtual_stage.h"
#include "tests/fuzz/expect.h"

namespace {

using namespace rocemu;
using namespace rocemu::script;
using rocemu::fuzz::expect;

constexpr size_t kMaxLines = 60;
constexpr TimeNs kMaxNs = 5'000'000;

TimeNs longest_ns(const Script& script) {
  TimeNs sum = 0;
  for (const Line& line : script.lines)
    sum += std::max(line.timing.first_ns, line.timing.last_ns.value_or(0));
  return sum;
}

void check(const Script& script) {
  for (const Line& line : script.lines) {
    expect(!line.source.empty(), "a line is as it was written");
    if (!line.call) continue;
    // As an agent gets it.
    const Call again = parse_call(line.call->source);
    expect(to_text(again.arguments) == to_text(line.call->arguments), "a call is read alike");
    parse_result(again.verb, to_text(line.call->result));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  Script script;
  try {
    script = parse_script("fuzz.roce", text);
  } catch (const SyntaxError& error) {
    const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
    expect(error.place().line >= 1 && error.place().line <= lines, "an error is on a line");
    expect(error.place().column >= 1 && error.place().column <= size_bytes + 2,
           "an error is in a column");
    return 0;
  }
  check(script);
  if (script.lines.size() > kMaxLines || longest_ns(script) > kMaxNs) return 0;
  VirtualStage stage;
  play(script, stage);
  return 0;
}
