// Libraries with algorithms: good ones work as their functions say, all others are refused with a
// line that says why. They are compiled by the test, as anybody would.
#include "emulator/congestion/plugin.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "emulator/congestion/settings.h"

namespace rocemu::congestion {

namespace {

// A folder that goes with the test, and libraries in it.
class Workshop {
 public:
  Workshop() {
    std::string name = (std::filesystem::temp_directory_path() / "plugin-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Workshop() { std::filesystem::remove_all(folder_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string build(const std::string& source, const std::string& flags = "") const {
    const std::string library = folder_ / "lib.so";
    const std::string command = "cc -shared -fPIC -I" ROCEMU_CONGESTION_INCLUDE " " + flags +
                                " -o " + library + " " + source;
    REQUIRE(std::system(command.c_str()) == 0);
    return library;
  }
  // A library with this algorithm, with functions that do nothing to fill it with.
  std::string library(const std::string& members, const std::string& result = "&algorithm") const {
    return build(file("mine.c",
                      "#include <rocemu/congestion.h>\n"
                      "#include <stdlib.h>\n"
                      "static void* create(const struct rocemu_flow* f, const double* p)"
                      "{ (void)f; (void)p; return malloc(1); }\n"
                      "static uint64_t still(const void* s) { (void)s; return 5; }\n"
                      "static void nothing(void* s, uint64_t now) { (void)s; (void)now; }\n"
                      "static const struct rocemu_parameter gain = {\"gain\", \"%\", 5, 0, 10};\n"
                      "static const struct rocemu_parameter bad = {\"gain\", \"%\", 11, 0, 10};\n"
                      "void* used[] = {create, still, nothing, (void*)&gain, (void*)&bad};\n"
                      "static const struct rocemu_algorithm algorithm = {" +
                          members +
                          "};\n"
                          "const struct rocemu_algorithm* rocemu_congestion(void) { return " +
                          result + "; }\n"));
  }

 private:
  std::filesystem::path folder_;
};

const std::string kGood = ".version = 1, .name = \"mine\", .create = create, .destroy = free";

}  // namespace

TEST_CASE("plug-in: the example of the documentation is one, and its parameters are checked") {
  const Workshop workshop;
  const std::string path = workshop.build(ROCEMU_EXAMPLE_GENTLE, "-Wall -Wextra -Werror");
  const ParsedSettings parsed = parse_settings(path + ",decrease=0.5,period=10");
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  CHECK(parsed.settings->name() == "gentle");
  CHECK(parsed.settings->kind->needs.ecn);
  CHECK(parse_settings(path + ",decrease=2").error == "decrease: '2' is no number from 0 to 1");

  const auto flow = parsed.settings->make({.line_rate_bps = 1'000'000'000});
  REQUIRE(flow != nullptr);
  CHECK(flow->rate_bps() == 1'000'000'000);
  CHECK(flow->deadline() == kNever);
  flow->on_cnp(1000);
  CHECK(flow->deadline() == 1000);
  flow->on_timer(1000);
  CHECK(flow->rate_bps() == 500'000'000);
  CHECK(flow->deadline() == 11'000);
  flow->on_timer(11'000);
  CHECK(flow->rate_bps() == 505'000'000);
  CHECK(flow->window_bytes() == kUnlimited);
  REQUIRE(flow->view(12'000).size() == 1);
  CHECK(flow->view(12'000)[0].name == "gentle_cnps");
  CHECK(flow->view(12'000)[0].value == 1);
}

TEST_CASE("plug-in: values without a proper name are not shown") {
  const Workshop workshop;
  const std::string path = workshop.build(workshop.file(
      "view.c",
      "#include <rocemu/congestion.h>\n"
      "static int flow;\n"
      "static void* create(const struct rocemu_flow* f, const double* p)"
      "{ (void)f; (void)p; return &flow; }\n"
      "static void destroy(void* s) { (void)s; }\n"
      "static uint32_t view(const void* s, uint64_t now, struct rocemu_value* v, uint32_t room) {\n"
      "  const char* names[] = {0, \"\", \"\\xff\", \"two words\", \"good-1\", \"\\n\"};\n"
      "  (void)s; (void)now; (void)room;\n"
      "  for (int i = 0; i < 6; ++i) { v[i].name = names[i]; v[i].value = i; }\n"
      "  return 6;\n"
      "}\n"
      "static const struct rocemu_algorithm algorithm = {.version = 1, .name = \"mine\","
      " .create = create, .destroy = destroy, .view = view};\n"
      "const struct rocemu_algorithm* rocemu_congestion(void) { return &algorithm; }\n"));
  const ParsedSettings parsed = parse_settings(path);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  const std::vector<NamedValue> shown = parsed.settings->make({})->view(0);
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].name == "good-1");
}

TEST_CASE("plug-in: what is no good library is refused with a line that says why") {
  const Workshop workshop;
  const auto error = [](const std::string& path) {
    const LoadedPlugin loaded = load_plugin(path);
    CHECK(loaded.kind == nullptr);
    return loaded.error;
  };
  using Catch::Contains;
  using Catch::EndsWith;
  CHECK_THAT(error("/nowhere/lib.so"), Contains("/nowhere/lib.so") && Contains("No such file"));
  CHECK_THAT(error(workshop.file("text.so", "no library at all")), Contains("text.so"));
  CHECK_THAT(error(workshop.build(workshop.file("none.c", "int x;"))),
             EndsWith("it has no function rocemu_congestion()"));
  CHECK_THAT(error(workshop.library(kGood, "0")), EndsWith("returns NULL"));
  CHECK_THAT(error(workshop.library(".version = 2, .name = \"mine\"")),
             EndsWith("it was built for version 2 of rocemu/congestion.h, and this is version 1"));
  CHECK_THAT(error(workshop.library(".version = 1, .create = create, .destroy = free")),
             Contains("its name is none"));
  CHECK_THAT(error(workshop.library(".version = 1, .name = \"mine\", .create = create")),
             EndsWith("it has no create or no destroy function"));
  CHECK_THAT(error(workshop.library(kGood + ", .deadline = still")),
             EndsWith("it has a deadline function and no on_timer"));
  CHECK_THAT(error(workshop.library(kGood + ", .needs = 64")),
             EndsWith("it needs what this version does not know"));
  CHECK_THAT(error(workshop.library(kGood + ", .parameter_count = 3")),
             Contains("its table of parameters is none"));
  CHECK_THAT(error(workshop.library(kGood + ", .parameters = &bad, .parameter_count = 1")),
             Contains("its parameter 0"));
}

TEST_CASE("plug-in: a timer that stands still does not keep the NIC from its other work") {
  const Workshop workshop;
  const ParsedSettings parsed =
      parse_settings(workshop.library(kGood + ", .deadline = still, .on_timer = nothing"));
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  const auto flow = parsed.settings->make({});
  CHECK(flow->deadline() == 5);
  flow->on_timer(1'000'000);
  CHECK(flow->deadline() == 1'001'000);
  CHECK(flow->rate_bps() == kUnlimited);
  CHECK(flow->view(0).empty());
}

}  // namespace rocemu::congestion
