#include "emulator/trace/show/ladder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "emulator/trace/show/ladder_page.h"
#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/vocabulary.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/opcode.h"

namespace rocemu::trace {

namespace {

using Json = nlohmann::json;

constexpr int kNone = -1;

// Names of a Record's fields, in the order of values_of.
constexpr const char* kFields[] = {"wr_id",  "value",       "request", "qpn",    "psn",  "peer_qpn",
                                   "length", "count",       "cause",   "opcode", "code", "flags",
                                   "device", "peer_device", "program", "detail"};

// Makes a text of the value, since JavaScript's numbers would lose digits.
Json wide(uint64_t value) {
  if (value == 0) return 0;
  return hexadecimal(value);
}

// Returns the table of the file that `program` is a number in.
Table table_of(Kind kind) {
  switch (kind) {
    case Kind::packet_lost:
      return Table::impairment;
    case Kind::packet_refused:
      return Table::rule;
    case Kind::counter:
      return Table::counter;
    default:
      return Table::program;
  }
}

// What is 0 is not shown.
Json values_of(const Names& names, const Record& r) {
  const auto named = [&](Table table, uint16_t number) {
    return number == kNoDevice ? Json(0) : Json(names.text(table, number));
  };
  const auto text = [](std::string_view it) { return it.empty() ? Json(0) : Json(it); };
  const bool is_packet = r.kind >= Kind::packet_sent && r.kind <= Kind::packet_dropped &&
                         r.kind != Kind::packet_refused;
  return {wide(r.wr_id),
          wide(r.value),
          r.request,
          wide(r.qpn),
          r.psn,
          wide(r.peer_qpn),
          r.length_bytes,
          r.count,
          text(to_text(r.cause)),
          is_packet ? Json(packet_opcode_text(r.opcode)) : wide(r.opcode),
          wide(r.code),
          text(flags_text(r.flags)),
          named(Table::device, r.device),
          named(Table::device, r.peer_device),
          named(table_of(r.kind), r.program),
          wide(r.detail)};
}

// The page has a colour for each of these: its kClasses.
enum class PacketClass : uint8_t { request, answer, nak, rnr, congestion };

PacketClass class_of(const Record& header) {
  if (header.opcode == wire::kCnpOpcode) return PacketClass::congestion;
  if ((header.flags & flag::kHasAeth) != 0 && refuses(header.code))
    return (header.code & 0xe0) == wire::syndrome::kRnr ? PacketClass::rnr : PacketClass::nak;
  const bool is_answer = wire::traits_of(header.opcode).kind == wire::MessageKind::response;
  return is_answer ? PacketClass::answer : PacketClass::request;
}

// Level says how much a note wants to be seen: its kind of colour on the page.
enum class Level : uint8_t { plain, warning, bad };

Level level_of(const Record& record) {
  switch (record.kind) {
    case Kind::ack_timeout:
    case Kind::completion_lost:
    case Kind::lost:
      return Level::bad;
    case Kind::qp_state:
      return record.code == 6 || record.code == 5 ? Level::bad : Level::plain;
    case Kind::program_ended:
      return record.cause == Cause::by_death ? Level::bad : Level::plain;
    case Kind::retransmission:
    case Kind::rnr_received:
    case Kind::nak_received:
    case Kind::waits:
    case Kind::congestion:
      return Level::warning;
    default:
      return Level::plain;
  }
}

// Events that have a line of their own in a margin: those of packets and requests are drawn.
bool is_note(Kind kind) {
  switch (kind) {
    case Kind::program_began:
    case Kind::program_ended:
    case Kind::qp_created:
    case Kind::qp_destroyed:
    case Kind::qp_state:
    case Kind::rnr_received:
    case Kind::nak_received:
    case Kind::ack_timeout:
    case Kind::retransmission:
    case Kind::congestion:
    case Kind::waits:
    case Kind::cm_sent:
    case Kind::cm_received:
      return true;
    default:
      return false;
  }
}

class Ladder {
 public:
  Ladder(const Story& story, const LadderOptions& options) : story_(story), options_(options) {}

  Json all();

 private:
  const Names& names() const { return story_.trace->names; }
  bool is_shown(const Connection& connection) const;
  int record(At at);
  int qp(At at);
  void add_connections();
  void add_packets();
  void add_requests();
  void add_notes();
  void add_records();
  void draw_all();
  Json packet_row(const Packet& packet);
  Json request_row(const Request& request);
  std::string packet_label(const Record& header) const;
  std::string note_text(const Record& record) const;
  std::string short_text(const Record& record) const;
  std::string summary() const;

