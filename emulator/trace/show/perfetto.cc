#include "emulator/trace/show/perfetto.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

using Json = nlohmann::ordered_json;

// Requests of a QP that are under way together have tracks beside each other; what is beyond that
// is drawn as slices that have no track of their own.
constexpr size_t kMaxLanes = 64;
constexpr uint64_t kShortNs = 500;  // of what takes no time, so that it is seen

constexpr int kDevicePids = 100'000;  // behind those of programs
constexpr int kNoOnesPid = 1;

class Perfetto {
 public:
  Perfetto(const Story& story, const Selection& selection) : story_(story), selection_(selection) {}

  void write(std::ostream& out);

 private:
  struct Track {
    int pid = 0;
    int tid = 0;
  };
  struct Event {
    uint64_t ns;
    Json json;
  };

  const Names& names() const { return story_.trace->names; }
  bool takes(At qp) const { return qp != kNowhere && selection_.takes(story_.qps[qp]); }
  std::string qp_text(At qp) const { return "QP " + hexadecimal(story_.qps[qp].qpn); }
  Track track(int pid, const std::string& name);
  int device_pid(uint16_t device);
  int program_pid(uint16_t program);
  Track qp_track(At qp, const std::string& name);
  Json& add(const char* phase, uint64_t ns, Track where, const std::string& name);
  void slice(uint64_t from_ns, uint64_t to_ns, Track where, const std::string& name, Json args);
  void count(uint64_t ns, int pid, const std::string& name, double value);
  void add_requests(At qp);
  void add_request(At request, Track lane);
  void add_loose_request(At request);
  void add_packets_of(const Request& request, uint64_t from_ns, uint64_t to_ns, Track lane);
  void add_arrivals();
  Track add_arrival(At packet, At qp, uint64_t end_ns);
  Track add_placing(const Packet& packet, At qp, uint64_t end_ns);
  void add_arrow(At packet, Track from, uint64_t to_ns, Track to);
  void add_calls();
  void add_events();
  void add_waits();
  void add_outstanding(At qp);
  uint64_t begin_of(const Request& request) const { return story_.time_ns(request.first()); }
  uint64_t end_of(const Request& request) const;
  Json args_of(const Request& request) const;

  const Story& story_;
  const Selection& selection_;
  std::vector<Event> events_;
  Json named_ = Json::array();
  std::map<int, bool> pids_;
  std::map<std::pair<int, std::string>, int> tids_;
  std::map<At, Track> sent_on_;  // packets: where their slices are
};

Perfetto::Track Perfetto::track(int pid, const std::string& name) {
  const auto [place, is_new] = tids_.try_emplace({pid, name}, static_cast<int>(tids_.size()) + 1);
  if (is_new)
    named_.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", pid},
                      {"tid", place->second},
                      {"args", {{"name", name}}}});
  return {pid, place->second};
}

int Perfetto::device_pid(uint16_t device) {
  const int pid = device == kNoDevice ? kNoOnesPid : kDevicePids + device;
  if (pids_.try_emplace(pid, true).second)
    named_.push_back(
        {{"ph", "M"},
         {"name", "process_name"},
         {"pid", pid},
         {"args",
          {{"name", device == kNoDevice ? "elsewhere" : names().text(Table::device, device)}}}});
  return pid;
}

int Perfetto::program_pid(uint16_t program) {
  const int pid = 2 + program;
  if (pids_.try_emplace(pid, true).second)
    named_.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", pid},
                      {"args", {{"name", program_text(names(), program)}}}});
  return pid;
}

Perfetto::Track Perfetto::qp_track(At qp, const std::string& name) {
  return track(device_pid(story_.qps[qp].device), qp_text(qp) + " " + name);
}

Json& Perfetto::add(const char* phase, uint64_t ns, Track where, const std::string& name) {
  const uint64_t start_ns = story_.trace->header.start_ns;
  const auto since_ns = static_cast<int64_t>(ns - std::min(ns, start_ns));
  events_.push_back({ns,
                     {{"ph", phase},
                      {"ts", static_cast<double>(since_ns) / 1000},
                      {"pid", where.pid},
                      {"tid", where.tid},
                      {"name", name}}});
  return events_.back().json;
}

void Perfetto::slice(uint64_t from_ns, uint64_t to_ns, Track where, const std::string& name,
                     Json args) {
  Json& json = add("X", from_ns, where, name);
  json["dur"] = static_cast<double>(to_ns - std::min(from_ns, to_ns)) / 1000;
  json["args"] = std::move(args);
}

void Perfetto::count(uint64_t ns, int pid, const std::string& name, double value) {
  add("C", ns, {pid, 0}, name)["args"] = {{"value", value}};
}

