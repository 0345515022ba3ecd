#include "emulator/daemon/options.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "emulator/daemon/limit_profiles.h"

namespace rocemu::daemon {
namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "rocemud");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

struct ConfigFile {
  explicit ConfigFile(const std::string& text)
      : path("/tmp/rocemud-options-" + std::to_string(::getpid()) + ".toml") {
    std::ofstream(path) << text;
  }
  ~ConfigFile() { ::unlink(path.c_str()); }
  std::string path;
};

}  // namespace

TEST_CASE("the directory is all that has to be said") {
  const ParsedOptions parsed = parse({"--dir", "/tmp/x"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->dir == "/tmp/x");
  CHECK(parsed.options->devices == 2);
  CHECK_FALSE(parsed.options->pcap);
  CHECK_FALSE(parsed.options->ready_fd);
  CHECK_FALSE(parsed.options->dma);
  CHECK(parsed.options->parallel == ParallelMode::automatic);
  CHECK(parsed.options->parallel_threads == 0);
  CHECK_FALSE(parsed.options->icrc_always);
  CHECK_FALSE(parsed.options->die_with_parent);
  CHECK_FALSE(parsed.options->check);
}

TEST_CASE("every option has an effect") {
  const ParsedOptions parsed = parse({"--dir",
                                      "/tmp/x",
                                      "--devices",
                                      "8",
                                      "--pcap",
                                      "/tmp/p",
                                      "--pcap-limit-mb",
                                      "64",
                                      "--ready-fd",
                                      "7",
                                      "--log-level",
                                      "debug",
                                      "--die-with-parent",
                                      "--dma",
                                      "mem_fd",
                                      "--parallel",
                                      "never",
                                      "--parallel-threads",
                                      "4",
                                      "--check",
                                      "--icrc",
                                      "always"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->devices == 8);
  CHECK(*parsed.options->pcap == "/tmp/p");
  CHECK(parsed.options->pcap_limit_mb == 64);
  CHECK(*parsed.options->ready_fd == 7);
  CHECK(parsed.options->log_level == "debug");
  CHECK(parsed.options->die_with_parent);
  CHECK(*parsed.options->dma == dma::Method::mem_fd);
  CHECK(parsed.options->parallel == ParallelMode::never);
  CHECK(parsed.options->parallel_threads == 4);
  CHECK(parsed.options->icrc_always);
  CHECK(parsed.options->check);
}

TEST_CASE("what is traced is chosen when the NIC starts") {
  const ParsedOptions parsed =
      parse({"--dir", "/tmp/x", "--trace-on-error", "/tmp/t", "--trace-last", "1024",
             "--trace-filter", "device=rocemu1,qp=0x11,program=ib_write_bw,program=77"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->trace_last == 1024);
  CHECK(parsed.options->trace_devices == std::vector<std::string>{"rocemu1"});
  CHECK(parsed.options->trace_filter.qpns == std::vector<uint32_t>{0x11});
  CHECK(parsed.options->trace_filter.programs == std::vector<std::string>{"ib_write_bw", "77"});
  CHECK(parse({"--dir", "/tmp/x", "--trace", "/tmp/t", "--trace-filter", "qp=17"}).options);

  const auto refused = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"--dir", "/tmp/x"});
    return !parse(words).options;
  };
  CHECK(refused({"--trace-on-error", "/tmp/t", "--trace-last", "1023"}));
  CHECK(refused({"--trace-on-error", "/tmp/t", "--trace-last", "16777217"}));
  CHECK(refused({"--trace", "/tmp/t", "--trace-last", "2048"}));
  CHECK(refused({"--trace", "/tmp/t", "--trace-filter", "port=1"}));
  CHECK(refused({"--trace-filter", "qp=17"}));

  const ConfigFile file(
      "trace-on-error = \"/tmp/t\"\ntrace-last = 4096\n"
      "trace-filter = \"device=rocemu0\"\n");
  const ParsedOptions read = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  REQUIRE(read.options);
  CHECK(read.options->trace_last == 4096);
  CHECK(read.options->trace_devices == std::vector<std::string>{"rocemu0"});
}

