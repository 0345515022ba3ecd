#include "emulator/cli/top/table.h"

#include <catch2/catch.hpp>

#include "emulator/cli/top/columns.h"
#include "emulator/cli/top/numbers.h"
#include "emulator/cli/top/once.h"
#include "tests/unit/cli/top/reports.h"

namespace rocemu::cli::top {
namespace {

Table example() {
  return {{{.id = "name", .title = "NAME", .least = 3},
           {.id = "size", .title = "SIZE", .number = true},
           {.id = "note", .title = "NOTE", .spare = 1}},
          {{"1", {{"bee"}, {"10", 10}, {"x"}}},
           {"2", {{"Ant"}, {"9", 9}, {"yy"}}},
           {"3", {{"cat"}, {"10", 10}, {"longer"}}}}};
}

std::string keys(const Table& table) {
  std::string keys;
  for (const Row& row : table.rows) keys += row.key;
  return keys;
}

TEST_CASE("numbers are sorted by value, the largest first, and equal rows stay", "[top]") {
  Table table = example();
  sort(table, {"size"});
  CHECK(keys(table) == "132");
  sort(table, {"size", true});
  CHECK(keys(table) == "213");
  table = example();
  sort(table, {"name"});
  CHECK(keys(table) == "213");
  sort(table, {"name", true});
  CHECK(keys(table) == "312");
  sort(table, {"no-such-column"});
  CHECK(keys(table) == "312");
}

TEST_CASE("a filter leaves the rows with the text in a cell, large or small", "[top]") {
  const auto left = [](const char* text) {
    Table table = example();
    filter(table, text);
    return keys(table);
  };
  CHECK(left("") == "123");
  CHECK(left("ANT") == "2");
  CHECK(left("10") == "13");
  CHECK(left("none") == "");
}

TEST_CASE("columns are as wide as what is in them", "[top]") {
  const Layout layout = lay_out(example(), 0);
  CHECK(layout.header == "NAME SIZE NOTE");
  CHECK(layout.rows == std::vector<std::string>{"bee    10 x", "Ant     9 yy", "cat    10 longer"});
}

TEST_CASE("where there is no room, names are cut first, then columns go", "[top]") {
  Table table = example();
  table.rows[0].cells[0].text = "butterfly";
  CHECK(lay_out(table, 21).rows[0] == "butterfly   10 x");
  CHECK(lay_out(table, 17).rows[0] == "butt~   10 x");
  // Without the note there is room for the name again.
  const Layout narrow = lay_out(table, 14);
  CHECK(narrow.header == "NAME      SIZE");
  CHECK(narrow.rows[0] == "butterfly   10");
  for (const std::string& row : lay_out(table, 5).rows) CHECK(row.size() <= 5);
}

TEST_CASE("the table of QPs fits 80 columns with what matters", "[top]") {
  const Layout layout = lay_out(table_of_qps(example_view()), 79);
  for (const char* title : {"DEVICE", "QPN", "PROGRAM", "TXb/s", "RXb/s", "MSG/s", "RTX/s", "RNR/s",
                            "WIN", "AGE", "WAITS FOR"})
    CHECK(layout.header.find(title) != std::string::npos);
  REQUIRE(layout.rows.size() == 3);
  CHECK(layout.rows[0].find("ib_write_bw") != std::string::npos);
  CHECK(layout.rows[0].find("500M") != std::string::npos);
  CHECK(layout.rows[0].find("window") != std::string::npos);
  for (const std::string& row : layout.rows) CHECK(row.size() <= 79);
}

TEST_CASE("figures are short", "[top]") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(0.01) == "0.1");
  CHECK(short_number(0.5) == "0.5");
  CHECK(short_number(999) == "999");
  CHECK(short_number(999.6) == "1.0k");
  CHECK(short_number(12'345) == "12.3k");
  CHECK(short_number(123'456) == "123k");
  CHECK(short_number(999'600) == "1.0M");
  CHECK(short_number(5e12) == "5.0T");
  CHECK(short_number(-1) == "?");
  CHECK(short_time(12.4) == "12us");
  CHECK(short_time(1234) == "1.2ms");
  CHECK(short_time(3.4e6) == "3.4s");
  CHECK(short_time(600e6) == "10m");
  CHECK(short_time(3 * 3600e6) == "3h");
  CHECK(short_time(72 * 3600e6) == "3d");
  CHECK(clock_time(3723) == "1:02:03");
  CHECK(clock_time(86400 + 61) == "1d 0:01:01");
  CHECK(clock_time(-1) == "?");
}

TEST_CASE("top --once prints all columns, sorted and filtered", "[top]") {
  const View view = example_view();
  const std::string text = once_text(view, {.filter = "rocemu0", .order = {"qpn", true}});
  CHECK(text.find("NIC 'lab', up 0:00:12, rates over 2.0s\n") == 0);
  CHECK(text.find("CCb/s") != std::string::npos);
  CHECK(text.find("25.0G") != std::string::npos);
  CHECK(text.find("rocemu0  17") < text.find("rocemu0  19"));
  CHECK(text.find("rocemu1  18") == std::string::npos);
  CHECK(text.find("and 1 QPs more") != std::string::npos);

  const Json json = once_json(view, {.filter = "", .order = {"tx"}});
  CHECK(json.at("interval_s") == 2.0);
  REQUIRE(json.at("qps").size() == 3);
  CHECK(json.at("qps").at(0).at("qpn") == 17);
  CHECK(json.at("qps").at(0).at("tx_bits_per_s") == 500e6);
  CHECK(json.at("qps").at(0).at("waits_for") == "window");
  CHECK(json.at("programs").at(0).at("program_name") == "ib_write_bw");
  CHECK(json.at("devices").at(0).at("algorithm") == "dcqcn");
  const Report first = read_report(status_at(10, 1, 1, 1));
  CHECK(once_json(make_view(nullptr, first, name_of), {})
            .at("qps")
            .at(0)
            .at("tx_bits_per_s")
            .is_null());
}

}  // namespace
}  // namespace rocemu::cli::top