uint64_t Perfetto::end_of(const Request& request) const {
  uint64_t end_ns = begin_of(request);
  for (const At at :
       {request.posted, request.taken, request.acknowledged, request.pushed, request.polled})
    if (at != kNowhere) end_ns = std::max(end_ns, story_.time_ns(at));
  return end_ns;
}

Json Perfetto::args_of(const Request& request) const {
  const Record& first = story_.record(request.first());
  Json args = {{"wr_id", hexadecimal(first.wr_id)},
               {"request", first.request},
               {"bytes", first.length_bytes}};
  const auto part = [&](const char* name, At from, At to) {
    if (from != kNowhere && to != kNowhere && story_.time_ns(to) >= story_.time_ns(from))
      args[name] = duration_text(story_.time_ns(to) - story_.time_ns(from));
  };
  part("until the NIC took it", request.posted, request.taken);
  part("until it was done", request.taken, request.pushed);
  part("until it was polled", request.pushed, request.polled);
  if (request.pushed != kNowhere) args["status"] = status_text(story_.record(request.pushed).code);
  return args;
}

// A request's packets, one behind the other, however long each is under way: slices of a track may
// not overlap.
void Perfetto::add_packets_of(const Request& request, uint64_t from_ns, uint64_t to_ns,
                              Track lane) {
  std::vector<std::pair<uint64_t, At>> sent;
  for (const At packet : request.packets)
    if (story_.packets[packet].sent != kNowhere && !story_.packets[packet].is_copy)
      sent.emplace_back(story_.time_ns(story_.packets[packet].sent), packet);
  std::sort(sent.begin(), sent.end());
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto [at_ns, packet] = sent[i];
    if (at_ns < from_ns || at_ns > to_ns) continue;
    const Packet& it = story_.packets[packet];
    const uint64_t next_ns = i + 1 < sent.size() ? std::min(sent[i + 1].first, to_ns) : to_ns;
    const uint64_t arrived_ns = it.arrived != kNowhere ? story_.time_ns(it.arrived) : at_ns;
    Json args = {{"psn", story_.record(it.sent).psn}};
    for (const std::string& remark : remarks_on(story_, it)) args["remarks"].push_back(remark);
    slice(at_ns, std::clamp(arrived_ns, at_ns, std::max(at_ns, next_ns)), lane,
          packet_opcode_text(story_.record(it.sent).opcode), std::move(args));
    sent_on_[packet] = lane;
  }
}

void Perfetto::add_request(At at, Track lane) {
  const Request& request = story_.requests[at];
  const uint64_t from_ns = begin_of(request), to_ns = end_of(request);
  const Record& first = story_.record(request.first());
  const bool is_posted = request.posted != kNowhere || request.taken != kNowhere;
  slice(from_ns, to_ns, lane,
        is_posted ? request_opcode_text(first.opcode) : completion_opcode_text(first.opcode),
        args_of(request));
  add_packets_of(request, from_ns, to_ns, lane);
}

// Receives, which are posted long before, and what has no lane.
void Perfetto::add_loose_request(At at) {
  const Request& request = story_.requests[at];
  const Track where = qp_track(request.qp, "requests");
  const std::string name =
      qp_text(request.qp) + (request.is_receive ? " receives" : " more requests");
  for (const bool begins : {true, false}) {
    Json& json = add(begins ? "b" : "e", begins ? begin_of(request) : end_of(request), where, name);
    json["cat"] = "request";
    json["id"] = at;
    if (begins) json["args"] = args_of(request);
  }
}

void Perfetto::add_requests(At qp) {
  std::vector<At> sends;
  for (const At at : story_.qps[qp].requests) {
    const Request& request = story_.requests[at];
    if (request.first() == kNowhere) continue;
    if (request.is_receive) {
      add_loose_request(at);
    } else {
      sends.push_back(at);
    }
  }
  std::ranges::stable_sort(sends, {}, [&](At at) { return begin_of(story_.requests[at]); });
  std::vector<uint64_t> free_ns;  // by lane
  for (const At at : sends) {
    const Request& request = story_.requests[at];
    auto lane =
        std::ranges::find_if(free_ns, [&](uint64_t end_ns) { return end_ns < begin_of(request); });
    if (lane == free_ns.end() && free_ns.size() < kMaxLanes)
      lane = free_ns.insert(free_ns.end(), 0);
    if (lane == free_ns.end()) {
      add_loose_request(at);
      continue;
    }
    *lane = end_of(request);
    const auto number = lane - free_ns.begin();
    add_request(at,
                qp_track(qp, number == 0 ? "requests" : "requests " + std::to_string(number + 1)));
  }
}