TEST_CASE("faults are given one by one, or as tables of the configuration file") {
  using Texts = std::vector<std::string>;
  const ParsedOptions given = parse(
      {"--dir", "/tmp/x", "--fault", "rocemu0 port-down for=1s", "--fault", "all kill after=2s"});
  REQUIRE(given.options);
  CHECK(given.options->faults == Texts{"rocemu0 port-down for=1s", "all kill after=2s"});

  const ConfigFile file(
      "devices = 3\n[[fault]]\ndevice = \"rocemu2\"\nwhat = \"port-down\"\nfor = \"1s\"\n"
      "[[fault]]\nwhat = \"call-fails\"\ncall = \"reg-mr\"\nnth = 3\n[limits]\nmax_qp = 7\n");
  const ParsedOptions configured = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  REQUIRE(configured.options);
  CHECK(configured.options->faults ==
        Texts{"rocemu2 port-down for=1s", "all call-fails call=reg-mr nth=3"});
  CHECK(configured.options->devices == 3);
  CHECK(configured.options->limits.max_qp == 7);

  const ConfigFile list("fault = [\"all pause for=1s\", \"rocemu0 kill\"]\n");
  const ParsedOptions listed = parse({"--dir", "/tmp/x", "--config", list.path.c_str()});
  REQUIRE(listed.options);
  CHECK(listed.options->faults == Texts{"all pause for=1s", "rocemu0 kill"});

  CHECK(parse({"--dir", "/tmp/x", "--fault", "rocemu0 explode"}).exit_code == kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--fault", "rocemu7 kill"}).exit_code == kExitUsage);
}

TEST_CASE("a network is read from its file, and has a host for each device on the switch") {
  const ConfigFile file("[topology]\nkind = \"pair\"\n");
  const ParsedOptions parsed = parse({"--dir", "/tmp/x", "--network", file.path.c_str()});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->network);
  CHECK(parsed.options->network->topology.hosts().size() == 2);
  CHECK(parse({"--dir", "/tmp/x", "--devices", "3", "--network", file.path.c_str()}).exit_code ==
        kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--devices", "3", "--port", "rocemu1=eth0", "--network",
               file.path.c_str()})
            .options);
  CHECK(parse({"--dir", "/tmp/x", "--network", "/nowhere.toml"}).exit_code == kExitUsage);
}

TEST_CASE(
    "ports come from the command line and from the file, and say how many devices there are") {
  const ParsedOptions parsed =
      parse({"--dir", "/tmp/x", "--port", "rocemu0=eth0", "--port", "rocemu2=udp:10.0.0.1"});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->ports.size() == 2);
  CHECK(parsed.options->ports[0].device == "rocemu0");
  CHECK(to_text(parsed.options->ports[1].spec) == "udp:10.0.0.1");
  CHECK(parsed.options->devices == 3);

  const ConfigFile file("port = [\"rocemu0=eth0\", \"rocemu1=switch\"]\ndevices = 4\n");
  const ParsedOptions configured = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  REQUIRE(configured.options);
  CHECK(configured.options->ports.size() == 2);
  CHECK(configured.options->devices == 4);
}

TEST_CASE("a port of no device, of a device too many, or of one twice is refused") {
  CHECK(parse({"--dir", "/tmp/x", "--port", "eth0"}).exit_code == kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--port", "mlx5_0=eth0"}).exit_code == kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--devices", "1", "--port", "rocemu1=eth0"}).exit_code ==
        kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--port", "rocemu0=eth0", "--port", "rocemu0=eth1"}).exit_code ==
        kExitUsage);
}

