#include "emulator/daemon/view/metrics.h"

#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rocemu::daemon {
namespace {

struct MetricsStage {
  MetricsStage() {
    snapshot.devices.resize(2);
    snapshot.devices[1].counters[transport::TraceEvent::write_executed] = 7;
    snapshot.devices[1].port.rx_bytes = 4004;
    snapshot.devices[1].objects.qps = 1;
    device::QpReport qp;
    qp.qpn = wire::Qpn{17};
    qp.service = transport::Service::rc;
    qp.remote_qpn = wire::Qpn{18};
    qp.remote_gid = devices[0].port.gids[1].gid;
    qp.program = 4711;
    qp.load.requests = 3;
    qp.counters[transport::TraceEvent::retransmitted] = 5;
    snapshot.devices[1].qps = {qp};
  }
  std::string text() const {
    return to_prometheus({1'500'000'000, devices, link_downs, snapshot, programs});
  }
  std::string line(const std::string& name) const {
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name)) return line;
    return "";
  }

  std::vector<device::HcaConfig> devices{device::default_config(0), device::default_config(1)};
  std::vector<uint64_t> link_downs{2, 0};
  EngineSnapshot snapshot;
  std::unordered_map<pid_t, std::string> programs{{4711, "ib_write_bw"}};
};

}  // namespace

TEST_CASE("counters have sysfs' names and values, data in bytes") {
  const MetricsStage stage;
  CHECK(stage.line("rocemu_uptime_seconds") == "rocemu_uptime_seconds 1.5");
  CHECK(stage.line("rocemu_info") == "rocemu_info{version=\"" ROCEMU_VERSION "\"} 1");
  CHECK(stage.line("rocemu_link_downed_total") ==
        R"(rocemu_link_downed_total{device="rocemu0",port="1"} 2)");
  CHECK(stage.line(R"(rocemu_rx_write_requests_total{device="rocemu1")") ==
        R"(rocemu_rx_write_requests_total{device="rocemu1",port="1"} 7)");
  CHECK(stage.line(R"(rocemu_port_rcv_data_bytes_total{device="rocemu1")") ==
        R"(rocemu_port_rcv_data_bytes_total{device="rocemu1",port="1"} 4004)");
  CHECK(stage.line(R"(rocemu_port_up{device="rocemu1")") ==
        R"(rocemu_port_up{device="rocemu1",port="1"} 1)");
  CHECK(stage.line(R"(rocemu_objects{device="rocemu1",port="1",kind="qps")") ==
        R"(rocemu_objects{device="rocemu1",port="1",kind="qps"} 1)");
  CHECK(stage.line("rocemu_lifespan").empty());
}

TEST_CASE("a QP's counters name its program and its peer") {
  const MetricsStage stage;
  const std::string labels =
      R"({device="rocemu1",port="1",qpn="17",service="RC",program="ib_write_bw",pid="4711",)"
      R"(peer="10.77.0.1/18"})";
  CHECK(stage.line("rocemu_qp_requests") == "rocemu_qp_requests" + labels + " 3");
  CHECK(stage.line("rocemu_qp_retransmitted_pkts_total") ==
        "rocemu_qp_retransmitted_pkts_total" + labels + " 5");
  CHECK(stage.line("rocemu_qp_req_cqe_error_total") ==
        "rocemu_qp_req_cqe_error_total" + labels + " 0");
}

TEST_CASE("what a program calls itself cannot break out of its label") {
  MetricsStage stage;
  stage.programs[4711] = "a\"b\\c\nd\xff";
  CHECK(stage.line("rocemu_qp_requests").find(R"(program="a\"b\\c?d?",pid)") != std::string::npos);
  stage.programs.clear();
  stage.snapshot.devices[1].qps[0].remote_qpn = {};
  CHECK(stage.line("rocemu_qp_requests").find(R"(program="",pid="4711",peer=""})") !=
        std::string::npos);
}

TEST_CASE("the text has the form that Prometheus reads") {
  const std::regex meta(R"(# (HELP|TYPE) ([a-zA-Z_][a-zA-Z0-9_]*) (.*))");
  const std::regex sample(
      R"re(([a-zA-Z_][a-zA-Z0-9_]*)(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? [0-9]+(\.[0-9]+)?)re");
  std::set<std::string> begun;   // no metric is begun twice: its samples stand together
  std::set<std::string> series;  // none is there twice
  std::string name;
  std::istringstream lines(MetricsStage().text());
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::smatch parts;
    if (std::regex_match(line, parts, meta)) {
      if (parts[1] == "HELP") CHECK(begun.insert(parts[2]).second);
      if (parts[1] == "TYPE") CHECK((parts[3] == "counter" || parts[3] == "gauge"));
      if (parts[1] == "TYPE") CHECK((parts[3] == "counter") == parts[2].str().ends_with("_total"));
      name = parts[2];
      continue;
    }
    REQUIRE(std::regex_match(line, parts, sample));
    CHECK(parts[1] == name);
    CHECK(series.insert(line.substr(0, line.rfind(' '))).second);
  }
  CHECK(series.size() > 100);
}

}  // namespace rocemu::daemon
