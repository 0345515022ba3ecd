#include "emulator/fault/grammar.h"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>

#include "base/net/text.h"
#include "emulator/fault/kinds.h"
#include "emulator/fault/quirks.h"
#include "impairment/quantity.h"

namespace rocemu::fault {
namespace {

using Quantity = impairment::Kind;
using impairment::kDuration;
using impairment::kProbability;
using impairment::kRate;
using impairment::parse_quantity;
using impairment::ParsedQuantity;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool holds(std::string_view keys, std::string_view key) {
  return keys.find(" " + std::string(key) + " ") != std::string_view::npos;
}

// The functions below take a value into a spec, and return what is wrong with it, or nothing.

std::string take(const Quantity& kind, std::string_view text, uint64_t& into) {
  ParsedQuantity parsed = parse_quantity(kind, text);
  if (!parsed.value) return std::move(parsed.error);
  into = *parsed.value;
  return {};
}

std::string take_length(std::string_view text, TimeNs& into) {
  std::string error = take(kDuration, text, into);
  return error.empty() && into == 0 ? quoted(text) + " is no time at all" : error;
}

// Each time costs the NIC a round of its control thread, and a line of its log.
constexpr TimeNs kShortestPeriodNs = 1'000'000;

std::string take_period(std::string_view text, TimeNs& into) {
  std::string error = take(kDuration, text, into);
  return error.empty() && into < kShortestPeriodNs ? quoted(text) + " is less than 1ms" : error;
}

template <class Number>
std::string take_number(std::string_view text, uint64_t least, Number& into) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number < least)
    return quoted(text) + " is no whole number from " + std::to_string(least) + " to " +
           std::to_string(std::numeric_limits<Number>::max());
  into = number;
  return {};
}

template <class Number>
std::string take_number(std::string_view text, uint64_t least, std::optional<Number>& into) {
  Number number{};
  std::string error = take_number(text, least, number);
  if (error.empty()) into = number;
  return error;
}

std::string take_address(std::string_view text, IpAddress& into) {
  const auto address = parse_ip_address(std::string(text));
  if (!address) return quoted(text) + " is no address, like 10.77.0.2 or fd52:4f43:4500::2";
  into = *address;
  return {};
}