Perfetto::Track Perfetto::add_arrival(At at, At qp, uint64_t end_ns) {
  const Packet& packet = story_.packets[at];
  const Record& record = story_.record(packet.arrived);
  const Track where = qp_track(qp, "packets in");
  Json args = {{"psn", record.psn}, {"bytes", record.length_bytes}};
  for (const std::string& remark : remarks_on(story_, packet)) args["remarks"].push_back(remark);
  slice(record.time_ns, end_ns, where, packet_opcode_text(record.opcode), std::move(args));
  return where;
}

Perfetto::Track Perfetto::add_placing(const Packet& packet, At qp, uint64_t end_ns) {
  const Record& record = story_.record(packet.placed);
  const Track where = qp_track(qp, "data placed");
  Json args = {{"psn", record.psn}, {"bytes", record.length_bytes}};
  if ((record.flags & flag::kHasReth) != 0) args["address"] = hexadecimal(record.value);
  slice(record.time_ns, end_ns, where, std::to_string(record.length_bytes) + " B", std::move(args));
  return where;
}

void Perfetto::add_arrow(At packet, Track from, uint64_t to_ns, Track to) {
  const uint64_t sent_ns = std::min(story_.time_ns(story_.packets[packet].sent), to_ns);
  for (const bool begins : {true, false}) {
    Json& json = add(begins ? "s" : "f", begins ? sent_ns : to_ns, begins ? from : to, "packet");
    json["cat"] = "packet";
    json["id"] = packet;
    if (!begins) json["bp"] = "e";
  }
}

// What arrives, what is placed of it, and the arrows that lead there: to the effect of what was
// sent, where that is known.
void Perfetto::add_arrivals() {
  // By QP, from behind: when the next one begins, which has to be after the end of this one.
  std::map<At, uint64_t> next_arrived_ns, next_placed_ns;
  const auto end_of_short = [](std::map<At, uint64_t>& next_ns, At qp, uint64_t ns) {
    const auto [next, is_last] = next_ns.try_emplace(qp, ns + kShortNs);
    const uint64_t end_ns = std::clamp(next->second, ns, ns + kShortNs);
    next->second = ns;
    return end_ns;
  };
  std::vector<std::tuple<uint64_t, At, At>> placed;  // when, packet, QP
  for (At at = static_cast<At>(story_.packets.size()); at-- > 0;) {
    const Packet& packet = story_.packets[at];
    if (packet.arrived == kNowhere || packet.connection == kNowhere) continue;
    const Connection& connection = story_.connections[packet.connection];
    const At qp = connection.ends[packet.from_first ? 1 : 0];
    if (!takes(qp) && !takes(connection.ends[packet.from_first ? 0 : 1])) continue;
    const uint64_t arrived_ns = story_.time_ns(packet.arrived);
    const Track where = add_arrival(at, qp, end_of_short(next_arrived_ns, qp, arrived_ns));
    const auto sent = sent_on_.find(at);
    if (packet.placed != kNowhere) {
      placed.emplace_back(story_.time_ns(packet.placed), at, qp);
    } else if (sent != sent_on_.end()) {
      add_arrow(at, sent->second, arrived_ns, where);
    }
  }
  // Data may be placed in another order than their packets have come in.
  std::ranges::sort(placed, std::greater{});
  for (const auto& [ns, at, qp] : placed) {
    const Track where = add_placing(story_.packets[at], qp, end_of_short(next_placed_ns, qp, ns));
    if (const auto sent = sent_on_.find(at); sent != sent_on_.end())
      add_arrow(at, sent->second, ns, where);
  }
}

// Adds what programs have called: posts and polls.
void Perfetto::add_calls() {
  std::map<std::pair<int, int>, size_t> last;  // by track: its last event
  for (At at = 0; at < story_.trace->records.size(); ++at) {
    const Record& record = story_.record(at);
    const bool is_post = record.kind == Kind::posted;
    if (!is_post && record.kind != Kind::completion_polled) continue;
    const At qp = story_.find_qp(record.device, record.qpn);
    if (!takes(qp) && !(qp == kNowhere && selection_.everything())) continue;
    uint16_t program = record.program;
    if (program == kNoProgram && qp != kNowhere) program = story_.qps[qp].program;
    if (program == kNoProgram) continue;
    const Track where = track(program_pid(program), is_post ? "post" : "poll");
    const auto before = last.find({where.pid, where.tid});
    if (before != last.end()) {
      Event& earlier = events_[before->second];
      const double room = static_cast<double>(record.time_ns - earlier.ns) / 1000;
      if (earlier.json["dur"].get<double>() > room) earlier.json["dur"] = room;
    }
    const bool is_receive = (record.flags & flag::kReceiveQueue) != 0;
    slice(record.time_ns, record.time_ns + kShortNs, where,
          !is_post     ? completion_opcode_text(record.opcode) + ", " + status_text(record.code)
          : is_receive ? "receive"
                       : request_opcode_text(record.opcode),
          {{"wr_id", hexadecimal(record.wr_id)}, {"qp", hexadecimal(record.qpn)}});
    last[{where.pid, where.tid}] = events_.size() - 1;
  }
}

