#include "emulator/daemon/attachment/links.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/view/link_report.h"
#include "tests/unit/daemon/nic_fixture.h"

namespace rocemu::daemon {
namespace {

impairment::Assignment assignment_of(const std::string& text) {
  return impairment::parse_assignment(text).assignment.value();
}

}  // namespace

TEST_CASE("assignments reach the links they name, and the last one counts") {
  NicFixture nic;
  dpdk_io::Switch fabric(nic.pool());
  std::vector<device::HcaConfig> devices;
  std::vector<dpdk_io::LinkedPort*> ports;
  for (uint32_t i = 0; i < 3; ++i) {
    devices.push_back(device::default_config(i));
    ports.push_back(&fabric.add_port(devices[i].port.mac, devices[i].name));
  }
  CHECK(names_a_device(assignment_of("loss=1%"), devices));
  CHECK(names_a_device(assignment_of("rocemu2:loss=1%"), devices));
  CHECK_FALSE(names_a_device(assignment_of("rocemu3:loss=1%"), devices));
  CHECK_FALSE(names_a_device(assignment_of("rocemu:loss=1%"), devices));

  for (const char* text :
       {"loss=1%", "rocemu1.rx:delay=5us", "rocemu2.both:dup=1%", "rocemu0:none"})
    set_links(ports, assignment_of(text), devices);
  const auto shown = nlohmann::json::parse(links_to_json(report_links(ports), devices));
  REQUIRE(shown.size() == 6);
  std::vector<std::string> lines;
  for (const auto& link : shown)
    lines.push_back(link.at("device").get<std::string>() + "." +
                    link.at("direction").get<std::string>() + ":" +
                    link.at("spec").get<std::string>());
  CHECK(lines == std::vector<std::string>{"rocemu0.tx:none", "rocemu0.rx:none",
                                          "rocemu1.tx:loss=1%", "rocemu1.rx:delay=5us",
                                          "rocemu2.tx:dup=1%", "rocemu2.rx:dup=1%"});
  CHECK(shown[0].at("frames") == 0);
}

}  // namespace rocemu::daemon