template <class Names>
std::string one_of(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

template <class Names>
std::string take_name(std::string_view text, const Names& names, std::string& into) {
  if (std::ranges::find(names, text) == std::end(names))
    return quoted(text) + " is none of " + one_of(names);
  into = text;
  return {};
}

std::string take_status(std::string_view text, uint8_t& into) {
  for (const StatusName& known : status_names())
    if (known.name == text) {
      into = known.status;
      return {};
    }
  std::string names;
  for (const StatusName& known : status_names())
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return quoted(text) + " is none of " + names;
}

constexpr int kMaxErrno = 133;  // EHWPOISON, the last of Linux

std::string take_errno(std::string_view text, int& into) {
  for (int number = 1; number <= kMaxErrno; ++number) {
    const char* const name = ::strerrorname_np(number);
    if (name == nullptr || text != name) continue;
    into = number;
    return {};
  }
  return quoted(text) + " is no errno; write its name";
}

std::string take_direction(std::string_view text, What& what) {
  what.transmit = text == "tx" || text == "both";
  what.receive = text == "rx" || text == "both";
  return what.transmit || what.receive ? "" : quoted(text) + " is none of tx, rx, both";
}

std::string take_count(std::string_view text, Counted counted, When& when) {
  if (when.count > 0) return "one of nth, request and packet can be given";
  when.counted = counted;
  return take_number(text, 1, when.count);
}

std::string take_probability(std::string_view text, When& when) {
  uint64_t ppm = 0;
  std::string error = take(kProbability, text, ppm);
  when.probability_ppm = static_cast<uint32_t>(ppm);
  return error;
}

std::string take_at(std::string_view text, When& when) {
  uint64_t at_ns = 0;
  std::string error = take(kDuration, text, at_ns);
  when.at_ns = at_ns;
  return error;
}

constexpr std::string_view kQueues[] = {"send", "receive", kAny};
constexpr std::string_view kEvents[] = {"srq-limit", "last-wqe", kAny};

struct Key {
  std::string_view name;
  std::string_view example;
  std::string (*take)(Spec& spec, std::string_view value);
};

// The keys that only some kinds take.
constexpr Key kKeysOfKinds[] = {
    {"status", "retry-exc-err",
     [](Spec& s, std::string_view v) { return take_status(v, s.what.status); }},
    {"from", "success",
     [](Spec& s, std::string_view v) { return take_status(v, s.what.from.emplace()); }},
    {"errno", "ENOMEM", [](Spec& s, std::string_view v) { return take_errno(v, s.what.error); }},
    {"delay", "5ms", [](Spec& s, std::string_view v) { return take_length(v, s.what.delay_ns); }},
    {"rate", "100mbit",
     [](Spec& s, std::string_view v) {
       std::string error = take(kRate, v, s.what.rate_bits_per_s);
       return error.empty() && s.what.rate_bits_per_s == 0
                  ? quoted(v) + " lets nothing through; see pause and no-traffic"
                  : error;
     }},
    {"call", "create-qp",
     [](Spec& s, std::string_view v) { return take_name(v, call_names(), s.what.call); }},
    {"queue", "send",
     [](Spec& s, std::string_view v) { return take_name(v, kQueues, s.what.queue); }},
    {"event", "last-wqe",
     [](Spec& s, std::string_view v) { return take_name(v, kEvents, s.what.event); }},
    {"direction", "rx", [](Spec& s, std::string_view v) { return take_direction(v, s.what); }},
    {"index", "1", [](Spec& s, std::string_view v) { return take_number(v, 0, s.what.gid_index); }},
    {"to", "10.77.9.9", [](Spec& s, std::string_view v) { return take_address(v, s.what.gid); }},
};

constexpr Key kKeysOfWhom[] = {
    {"qp", "17", [](Spec& s, std::string_view v) { return take_number(v, 1, s.whom.qpn); }},
    {"pid", "4711", [](Spec& s, std::string_view v) { return take_number(v, 1, s.whom.pid); }},
    {"program", "ib_write_bw",
     [](Spec& s, std::string_view v) {
       s.whom.program = v;
       if (v.empty()) return std::string("a program's name is missing");
       const bool printable =
           std::ranges::all_of(v, [](unsigned char c) { return c > 0x1f && c != 0x7f; });
       return std::string(printable ? "" : "a program's name has no control characters");
     }},
    {"peer", "10.77.0.2",
     [](Spec& s, std::string_view v) { return take_address(v, s.whom.peer.emplace()); }},
};

constexpr Key kKeysOfWhen[] = {
    {"at", "5s", [](Spec& s, std::string_view v) { return take_at(v, s.when); }},
    {"after", "2s",
     [](Spec& s, std::string_view v) { return take(kDuration, v, s.when.after_ns); }},
    {"for", "100ms", [](Spec& s, std::string_view v) { return take_length(v, s.when.for_ns); }},
    {"every", "1s", [](Spec& s, std::string_view v) { return take_period(v, s.when.every_ns); }},
    {"times", "3", [](Spec& s, std::string_view v) { return take_number(v, 1, s.when.times); }},
    {"nth", "3",
     [](Spec& s, std::string_view v) { return take_count(v, Counted::nothing, s.when); }},
    {"request", "1000",
     [](Spec& s, std::string_view v) { return take_count(v, Counted::requests, s.when); }},
    {"packet", "1000",
     [](Spec& s, std::string_view v) { return take_count(v, Counted::packets, s.when); }},
    {"p", "1%", [](Spec& s, std::string_view v) { return take_probability(v, s.when); }},
    {"seed", "7", [](Spec& s, std::string_view v) { return take_number(v, 0, s.when.seed); }},
};

const Key* find_key(std::string_view name) {
  for (const std::span<const Key> keys :
       {std::span<const Key>(kKeysOfKinds), std::span<const Key>(kKeysOfWhom),
        std::span<const Key>(kKeysOfWhen)})
    for (const Key& key : keys)
      if (key.name == name) return &key;
  return nullptr;
}

std::string key_names(const KindRow& row) {
  std::string names(row.keys);
  if (names.empty()) names = " ";
  for (const Key& key : kKeysOfWhom) names += std::string(key.name) + " ";
  for (const Key& key : kKeysOfWhen) names += std::string(key.name) + " ";
  return names.substr(1, names.size() - 2);
}

// Spaces and commas are the same.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t first = text.find_first_not_of(" ,\t");
    if (first == std::string_view::npos) return words;
    const size_t end = std::min(text.find_first_of(" ,\t", first), text.size());
    words.push_back(text.substr(first, end - first));
    text.remove_prefix(end);
  }
}