void Perfetto::add_events() {
  std::map<At, double> again;
  for (At at = 0; at < story_.trace->records.size(); ++at) {
    const Record& record = story_.record(at);
    const At qp = record.qpn == 0 ? kNowhere : story_.find_qp(record.device, record.qpn);
    if (qp == kNowhere ? !selection_.takes_all_of(record.device) : !takes(qp)) continue;
    const std::string whose = qp == kNowhere ? "" : qp_text(qp) + " ";
    switch (record.kind) {
      case Kind::counter:
        count(record.time_ns, device_pid(record.device),
              whose + names().text(Table::counter, record.program),
              static_cast<double>(record.value));
        break;
      case Kind::congestion:
        if (record.value != 0)
          count(record.time_ns, device_pid(record.device), whose + "rate, bit/s",
                static_cast<double>(record.value));
        break;
      case Kind::packet_sent:
        if ((record.flags & flag::kRetransmission) != 0 && qp != kNowhere)
          count(record.time_ns, device_pid(record.device), whose + "sent again", ++again[qp]);
        break;
      case Kind::cm_sent:
      case Kind::cm_received:
        add("i", record.time_ns, track(device_pid(record.device), "connection manager"),
            record_text(names(), record))["s"] = "t";
        break;
      case Kind::qp_state:
      case Kind::ack_timeout:
      case Kind::retransmission:
      case Kind::nak_sent:
      case Kind::nak_received:
      case Kind::rnr_sent:
      case Kind::rnr_received:
        if (qp != kNowhere)
          add("i", record.time_ns, qp_track(qp, "events"), record_text(names(), record))["s"] = "t";
        break;
      default:
        break;
    }
  }
}

// Adds what keeps a QP from sending, each time from when it was known until it sends again.
void Perfetto::add_waits() {
  std::map<At, At> since;  // by QP: the record with which it began
  const auto end = [&](At qp, uint64_t ns) {
    const auto wait = since.find(qp);
    if (wait == since.end()) return;
    const Record& record = story_.record(wait->second);
    slice(record.time_ns, ns, qp_track(qp, "waits"), std::string(to_text(record.cause)),
          Json::object());
    since.erase(wait);
  };
  uint64_t last_ns = 0;
  for (At at = 0; at < story_.trace->records.size(); ++at) {
    const Record& record = story_.record(at);
    last_ns = std::max(last_ns, record.time_ns);
    const bool sends = record.kind == Kind::packet_sent && (record.flags & flag::kResponse) == 0;
    if (!sends && record.kind != Kind::waits) continue;
    const At qp = story_.find_qp(record.device, record.qpn);
    if (!takes(qp)) continue;
    end(qp, record.time_ns);
    if (!sends && record.cause != Cause::none) since[qp] = at;
  }
  while (!since.empty()) end(since.begin()->first, last_ns);
}

// Adds how many requests a QP has that are posted and not done.
void Perfetto::add_outstanding(At qp) {
  std::vector<std::pair<uint64_t, int>> changes;
  for (const At at : story_.qps[qp].requests) {
    const Request& request = story_.requests[at];
    const At done = request.pushed != kNowhere ? request.pushed : request.acknowledged;
    if (request.is_receive || request.first() == kNowhere || done == kNowhere) continue;
    changes.emplace_back(begin_of(request), 1);
    changes.emplace_back(std::max(story_.time_ns(done), begin_of(request)), -1);
  }
  std::ranges::stable_sort(changes, {}, &std::pair<uint64_t, int>::first);
  int outstanding = 0;
  for (const auto& [ns, change] : changes)
    count(ns, device_pid(story_.qps[qp].device), qp_text(qp) + " outstanding",
          outstanding += change);
}

void Perfetto::write(std::ostream& out) {
  for (At qp = 0; qp < story_.qps.size(); ++qp) {
    if (!takes(qp)) continue;
    add_requests(qp);
    add_outstanding(qp);
  }
  add_arrivals();
  add_calls();
  add_waits();
  add_events();
  // An enclosing slice comes before those in it, which begin with it: it was added before.
  std::ranges::stable_sort(events_, {}, &Event::ns);
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* comma = "\n";
  for (const Json& json : named_) {
    out << comma << json.dump();
    comma = ",\n";
  }
  for (const Event& event : events_) {
    out << comma << event.json.dump();
    comma = ",\n";
  }
  out << "\n]}\n";
}

}  // namespace

void show_perfetto(const Story& story, const Selection& selection, std::ostream& out) {
  Perfetto(story, selection).write(out);
}

}  // namespace rocemu::trace
