#include "emulator/cli/top/details.h"

#include <algorithm>

#include "emulator/cli/top/numbers.h"
#include "emulator/cli/top/reasons.h"

namespace rocemu::cli::top {
namespace {

constexpr std::size_t kLabel = 14;

// A label, and a text beside it that goes on below itself.
void add(Lines& lines, const std::string& label, const std::string& text, std::size_t width) {
  bool first = true;
  for (const std::string& part : wrap(text, width > kLabel + 8 ? width - kLabel : 8)) {
    const std::string left = first ? label : "";
    lines.push_back(left + std::string(kLabel - left.size(), ' ') + part);
    first = false;
  }
}

std::string rates_text(const std::optional<Rates>& rates) {
  if (!rates) return "not known yet";
  return "sends " + short_number(rates->tx_bits) + "b/s, receives " + short_number(rates->rx_bits) +
         "b/s, " + short_number(rates->messages) + " messages/s, " +
         short_number(rates->retransmissions) + " sent again/s, " + short_number(rates->rnrs) +
         " RNR NAKs/s";
}

std::string requests_text(const QpReport& qp) {
  std::string text = std::to_string(qp.posted_requests) + " in the send queue, " +
                     std::to_string(qp.requests) + " taken and not completed, " +
                     std::to_string(qp.completed_requests) + " completed";
  if (qp.oldest_age_us) text += "; the oldest was taken " + short_time(*qp.oldest_age_us) + " ago";
  return text;
}

std::string window_text(const QpReport& qp) {
  std::string text = std::to_string(qp.unacknowledged_packets) + " packets in flight";
  if (qp.window_packets) text += " of " + std::to_string(*qp.window_packets) + " allowed";
  if (qp.retries > 0) text += ", sent again " + std::to_string(qp.retries) + " times in a row";
  return text;
}

std::string control_text(const QpReport& qp) {
  std::string text = "allows " + short_number(*qp.allowed_mbps * 1e6) + "b/s";
  if (qp.window_bytes) text += ", " + short_number(static_cast<double>(*qp.window_bytes)) + "B";
  return text + "; " + std::to_string(qp.cnps) + " CNPs";
}

// Adds the counters in as many columns as there is room for.
void add_counters(Lines& lines, const Counts& counters, std::size_t width) {
  if (counters.empty()) return;
  std::size_t widest = 0;
  std::vector<std::string> cells;
  for (const auto& [name, value] : counters) {
    cells.push_back(name + " " + std::to_string(value));
    widest = std::max(widest, cells.back().size());
  }
  const std::size_t columns = std::max<std::size_t>(1, (width + 2) / (widest + 2));
  const std::size_t rows = (cells.size() + columns - 1) / columns;
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (std::size_t i = row; i < cells.size(); i += rows)
      line += cells[i] + std::string(widest + 2 - cells[i].size(), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
}

}  // namespace

Lines wrap(const std::string& text, std::size_t width) {
  Lines lines;
  std::string rest = text;
  width = std::max<std::size_t>(width, 1);
  while (rest.size() > width) {
    std::size_t cut = rest.rfind(' ', width);
    const bool between = cut != std::string::npos && cut > 0;
    if (!between) cut = width;
    lines.push_back(rest.substr(0, cut));
    rest.erase(0, cut + (between ? 1 : 0));
  }
  lines.push_back(rest);
  return lines;
}

Lines detail_lines(const Qp& qp, std::size_t width) {
  const QpReport& now = qp.now;
  Lines lines;
  const std::string peer =
      now.remote_qpn == 0 ? "no peer" : "peer QP " + std::to_string(now.remote_qpn);
  lines.push_back("QP " + std::to_string(now.qpn) + " of " + now.device + ": " + now.service +
                  ", " + now.state + ", " + peer);
  add(lines, "Program",
      now.program == 0 ? "none" : qp.program + " (" + std::to_string(now.program) + ")", width);
  add(lines, "Rates", rates_text(qp.rates), width);
  const std::string sentence = reason_sentence(qp);
  add(lines, "Waits for",
      sentence.empty() ? "nothing is under way" : reason_word(qp.waits_for) + ": " + sentence,
      width);
  add(lines, "Requests", requests_text(now), width);
  add(lines, "In flight", window_text(now), width);
  add(lines, "Receives",
      std::to_string(now.posted_receives) + " posted; " + std::to_string(now.answered_messages) +
          " messages of the peer carried out (modulo 2^24)",
      width);
  add(lines, "Completions", std::to_string(now.unread_completions) + " unread in its CQs", width);
  if (now.allowed_mbps) add(lines, "Congestion", control_text(now), width);
  lines.push_back("");
  lines.push_back("Counters since the QP was made, those that are not zero:");
  add_counters(lines, now.counters, width);
  return lines;
}

Lines help_lines() {
  return {
      "rocemu top: what happens in a NIC that is up. Rates are over the last interval.",
      "",
      " Up Down PgUp PgDn Home End   choose a row          F1 h ?    this help",
      " Enter   a QP in detail; of a program or device its QPs",
      " Tab     QPs, programs, devices                     F10 q ^C  quit",
      " F3 /    search                                     Z         stop, and go on",
      " F4 \\    filter: rows with this text alone (Esc: all)",
      " F6 > <  choose the column to sort by               I         the other way around",
      " P M T N sort by rate sent, messages, age, number",
      "",
      " TXb/s RXb/s  payload of a QP by the second; of a device whole frames",
      " MSG/s        requests completed, and messages of the peer carried out",
      " RTX/s RNR/s  packets sent again; RNR NAKs sent and received",
      " WIN OUT      packets that may be in flight, and that are",
      " SQ RQ CQ     requests and receives outstanding, completions unread",
      " CCb/s        what congestion control allows",
      " AGE          since the oldest outstanding request was taken",
      " WAITS FOR    window, RNR wait, receives (none is posted here), fence, READs out,",
      "              nobody polls (the CQ), pace, rate limit, path paused, answer, sent",
      "              again, turn, state, earlier. Enter says what it means.",
  };
}

}  // namespace rocemu::cli::top