std::string take_word(Spec& spec, const KindRow& row, std::string_view word,
                      std::vector<std::string_view>& seen) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const Key* const key = find_key(name);
  const bool of_some_kind =
      key != nullptr && key >= std::begin(kKeysOfKinds) && key < std::end(kKeysOfKinds);
  if (key == nullptr || (of_some_kind && !holds(row.keys, name)))
    return quoted(word) + ": " + std::string(row.name) + " takes " + key_names(row) +
           ", like: " + std::string(row.example);
  const std::string like = std::string(key->name) + "=" + std::string(key->example);
  if (equals == std::string_view::npos)
    return quoted(word) + " has no value; write it like " + like;
  if (std::ranges::find(seen, name) != seen.end())
    return quoted(word) + ": " + std::string(name) + " is given twice";
  seen.push_back(name);
  const std::string error = key->take(spec, word.substr(equals + 1));
  return error.empty() ? error : std::string(name) + ": " + error + " (as in " + like + ")";
}

// Returns the error in words that are right one by one, or nothing.
std::string check(const Spec& spec, const KindRow& row, const std::vector<std::string_view>& seen) {
  const std::string name(row.name);
  for (const Key& key : kKeysOfKinds)
    if (holds(row.needed, key.name) && std::ranges::find(seen, key.name) == seen.end())
      return name + " needs " + std::string(key.name) + "=, like: " + std::string(row.example);
  const When& when = spec.when;
  const bool counts_events = when.count > 0 && when.counted == Counted::nothing;
  if (counts_events && row.nature != Nature::filter)
    return name +
           ": nth is of faults that strike calls, completions and events; write request= or "
           "packet=";
  if (when.counted != Counted::nothing && row.nature == Nature::filter)
    return name + ": it counts its own events; write nth=";
  for (const Key& key : kKeysOfWhom)
    if (when.counted == Counted::nothing && !holds(row.whom, key.name) &&
        std::ranges::find(seen, key.name) != seen.end())
      return name + " is about " +
             (row.whom.empty() ? "the whole device" : "what a program does, so write program=") +
             "; " + std::string(key.name) + "= says only whose requests or packets are counted";
  if (row.nature == Nature::moment && when.for_ns > 0)
    return name + " is over when it has struck, so there is no for=";
  if (when.every_ns > 0 && when.for_ns == 0 && row.nature != Nature::moment)
    return "every: what lasts until it is taken back does not begin again; write for= as well";
  if (when.every_ns > 0 && when.for_ns >= when.every_ns)
    return "every: it lasts as long as that or longer, so it never ends";
  if (when.every_ns > 0 && when.counted != Counted::nothing)
    return "every: it begins by what is counted; times= says how often";
  if (when.at_ns && when.after_ns > 0) return "one of at and after can be given";
  return {};
}

void set_defaults(What& what) {
  constexpr uint8_t kRetryExceeded = 12;
  if (what.kind == Kind::qp_error) what.status = kRetryExceeded;
  if (what.kind == Kind::call_fails || what.kind == Kind::post_fails) what.error = ENOMEM;
  if (what.kind == Kind::post_fails) what.queue = kAny;
  if (what.kind == Kind::event_late || what.kind == Kind::event_lost) what.event = kAny;
}

ParsedFaults wrong(std::string error) { return {{}, std::move(error)}; }

std::string kind_names() {
  std::string names;
  for (const KindRow& row : kinds()) names += std::string(row.name) + ", ";
  return names + "quirks=FAMILY";
}

ParsedFaults quirks_on(const std::string& device, std::string_view family) {
  const auto texts = quirk_texts(family);
  if (texts.empty())
    return wrong("quirks: " + quoted(family) + " is none of " + one_of(quirk_families()));
  ParsedFaults all;
  for (const std::string_view text : texts) {
    ParsedFaults one = parse_faults(device + " " + std::string(text));
    if (!one.error.empty()) return one;
    one.faults.front().quirks = family;
    all.faults.push_back(std::move(one.faults.front()));
  }
  return all;
}

}  // namespace