TEST_CASE("impairments come from the command line and from the file, as one text or several") {
  const auto texts = [](const ParsedOptions& parsed) {
    std::vector<std::string> list;
    REQUIRE(parsed.options);
    for (const auto& assignment : parsed.options->impair) list.push_back(to_text(assignment));
    return list;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts(parse({"--dir", "/tmp/x"})).empty());
  CHECK(texts(parse({"--dir", "/tmp/x", "--impair", "loss=1%,dup=1%", "--impair",
                     "rocemu1.rx:delay=1us"})) ==
        Texts{"all.tx:loss=1%,dup=1%", "rocemu1.rx:delay=1us"});
  {
    const ConfigFile file("impair = \"loss=1%,dup=1%\"\n");
    CHECK(texts(parse({"--dir", "/tmp/x", "--config", file.path.c_str()})) ==
          Texts{"all.tx:loss=1%,dup=1%"});
  }
  const ConfigFile file("impair = [\"loss=1%,dup=1%\", \"rocemu0:none\"]\n");
  CHECK(texts(parse({"--dir", "/tmp/x", "--config", file.path.c_str()})) ==
        Texts{"all.tx:loss=1%,dup=1%", "rocemu0.both:none"});
}

TEST_CASE("bad impairments and impairments of no device are usage errors") {
  CHECK(parse({"--dir", "/tmp/x", "--impair", "loss=1"}).exit_code == kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--impair", "rocemu2:loss=1%"}).exit_code == kExitUsage);
  CHECK(parse({"--dir", "/tmp/x", "--devices", "3", "--impair", "rocemu2:loss=1%"}).options);
  CHECK(parse({"--dir", "/tmp/x", "--impair", ""}).exit_code == kExitUsage);
}

TEST_CASE("congestion control comes from the command line and the file, for all or by device") {
  const auto names = [](const ParsedOptions& parsed) {
    std::vector<std::string> list;
    REQUIRE(parsed.options);
    for (const congestion::Settings& settings : parsed.options->congestion)
      list.push_back(std::string(settings.name()) + ":" + settings.preset);
    return list;
  };
  using Names = std::vector<std::string>;
  CHECK(names(parse({"--dir", "/tmp/x"})) == Names{"adaptive_window:", "adaptive_window:"});
  CHECK(names(parse({"--dir", "/tmp/x", "--congestion", "dcqcn:paper", "--congestion",
                     "rocemu1=none,cnp_dscp=40"})) == Names{"dcqcn:paper", "adaptive_window:"});
  const ConfigFile file(
      "[congestion]\nalgorithm = \"dcqcn:paper\"\nrpg_ai_rate = 7\n"
      "devices = [\"rocemu1=none\"]\n");
  const ParsedOptions configured = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  CHECK(names(configured) == Names{"dcqcn:paper", "adaptive_window:"});
  bool found = false;
  for (const congestion::NamedValue& value : configured.options->congestion[0].parameters())
    found |= value.name == "rpg_ai_rate" && value.value == 7;
  CHECK(found);
  CHECK(names(parse({"--dir", "/tmp/x", "--config", file.path.c_str(), "--congestion",
                     "rocemu0=dcqcn"})) == Names{"dcqcn:mlx5", "adaptive_window:"});
  for (const char* bad : {"cubic", "rocemu2=dcqcn", "dcqcn,rpg_ai_rate=-1", "./nowhere.so"})
    CHECK(parse({"--dir", "/tmp/x", "--congestion", bad}).exit_code == kExitUsage);
}

TEST_CASE("what a configuration file may not say") {
  for (const char* text : {"check = true\n", "ready-fd = 3\n", "devces = 4\n", "devices = 65\n",
                           "recovery = \"selective\"\n", "parallel = \"1\"\n"}) {
    const ConfigFile file(text);
    INFO(text);
    CHECK_FALSE(parse({"--dir", "/tmp/x", "--config", file.path.c_str()}).options);
  }
}

TEST_CASE("two recordings have a file each, wherever they are asked for") {
  const ConfigFile file("pcap = \"/tmp/./x\"\n");
  CHECK_FALSE(
      parse({"--dir", "/tmp/x", "--config", file.path.c_str(), "--trace", "/tmp/x"}).options);
  CHECK(parse({"--dir", "/tmp/x", "--config", file.path.c_str(), "--trace", "/tmp/y"}).options);
}

TEST_CASE("limits come from the configuration file") {
  const ConfigFile file(
      "devices = 3\n[limits]\nmax_qp = 64\nmax_mr_size = 1073741824\n"
      "[transport]\nwindow_packets = 32\n");
  const ParsedOptions parsed = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  REQUIRE(parsed.options);
  CHECK(parsed.options->devices == 3);
  CHECK(parsed.options->limits.max_qp == 64);
  CHECK(parsed.options->limits.max_mr_size == 1073741824);
  CHECK(parsed.options->limits.max_sge == device::DeviceLimits{}.max_sge);
  CHECK(parsed.options->transport.window_packets == 32);
}

TEST_CASE("loss recovery comes from the file, and from the command line before it") {
  const ConfigFile file("[transport]\nrecovery = \"selective-repeat\"\nmultipath = true\n");
  const ParsedOptions parsed = parse({"--dir", "/tmp/x", "--config", file.path.c_str()});
  REQUIRE(parsed.options);
  CHECK(parsed.options->transport.recovery == transport::Recovery::selective_repeat);
  CHECK(parsed.options->transport.multipath);
  const ParsedOptions given =
      parse({"--dir", "/tmp/x", "--config", file.path.c_str(), "--recovery", "go-back-n"});
  REQUIRE(given.options);
  CHECK(given.options->transport.recovery == transport::Recovery::go_back_n);
  CHECK(parse({"--dir", "/tmp/x", "--recovery", "none"}).exit_code == kExitUsage);
}

TEST_CASE("bad usage and bad configuration end with 2") {
  const auto refused = [](std::vector<const char*> arguments) {
    const ParsedOptions parsed = parse(std::move(arguments));
    return !parsed.options && parsed.exit_code == kExitUsage;
  };
  CHECK(refused({}));
  CHECK(refused({"--dir", "/tmp/x", "--devices", "0"}));
  CHECK(refused({"--dir", "/tmp/x", "--devices", "65"}));
  CHECK(refused({"--dir", "/tmp/x", "--dma", "magic"}));
  CHECK(refused({"--dir", "/tmp/x", "--parallel", "sometimes"}));
  CHECK(refused({"--dir", "/tmp/x", "--parallel-threads", "17"}));
  CHECK(refused({"--dir", "/tmp/x", "--icrc", "never"}));
  CHECK(refused({"--dir", "/tmp/x", "--nonsense"}));
  CHECK(refused({"--dir", "/tmp/x", "--config", "/nowhere/x.toml"}));
  const ConfigFile file(GENERATE("[limits]\nmax_qp = 0\n", "[limits]\nmax_qp = 65537\n",
                                 "[limits]\nbogus = 1\n", "[bogus]\nmax_qp = 1\n",
                                 "[transport]\nwindow_packets = -1\n",
                                 "[transport]\nrto_low_us = 1000001\n", "devices = many\n"));
  CHECK(refused({"--dir", "/tmp/x", "--config", file.path.c_str()}));
}

TEST_CASE("a profile sets the limits, and a limit of its own goes before it") {
  const ConfigFile file("[limits]\nmax_inline_data = 128\nprofile = \"rxe-like\"\nmax_srq = 7\n");
  const ParsedOptions parsed = parse({"--dir", "/tmp/x", "--config", file.path.c_str(), "--port",
                                      "rocemu0=switch", "--impair", "loss=1%"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->limits.max_ah == 100);
  CHECK(parsed.options->limits.max_cqe == 32767);
  CHECK(parsed.options->limits.max_inline_data == 128);
  CHECK(parsed.options->limits.max_srq == 7);
  CHECK(parsed.options->ports.size() == 1);
  CHECK(parsed.options->impair.size() == 1);

  const ConfigFile unknown("[limits]\nprofile = \"mlx4-like\"\n");
  CHECK(parse({"--dir", "/tmp/x", "--config", unknown.path.c_str()}).exit_code == kExitUsage);
}

// What a profile says can also be said value by value.
TEST_CASE("profiles stay within what the options allow") {
  for (const std::string& name : limit_profile_names()) {
    const auto limits = limit_profile(name);
    REQUIRE(limits);
    const auto line = [](const char* key, uint64_t value) {
      return std::string(key) + " = " + std::to_string(value) + "\n";
    };
    const ConfigFile file(
        "[limits]\n" + line("max_qp", limits->max_qp) + line("max_qp_wr", limits->max_qp_wr) +
        line("max_sge", limits->max_sge) + line("max_cq", limits->max_cq) +
        line("max_cqe", limits->max_cqe) + line("max_mr", limits->max_mr) +
        line("max_mw", limits->max_mw) + line("max_pd", limits->max_pd) +
        line("max_ah", limits->max_ah) + line("max_srq", limits->max_srq) +
        line("max_srq_wr", limits->max_srq_wr) + line("max_srq_sge", limits->max_srq_sge) +
        line("max_mcast_grp", limits->max_mcast_grp) +
        line("max_total_mcast_qp_attach", limits->max_total_mcast_qp_attach) +
        line("max_mr_size", limits->max_mr_size) + line("max_msg_size", limits->max_msg_size));
    CHECK(parse({"--dir", "/tmp/x", "--config", file.path.c_str()}).options);
  }
  CHECK_FALSE(limit_profile("mlx4-like"));
}

TEST_CASE("a NIC is shaken when that is asked for, with a seed, and some of it are limits") {
  CHECK_FALSE(parse({"--dir", "/tmp/x"}).options->shake.on());
  const Options all = *parse({"--dir", "/tmp/x", "--shake"}).options;
  CHECK(all.shake.chosen.all());
  CHECK(all.shake.seed != 0);
  CHECK(all.limits.grants_exactly);
  CHECK(all.limits.max_sge == limit_profile("smallest-common")->max_sge);
  const Options some = *parse({"--dir", "/tmp/x", "--shake=-limits,-exact-sizes,seed=7"}).options;
  CHECK(shake::to_text(some.shake) == "all,-exact-sizes,-limits,strength=50,seed=7");
  CHECK_FALSE(some.limits.grants_exactly);
  CHECK(some.limits.max_sge == device::DeviceLimits{}.max_sge);
  CHECK(parse({"--dir", "/tmp/x", "--shake=nonsense"}).exit_code == kExitUsage);
}

TEST_CASE("[shake] says the same, and the command line goes before it") {
  const ConfigFile file("[shake]\nbehaviours = [\"rnr\", \"garbage\"]\nstrength = 20\nseed = 9\n");
  CHECK(shake::to_text(parse({"--dir", "/tmp/x", "--config", file.path.c_str()}).options->shake) ==
        "rnr,garbage,strength=20,seed=9");
  CHECK(shake::to_text(
            parse({"--dir", "/tmp/x", "--shake=events,seed=2", "--config", file.path.c_str()})
                .options->shake) == "events,strength=50,seed=2");
  const ConfigFile strong("[shake]\nstrength = 90\n");
  CHECK(parse({"--dir", "/tmp/x", "--config", strong.path.c_str()}).options->shake.chosen.all());
}

TEST_CASE("the smallest common device has no more of anything than those it is made of") {
  const device::DeviceLimits smallest = *limit_profile("smallest-common");
  for (const char* name : {"default", "rxe-like"})
    CHECK(smaller_limits(smallest, *limit_profile(name)).max_qp_rd_atom == smallest.max_qp_rd_atom);
  CHECK(smaller_limits({}, smallest).max_inline_data == smallest.max_inline_data);
  CHECK(smaller_limits(smallest, {}).max_mr_size == smallest.max_mr_size);
}

}  // namespace rocemu::daemon
