#include "emulator/daemon/view/status.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rocemu::daemon {
namespace {

std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("the status has the keys that scripts rely on, in their order") {
  std::vector<device::HcaConfig> devices = {device::default_config(0), device::default_config(1)};
  devices[1].port.active = false;
  Status status;
  status.uptime_ns = 1'500'000'000;
  status.devices = devices;
  status.snapshot.devices.resize(2);
  status.snapshot.devices[0].counters[transport::TraceEvent::sent] = 7;
  status.snapshot.engine.inline_turns = 3;
  status.links.resize(1);
  status.links[0].transmit.spec = impairment::parse_assignment("loss=1%").assignment.value().spec;

  const auto json = nlohmann::ordered_json::parse(to_json(status));
  CHECK(keys(json) ==
        std::vector<std::string>{"version", "pid", "uptime_s", "dma", "devices", "engine"});
  CHECK(json.at("uptime_s") == 1.5);
  CHECK(json.at("dma") == "auto");
  CHECK(json.at("engine").at("borrowed_turns") == 3);

  const auto& first = json.at("devices").at(0);
  CHECK(keys(first) == std::vector<std::string>{"name", "node_guid", "mac", "gids", "mtu",
                                                "port_state", "objects", "counters", "qps",
                                                "recovery", "port", "congestion_control",
                                                "impairments"});
  CHECK(first.at("name") == "rocemu0");
  CHECK(first.at("port_state") == "ACTIVE");
  CHECK(first.at("counters").at("tx_frames") == 7);
  CHECK(first.at("impairments").at("tx") == "loss=1%");
  CHECK(first.at("impairments").at("rx").is_null());

  // A device whose port has no links that could be impaired shows none.
  const auto& second = json.at("devices").at(1);
  CHECK(second.at("port_state") == "DOWN");
  CHECK(second.at("impairments").at("tx").is_null());
}

TEST_CASE("the status says how the NIC is shaken, and how often what was done to each device") {
  const std::vector<device::HcaConfig> devices = {device::default_config(0)};
  const shake::Settings settings = *shake::parse_settings("rnr,events,seed=5").settings;
  Status status;
  status.devices = devices;
  status.snapshot.devices.resize(1);
  status.shake = &settings;
  status.shaken.resize(1);
  status.shaken[0][shake::index_of(shake::Behaviour::rnr)] = 3;
  const auto json = nlohmann::ordered_json::parse(to_json(status));
  CHECK(json.at("shake") == "events,rnr,strength=50,seed=5");
  CHECK(json.at("devices").at(0).at("shaken") == nlohmann::ordered_json{{"events", 0}, {"rnr", 3}});
}

TEST_CASE("the status has QPs, with what their counters have counted") {
  const std::vector<device::HcaConfig> devices = {device::default_config(0)};
  Status status;
  status.devices = devices;
  status.snapshot.devices.resize(1);
  device::QpReport qp{.qpn = wire::Qpn{17},
                      .service = transport::Service::xrc_receive,
                      .state = transport::QpState::error,
                      .remote_qpn = wire::Qpn{18},
                      .program = 4711,
                      .load = {.requests = 2, .unacknowledged_psns = 3},
                      .counters = {},
                      .wait = {.posted = 7,
                               .requests = 2,
                               .completed = 9,
                               .window_packets = 256,
                               .retries = 1,
                               .oldest_age_ns = 1500,
                               .rnr_left_ns = 2000,
                               .answered_messages = 4,
                               .receives_posted = 6,
                               .unread_completions = 8},
                      .waits_for = transport::WaitReason::rnr};
  qp.counters[transport::TraceEvent::retransmitted] = 5;
  status.snapshot.devices[0].qps = {qp};
  const auto json = nlohmann::ordered_json::parse(to_json(status));
  CHECK(json.at("devices").at(0).at("qps").dump() ==
        R"([{"qpn":17,"service":"XRC_RECV","state":"ERR","remote_qpn":18,"program":4711,)"
        R"("requests":2,"unacknowledged_packets":3,"counters":{"retransmitted_frames":5},)"
        R"("waits_for":"rnr","wait_left_us":2.0,"oldest_request_age_us":1.5,"posted_requests":7,)"
        R"("completed_requests":9,"answered_messages":4,"window_packets":256,"retries":1,)"
        R"("posted_receives":6,"unread_completions":8}])");
  status.snapshot.devices[0].qps[0].wait = {};
  status.snapshot.devices[0].qps[0].waits_for = transport::WaitReason::none;
  const auto idle = nlohmann::ordered_json::parse(to_json(status)).at("devices").at(0).at("qps");
  CHECK(idle.at(0).at("waits_for").is_null());
  CHECK(idle.at(0).at("oldest_request_age_us").is_null());
  CHECK(idle.at(0).at("window_packets").is_null());
}

TEST_CASE("what an algorithm shows of a flow takes the place of nothing else") {
  const std::vector<device::HcaConfig> devices = {device::default_config(0)};
  Status status;
  status.devices = devices;
  status.snapshot.devices.resize(1);
  transport::FlowReport flow;
  flow.cnps = 5;
  flow.values = {{"cnps", 77}, {"alpha", 0.5}};
  status.snapshot.devices[0].flows = {flow};
  const auto json = nlohmann::ordered_json::parse(to_json(status));
  const auto& shown = json.at("devices").at(0).at("congestion_control").at("qps").at(0);
  CHECK(shown.at("cnps") == 5);
  CHECK(shown.at("alpha") == 0.5);
}

TEST_CASE("the status has the ports of a network that something has happened at") {
  Status status;
  CHECK_FALSE(nlohmann::ordered_json::parse(to_json(status)).contains("network"));
  status.network.resize(3);
  status.network[1].node = "s0";
  status.network[1].far_node = "s1";
  status.network[1].queue_bytes = 5;
  status.network[1].paused_ns = 7;
  status.network[1].counters.frames = 9;
  status.network[1].counters.queue_max_bytes[3] = 11;
  ++status.network[1].counters.of(network::NetworkLoss::no_room);
  status.network[2].up = false;
  const auto json = nlohmann::ordered_json::parse(to_json(status)).at("network");
  REQUIRE(json.size() == 2);
  CHECK(json[0].at("port") == "s0 to s1");
  CHECK(json[0].at("frames") == 9);
  CHECK(json[0].at("queue_bytes") == 5);
  CHECK(json[0].at("queue_max_bytes").dump() == R"({"3":11})");
  CHECK(json[0].at("paused_ns") == 7);
  CHECK(json[0].at("lost").dump() == R"({"no_room":1})");
  CHECK(json[1].at("up") == false);
}

TEST_CASE("the status tells of connections when they are managed") {
  const cm::RdmaCm cm(cm::Interfaces({}), [] { return uint64_t{1}; });
  Status status;
  status.cm = &cm;
  const auto json = nlohmann::ordered_json::parse(to_json(status));
  CHECK(json.at("connection_management").at("ids") == 0);
  CHECK(json.at("devices").empty());
}

}  // namespace rocemu::daemon