ParsedFaults parse_faults(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 2)
    return wrong("a device and a fault are wanted, like: rocemu0 port-down for=200ms");
  Spec spec;
  spec.device = words[0];
  if (spec.device.find_first_of("=.:/") != std::string::npos)
    return wrong(quoted(words[0]) + " is no device; write one, or all, first: " + spec.device);
  constexpr std::string_view kQuirks = "quirks=";
  if (words[1].starts_with(kQuirks)) {
    if (words.size() > 2) return wrong(quoted(words[2]) + ": quirks= stands alone");
    return quirks_on(spec.device, words[1].substr(kQuirks.size()));
  }
  const KindRow* const row = find_kind(words[1]);
  if (row == nullptr)
    return wrong("there is no fault " + quoted(words[1]) + "; there are " + kind_names());
  spec.what.kind = row->kind;
  set_defaults(spec.what);
  std::vector<std::string_view> seen;
  for (size_t i = 2; i < words.size(); ++i)
    if (std::string error = take_word(spec, *row, words[i], seen); !error.empty())
      return wrong(std::move(error));
  if (std::string error = check(spec, *row, seen); !error.empty()) return wrong(std::move(error));
  return {{std::move(spec)}, {}};
}

namespace {

class Writer {
 public:
  explicit Writer(std::string text) : text_(std::move(text)) {}
  void add(std::string_view name, const std::string& value) {
    text_ += " " + std::string(name) + "=" + value;
  }
  void add(std::string_view name, const Quantity& kind, uint64_t value) {
    add(name, impairment::to_text(kind, value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_what(Writer& to, const What& what, const KindRow& row) {
  What plain;
  plain.kind = what.kind;
  set_defaults(plain);
  if (what.status != plain.status || holds(row.needed, "status"))
    to.add("status", status_text(what.status));
  if (what.from) to.add("from", status_text(*what.from));
  if (what.call != plain.call) to.add("call", what.call);
  if (what.queue != plain.queue) to.add("queue", what.queue);
  if (what.event != plain.event) to.add("event", what.event);
  if (what.error != plain.error) to.add("errno", ::strerrorname_np(what.error));
  if (what.delay_ns > 0) to.add("delay", kDuration, what.delay_ns);
  if (what.rate_bits_per_s > 0) to.add("rate", kRate, what.rate_bits_per_s);
  if (!what.transmit || !what.receive) to.add("direction", what.transmit ? "tx" : "rx");
  if (holds(row.keys, "index")) to.add("index", std::to_string(what.gid_index));
  if (holds(row.keys, "to")) to.add("to", to_text(what.gid));
}

void write_whom(Writer& to, const Whom& whom) {
  if (whom.qpn) to.add("qp", std::to_string(*whom.qpn));
  if (whom.pid) to.add("pid", std::to_string(*whom.pid));
  if (!whom.program.empty()) to.add("program", whom.program);
  if (whom.peer) to.add("peer", to_text(*whom.peer));
}

void write_when(Writer& to, const When& when) {
  if (when.at_ns) to.add("at", kDuration, *when.at_ns);
  if (when.after_ns > 0) to.add("after", kDuration, when.after_ns);
  if (when.for_ns > 0) to.add("for", kDuration, when.for_ns);
  if (when.every_ns > 0) to.add("every", kDuration, when.every_ns);
  if (when.times) to.add("times", std::to_string(*when.times));
  constexpr std::string_view kCounted[] = {"nth", "request", "packet"};
  if (when.count > 0)
    to.add(kCounted[static_cast<size_t>(when.counted)], std::to_string(when.count));
  if (when.probability_ppm != kCertain) to.add("p", kProbability, when.probability_ppm);
  if (when.seed != kDefaultSeed) to.add("seed", std::to_string(when.seed));
}

}  // namespace

std::string to_text(const Spec& spec) {
  const KindRow& row = row_of(spec.what.kind);
  Writer writer(spec.device + " " + std::string(row.name));
  write_what(writer, spec.what, row);
  write_whom(writer, spec.whom);
  write_when(writer, spec.when);
  return writer.take();
}

std::string text_of_table(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string device = kAllDevices;
  std::string what;
  std::string rest;
  for (const auto& [name, value] : keys) {
    if (name == "device") {
      device = value;
    } else if (name == "what") {
      what = value;
    } else if (name == "quirks") {
      what = name + "=" + value;
    } else {
      rest += " " + name + "=" + value;
    }
  }
  return device + " " + what + rest;
}

}  // namespace rocemu::fault