  const Story& story_;
  const LadderOptions& options_;
  std::vector<int> connections_;  // what the page calls them; kNone: not shown
  std::vector<int> qps_;
  // They say what the page calls each record; in the first of two passes only whether it is shown.
  std::vector<int> records_;
  At end_ = 0;  // records from here on begin nothing that is shown
  Json page_ = Json::object();
  size_t again_ = 0, gone_ = 0, refusals_ = 0, left_out_ = 0;
};

bool Ladder::is_shown(const Connection& connection) const {
  const Qp& a = story_.qps[connection.ends[0]];
  const Qp& b = story_.qps[connection.ends[1]];
  if (!options_.selection.takes(a) && !options_.selection.takes(b)) return false;
  return connection.packets > 0 || (a.has_records && b.has_records);
}

int Ladder::qp(At at) {
  if (at == kNowhere) return kNone;
  if (qps_[at] != kNone) return qps_[at];
  const Qp& it = story_.qps[at];
  const bool is_here = it.device != kNoDevice;
  std::string device = is_here ? names().text(Table::device, it.device) : "elsewhere";
  std::string name = device + " QP " + hexadecimal(it.qpn);
  if (it.type != 0) name += " (" + qp_type_text(it.type) + ")";
  page_["qps"].push_back({{"name", name},
                          {"number", hexadecimal(it.qpn)},
                          {"device", device},
                          {"program", program_text(names(), it.program)},
                          {"recorded", it.has_records}});
  return qps_[at] = static_cast<int>(page_["qps"].size()) - 1;
}

void Ladder::add_connections() {
  connections_.assign(story_.connections.size(), kNone);
  for (size_t i = 0; i < story_.connections.size(); ++i) {
    const Connection& it = story_.connections[i];
    if (!is_shown(it)) continue;
    connections_[i] = static_cast<int>(page_["connections"].size());
    page_["connections"].push_back({qp(it.ends[0]), qp(it.ends[1]), it.packets});
  }
}

int Ladder::record(At at) {
  if (at == kNowhere) return kNone;
  if (records_[at] == kNone) records_[at] = 0;
  return records_[at];
}

std::string Ladder::packet_label(const Record& header) const {
  std::string label = packet_opcode_text(header.opcode) + "  " + std::to_string(header.psn);
  if ((header.flags & flag::kHasAeth) != 0 && refuses(header.code))
    label += "  " + syndrome_text(header.code);
  if (header.length_bytes != 0) label += "  " + std::to_string(header.length_bytes) + " B";
  return label;
}

Json Ladder::packet_row(const Packet& packet) {
  const Record& header = story_.record(packet.header());
  std::string remark;
  for (const std::string& text : remarks_on(story_, packet))
    remark += (remark.empty() ? "" : "; ") + text;
  const bool again = packet.sent != kNowhere && !packet.is_copy &&
                     (story_.record(packet.sent).flags & flag::kRetransmission) != 0;
  const PacketClass kind = class_of(header);
  again_ += again ? 1 : 0;
  gone_ += packet.lost != kNowhere ? 1 : 0;
  refusals_ += kind == PacketClass::nak || kind == PacketClass::rnr ? 1 : 0;
  Json spoken = Json::array();
  for (const At at : {packet.sent, packet.lost, packet.arrived})
    if (at != kNowhere) spoken.push_back(record(at));
  for (const At at : packet.remarks) spoken.push_back(record(at));
  if (packet.because != kNowhere) spoken.push_back(record(packet.because));
  return {connections_[packet.connection],
          packet.from_first,
          record(packet.sent),
          record(packet.arrived),
          record(packet.lost),
          static_cast<unsigned>(kind),
          again,
          packet_label(header),
          remark,
          spoken};
}

void Ladder::add_packets() {
  for (const Packet& packet : story_.packets) {
    if (packet.connection == kNowhere || connections_[packet.connection] == kNone) continue;
    if (packet.header() >= end_) {
      ++left_out_;
      continue;
    }
    page_["packets"].push_back(packet_row(packet));
  }
}

Json Ladder::request_row(const Request& request) {
  const Record& first = story_.record(request.first());
  const bool is_completion = request.posted == kNowhere && request.taken == kNowhere;
  std::string label = request.is_receive ? "receive"
                      : is_completion    ? completion_opcode_text(first.opcode)
                                         : request_opcode_text(first.opcode);
  label = "wr_id " + hexadecimal(first.wr_id) + ": " + label + "  " +
          std::to_string(first.length_bytes) + " B";
  const bool failed = request.pushed != kNowhere && story_.record(request.pushed).code != 0;
  return {qp(request.qp),
          request.is_receive,
          record(request.posted),
          record(request.taken),
          record(request.acknowledged),
          record(request.pushed),
          record(request.polled),
          label,
          failed};
}

void Ladder::add_requests() {
  for (const Request& request : story_.requests) {
    if (request.first() == kNowhere || request.first() >= end_) continue;
    if (request.qp != kNowhere && qps_[request.qp] == kNone) continue;
    if (request.qp == kNowhere && !options_.selection.everything()) continue;
    page_["requests"].push_back(request_row(request));
  }
}

void Ladder::add_notes() {
  for (At at = 0; at < end_; ++at) {
    const Record& it = story_.record(at);
    if (!is_note(it.kind)) continue;
    const At owner = it.qpn == 0 ? kNowhere : story_.find_qp(it.device, it.qpn);
    if (owner == kNowhere ? !options_.selection.takes_all_of(it.device) : qps_[owner] == kNone)
      continue;
    page_["notes"].push_back({record(at), static_cast<unsigned>(level_of(it)), note_text(it)});
  }
}

// A margin is narrow: what stands above it or at the arrows is left out. All fields are told at a
// click.
std::string Ladder::note_text(const Record& record) const {
  if (record.kind == Kind::rnr_received) return "RNR NAK of PSN " + std::to_string(record.psn);
  if (record.kind == Kind::retransmission)
    return "sends again from PSN " + std::to_string(record.psn);
  if (record.kind != Kind::qp_state) return {};
  const std::string_view cause = to_text(record.cause);
  return "QP state " + state_text(record.code) + (cause.empty() ? "" : ", " + std::string(cause));
}

std::string Ladder::short_text(const Record& record) const {
  const bool is_end = record.kind == Kind::completion_pushed ||
                      record.kind == Kind::completion_polled ||
                      record.kind == Kind::completion_lost;
  if (!is_end) return {};
  return "wr_id " + hexadecimal(record.wr_id) + ": " + status_text(record.code);
}

std::string Ladder::summary() const {
  const Trace& trace = *story_.trace;
  const auto count = [](uint64_t n, const char* one, const char* many) {
    return std::to_string(n) + (n == 1 ? one : many);
  };
  std::string text = count(page_["packets"].size(), " packet, ", " packets, ") +
                     std::to_string(gone_) + " lost, " + std::to_string(again_) + " sent again, " +
                     count(refusals_, " NAK, ", " NAKs, ") +
                     count(page_["requests"].size(), " request", " requests");
  if (left_out_ > 0)
    text += "; " + std::to_string(left_out_) + " packets behind these are left out: choose a QP";
  if (trace.lost > 0) text += "; " + std::to_string(trace.lost) + " records found no room";
  if (trace.is_cut_short) text += "; the file is cut short";
  return text;
}

void Ladder::draw_all() {
  qps_.assign(story_.qps.size(), kNone);
  again_ = gone_ = refusals_ = left_out_ = 0;
  for (const char* list : {"qps", "connections", "packets", "requests", "notes", "records"})
    page_[list] = Json::array();
  add_connections();
  add_packets();
  add_requests();
  add_notes();
}

void Ladder::add_records() {
  const uint64_t start_ns = story_.trace->header.start_ns;
  for (At at = 0; at < records_.size(); ++at) {
    if (records_[at] == kNone) continue;
    const Record& it = story_.record(at);
    const At owner = it.qpn == 0 ? kNowhere : story_.find_qp(it.device, it.qpn);
    page_["records"].push_back({static_cast<int64_t>(it.time_ns - start_ns),
                                owner == kNowhere ? kNone : qps_[owner], record_text(names(), it),
                                short_text(it), values_of(names(), it)});
  }
}

// Returns what the page draws, with records by their index in "records".
Json Ladder::all() {
  const size_t count = story_.trace->records.size();
  records_.assign(count, kNone);
  end_ = static_cast<At>(std::min(count, options_.most_records));
  draw_all();
  int number = 0;
  for (int& record : records_)
    if (record != kNone) record = number++;
  draw_all();
  add_records();
  page_["title"] = options_.title;
  page_["summary"] = summary();
  page_["fields"] = kFields;
  return std::move(page_);
}

// Puts `text` where the page says <!--name-->.
void fill(std::string& page, const std::string& name, std::string_view text) {
  const std::string place = "<!--" + name + "-->";
  const size_t at = page.find(place);
  if (at != std::string::npos) page.replace(at, place.size(), text);
}

}  // namespace

void show_ladder(const Story& story, const LadderOptions& options, std::ostream& out) {
  std::string json = Ladder(story, options).all().dump();
  // Nothing that a file names may end the script that it stands in.
  for (size_t at = 0; (at = json.find('<', at)) != std::string::npos;)
    json.replace(at, 1, "\\u003c");
  std::string page(kLadderHtml);
  fill(page, "style", kLadderStyle);
  fill(page, "script", kLadderScript);
  fill(page, "trace", json);
  out << page;
}

}  // namespace rocemu::trace
