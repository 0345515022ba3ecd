#include "emulator/trace/format/names.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace rocemu::trace {

namespace {

constexpr std::pair<Kind, std::string_view> kKinds[] = {
    {Kind::name, "name"},
    {Kind::started, "trace started"},
    {Kind::stopped, "trace stopped"},
    {Kind::lost, "records lost"},
    {Kind::program_began, "program began"},
    {Kind::program_ended, "program ended"},
    {Kind::qp_created, "qp created"},
    {Kind::qp_destroyed, "qp destroyed"},
    {Kind::qp_state, "qp state"},
    {Kind::posted, "posted"},
    {Kind::taken, "taken"},
    {Kind::completion_pushed, "completion pushed"},
    {Kind::completion_polled, "completion polled"},
    {Kind::completion_lost, "completion lost"},
    {Kind::packet_sent, "packet sent"},
    {Kind::packet_lost, "packet lost"},
    {Kind::packet_received, "packet received"},
    {Kind::packet_refused, "packet refused"},
    {Kind::packet_dropped, "packet dropped"},
    {Kind::nak_sent, "nak sent"},
    {Kind::nak_received, "nak received"},
    {Kind::rnr_sent, "rnr sent"},
    {Kind::rnr_received, "rnr received"},
    {Kind::ack_timeout, "ack timeout"},
    {Kind::retransmission, "retransmission"},
    {Kind::implied_nak, "implied nak"},
    {Kind::duplicate, "duplicate"},
    {Kind::out_of_sequence, "out of sequence"},
    {Kind::placed_ahead, "placed ahead"},
    {Kind::stale_ack, "stale ack"},
    {Kind::data_placed, "data placed"},
    {Kind::acknowledged, "acknowledged"},
    {Kind::congestion, "congestion"},
    {Kind::waits, "waits"},
    {Kind::cm_sent, "cm sent"},
    {Kind::cm_received, "cm received"},
    {Kind::counter, "counter"},
};

constexpr std::pair<Cause, std::string_view> kCauses[] = {
    {Cause::ack_timeout, "ack timeout"},
    {Cause::early_probe, "early probe"},
    {Cause::sequence_nak, "sequence nak"},
    {Cause::rnr_nak, "rnr nak"},
    {Cause::implied_nak, "implied nak"},
    {Cause::selective, "selective"},
    {Cause::migration, "migration"},
    {Cause::dropped, "dropped"},
    {Cause::corrupted, "corrupted"},
    {Cause::link_down, "link down"},
    {Cause::queue_full, "queue full"},
    {Cause::trimmed, "trimmed"},
    {Cause::no_place, "no place"},
    {Cause::malformed, "malformed"},
    {Cause::bad_icrc, "bad icrc"},
    {Cause::no_qp, "no qp"},
    {Cause::by_program, "by program"},
    {Cause::by_error, "by error"},
    {Cause::by_death, "by death"},
    {Cause::by_user, "by user"},
    {Cause::file_full, "file full"},
    {Cause::write_failed, "write failed"},
    {Cause::nic_ended, "nic ended"},
    {Cause::window, "window"},
    {Cause::rnr_wait, "rnr wait"},
    {Cause::fence, "fence"},
    {Cause::rd_atomics, "rd atomics"},
    {Cause::pace, "pace"},
    {Cause::not_ready, "not ready"},
    {Cause::rate_limit, "rate limit"},
    {Cause::earlier, "earlier requests"},
    {Cause::ecn_marked, "ecn marked"},
    {Cause::cnp_sent, "cnp sent"},
    {Cause::cnp_handled, "cnp handled"},
    {Cause::cnp_ignored, "cnp ignored"},
    {Cause::key_never_given, "key never given"},
    {Cause::key_gone, "key of a deregistered region"},
    {Cause::key_other_domain, "key of another protection domain"},
    {Cause::key_out_of_range, "beyond the key's region"},
    {Cause::key_not_granted, "key grants no such access"},
};

template <typename Value, size_t n>
std::string_view look_up(const std::pair<Value, std::string_view> (&rows)[n], Value value) {
  const auto* row =
      std::find_if(std::begin(rows), std::end(rows), [&](auto& r) { return r.first == value; });
  return row == std::end(rows) ? std::string_view{} : row->second;
}

constexpr const char* kTableNames[] = {"",     "device",     "device", "program",
                                       "rule", "impairment", "counter"};

// Files come from anywhere, and texts go to terminals.
void append_printable(std::string& to, const NameRecord& record) {
  const size_t length = strnlen(record.text, NameRecord::kBytes);
  for (size_t i = 0; i < length; ++i) {
    const char c = record.text[i];
    to += c >= ' ' && c <= '~' ? c : '?';
  }
}

}  // namespace

std::string_view to_text(Kind kind) { return look_up(kKinds, kind); }
std::string_view to_text(Cause cause) { return look_up(kCauses, cause); }

bool Names::add(const NameRecord& record) {
  const auto table = static_cast<size_t>(record.table);
  if (table == 0 || table >= kTables) return false;
  if (record.parts == 0 || record.parts > NameRecord::kMaxParts || record.part >= record.parts)
    return false;
  std::string* text = nullptr;
  if (record.table == Table::address) {
    auto& all = addresses_[record.number];
    if (record.part == 0) {
      if (++count_ > kMaxNames) return false;
      all.emplace_back();
    }
    if (all.empty()) return false;
    text = &all.back();
  } else {
    if (record.part == 0) {
      if (++count_ > kMaxNames) return false;
      tables_[table][record.number] = {{}, record.detail};
    }
    const auto name = tables_[table].find(record.number);
    if (name == tables_[table].end()) return false;
    text = &name->second.text;
  }
  if (text->size() != record.part * NameRecord::kBytes) return false;
  append_printable(*text, record);
  return true;
}

std::string Names::text(Table table, uint16_t number) const {
  const Name* name = find(table, number);
  if (name != nullptr && !name->text.empty()) return name->text;
  const auto index = static_cast<size_t>(table);
  return std::string(index < kTables ? kTableNames[index] : "") + " " + std::to_string(number);
}

const Name* Names::find(Table table, uint16_t number) const {
  const auto& names = all(table);
  const auto name = names.find(number);
  return name == names.end() ? nullptr : &name->second;
}

const std::map<uint16_t, Name>& Names::all(Table table) const {
  const auto index = static_cast<size_t>(table);
  return tables_[index < kTables ? index : 0];
}

std::span<const std::string> Names::addresses(uint16_t device) const {
  const auto all = addresses_.find(device);
  return all == addresses_.end() ? std::span<const std::string>{} : all->second;
}

std::vector<Record> name_records(Table table, uint16_t number, std::string_view text,
                                 uint32_t detail, uint64_t time_ns) {
  text = text.substr(0, NameRecord::kBytes * NameRecord::kMaxParts);
  const auto parts = static_cast<uint8_t>(
      std::max<size_t>(1, (text.size() + NameRecord::kBytes - 1) / NameRecord::kBytes));
  std::vector<Record> records;
  for (uint8_t part = 0; part < parts; ++part) {
    NameRecord record;
    record.time_ns = time_ns;
    record.table = table;
    record.part = part;
    record.parts = parts;
    record.number = number;
    record.detail = detail;
    const auto piece = text.substr(part * NameRecord::kBytes, NameRecord::kBytes);
    std::copy(piece.begin(), piece.end(), record.text);
    records.push_back(std::bit_cast<Record>(record));
  }
  return records;
}

}  // namespace rocemu::trace
