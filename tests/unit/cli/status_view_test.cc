#include "emulator/cli/status_view.h"

#include <catch2/catch.hpp>

namespace rocemu::cli {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("status shows devices, GIDs and counts", "[cli]") {
  const Json status = Json::parse(R"({
    "name": "default", "version": "1.2.3",
    "devices": [
      {"name": "rocemu0", "state": "ACTIVE", "gids": ["fe80::1", "::ffff:10.77.0.1"],
       "objects": {"pd": 1, "qp": 12}},
      {"name": "rocemu10", "state": "ACTIVE",
       "gids": [{"index": 1, "gid": "::ffff:10.77.0.11", "type": "RoCE v2"}],
       "objects": {"pd": 0, "srq": 3}}]})");
  CHECK(status_text(status) ==
        "name default, version 1.2.3\n"
        "\n"
        "rocemu0   state ACTIVE\n"
        "rocemu10  state ACTIVE\n"
        "\n"
        "DEVICE    INDEX  GID\n"
        "rocemu0   0      fe80::1\n"
        "rocemu0   1      ::ffff:10.77.0.1\n"
        "rocemu10  1      ::ffff:10.77.0.11  RoCE v2\n"
        "\n"
        "DEVICE    pd  qp  srq\n"
        "rocemu0   1   12  -\n"
        "rocemu10  0   -   3\n");
}

TEST_CASE("counters are shown when they are not zero", "[cli]") {
  const Json status = Json::parse(R"({
    "uptime_s": 3.14159, "engine": {"turns": 7, "sleeps": 0},
    "devices": [{"name": "rocemu0", "counters": {"rx_frames": 5, "ack_timeouts": 0},
                 "port": {"rx_bytes": 0}}]})");
  CHECK(status_text(status) ==
        "uptime_s 3.1\n"
        "engine: turns 7\n"
        "\n"
        "rocemu0\n"
        "\n"
        "rocemu0  counters  rx_frames 5\n");
}

TEST_CASE("the ports of a network are shown with what they have seen", "[cli]") {
  const Json status = Json::parse(R"({
    "name": "default", "devices": [],
    "network": [
      {"port": "h0 to s0", "up": true, "frames": 9, "marked": 0, "queue_max_bytes": {}, "lost": {}},
      {"port": "s0 to s1", "up": false, "frames": 7, "marked": 2,
       "queue_max_bytes": {"0": 3000, "3": 4500}, "lost": {"no_room": 4}}]})");
  CHECK(status_text(status) ==
        "name default\n"
        "\n"
        "NETWORK PORT\n"
        "h0 to s0      up true, frames 9\n"
        "s0 to s1      up false, frames 7, marked 2, queue_max_bytes (0 3000, 3 4500), lost "
        "(no_room 4)\n");
}

TEST_CASE("status of another shape is shown as far as it goes", "[cli]") {
  for (const char* text : {"{}", R"({"devices": 3})", R"({"devices": [1, null, {}]})",
                           R"({"devices": [{"name": 5, "gids": 7, "objects": [1]}]})",
                           R"({"devices": [{"gids": [null, {"gid": {}}], "objects": {"a": []}}]})",
                           R"({"network": [7, {}, {"port": 3, "lost": []}]})"}) {
    CHECK_NOTHROW(status_text(Json::parse(text)));
  }
  CHECK(status_text(Json::parse(R"({"engine": {"polls": 7}})")).find("engine: polls 7") !=
        std::string::npos);
}

TEST_CASE("links are a table with the counts that are not zero", "[cli]") {
  const Json links = Json::parse(R"([
    {"device": "rocemu0", "direction": "tx", "spec": "loss=1%", "frames": 200, "lost": 3, "dup": 0},
    {"device": "rocemu0", "direction": "rx", "spec": "none", "frames": 0, "lost": 0, "dup": 0}])");
  CHECK(links_text(links) ==
        "DEVICE   DIR  IMPAIRMENTS\n"
        "rocemu0  tx   loss=1%      frames 200, lost 3\n"
        "rocemu0  rx   none\n");
}

TEST_CASE("links without impairments are not in the status", "[cli]") {
  CHECK(status_text(Json::parse(R"({"devices": [
    {"name": "rocemu0", "impairments": {"tx": "loss=1%", "rx": null}},
    {"name": "rocemu1", "impairments": {"tx": null, "rx": null}}]})")) ==
        "rocemu0\n"
        "rocemu1\n"
        "\n"
        "rocemu0  impairments  tx loss=1%\n");
}

}  // namespace
}  // namespace rocemu::cli
