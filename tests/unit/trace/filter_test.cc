#include "emulator/trace/record/filter.h"

#include <catch2/catch.hpp>

namespace rocemu::trace {

TEST_CASE("trace filter: what is not named is not asked for") {
  Filter filter;
  CHECK(filter.everything());
  CHECK(lets_through(filter, 17, "", 0));
  filter.qpns = {17, 18};
  CHECK(lets_through(filter, 18, "ib_send_bw", 100));
  CHECK(!lets_through(filter, 19, "ib_send_bw", 100));
  filter.programs = {"ib_send_bw", "4711"};
  CHECK(!filter.everything());
  CHECK(lets_through(filter, 17, "ib_send_bw", 100));
  CHECK(lets_through(filter, 17, "other", 4711));
  CHECK(!lets_through(filter, 17, "other", 100));
  CHECK(!lets_through(filter, 17, "", 0));
  CHECK(!lets_through(filter, 20, "ib_send_bw", 100));
}

TEST_CASE("trace filter: its text") {
  Filter filter;
  std::vector<std::string> devices;
  REQUIRE(
      parse_filter("device=rocemu1,qp=17,qp=0x12,program=ib_write_bw", filter, devices).empty());
  CHECK(devices == std::vector<std::string>{"rocemu1"});
  CHECK(filter.qpns == std::vector<uint32_t>{17, 18});
  CHECK(filter.programs == std::vector<std::string>{"ib_write_bw"});
  CHECK(parse_filter("", filter, devices).empty());

  const auto refused = [](const char* text) {
    Filter none;
    std::vector<std::string> names;
    return parse_filter(text, none, names);
  };
  CHECK(refused("qp") == "'qp' is no KEY=VALUE");
  CHECK(refused("qp=") == "'qp=' is no KEY=VALUE");
  CHECK(refused(",") == "'' is no KEY=VALUE");
  CHECK(refused("colour=red") == "'colour' is none of device, qp, program");
  for (const char* text : {"qp=x", "qp=-1", "qp=0x1000000", "qp=17x", "qp=99999999999999999999"})
    CHECK(refused(text).find("is no QPN") != std::string::npos);
}

}  // namespace rocemu::trace
