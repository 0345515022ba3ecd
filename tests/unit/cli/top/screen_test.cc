#include "emulator/cli/top/screen.h"

#include <catch2/catch.hpp>

#include "emulator/cli/top/details.h"
#include "tests/unit/cli/top/reports.h"

namespace rocemu::cli::top {
namespace {

constexpr Size kSmall{24, 80};

struct Stage {
  Stage() { screen.show(example_view()); }

  std::string shown(Size size = kSmall) {
    const std::vector<Line> lines = screen.draw(size);
    CHECK(lines.size() == size.rows);
    std::string text;
    for (const Line& line : lines) {
      CHECK(line.text.size() <= size.columns);
      text += line.text + "\n";
    }
    return text;
  }
  bool shows(const std::string& what) { return shown().find(what) != std::string::npos; }
  // The line with the '>'.
  std::string selected() {
    for (const Line& line : screen.draw(kSmall))
      if (line.style == Style::selected) return line.text;
    return "";
  }
  bool press(Key::Kind kind, int value = 0) { return screen.on_key({kind, value}); }
  bool type(const std::string& text) {
    bool goes_on = true;
    for (const char c : text) goes_on = press(Key::Kind::character, c);
    return goes_on;
  }

  Screen screen{{.filter = "", .order = {"tx"}}};
};

TEST_CASE("the list shows the NIC, its devices and QPs in 80x24", "[top]") {
  Stage stage;
  const std::string text = stage.shown();
  CHECK(text.find("rocemu top - NIC 'lab' up 0:00:12, 2 devices, 2 programs, 4 QPs\n") == 0);
  CHECK(text.find("rocemu1 DOWN") != std::string::npos);
  CHECK(text.find("QPs: 3, by tx, 1 not listed by the NIC\n") != std::string::npos);
  CHECK(text.find("F1 Help") != std::string::npos);
  CHECK(text.find("F10 Quit") != std::string::npos);
  CHECK(stage.selected().find(">rocemu0  17") == 0);
}

TEST_CASE("keys choose a row, sort, and go through the views", "[top]") {
  Stage stage;
  stage.press(Key::Kind::down);
  CHECK(stage.selected().find("  19 ") != std::string::npos);
  stage.press(Key::Kind::end);
  CHECK(stage.selected().find("  18 ") != std::string::npos);
  stage.press(Key::Kind::page_up);
  CHECK(stage.selected().find("  17 ") != std::string::npos);
  stage.type("N");
  CHECK(stage.shows("by qpn"));
  stage.press(Key::Kind::home);
  CHECK(stage.selected().find("  19 ") != std::string::npos);
  stage.type("I");
  CHECK(stage.shows("by qpn, reversed"));
  stage.press(Key::Kind::tab);
  CHECK(stage.shows("Programs: 2, by tx"));
  stage.type("T");
  CHECK(stage.shows("Programs: 2, by age"));
  stage.press(Key::Kind::tab);
  CHECK(stage.shows("Devices: 2, by device"));
  stage.type("T");  // devices have no age
  CHECK(stage.shows("Devices: 2, by tx"));
  stage.press(Key::Kind::tab);
  CHECK(stage.shows("QPs: 3, by qpn, reversed"));
}

TEST_CASE("the menu of columns", "[top]") {
  Stage stage;
  stage.press(Key::Kind::function, 6);
  CHECK(stage.selected() == ">tx");
  stage.press(Key::Kind::down);
  stage.press(Key::Kind::enter);
  CHECK(stage.shows("by rx"));
  CHECK(stage.shows(">rocemu1"));  // none was selected: the first
  stage.type(">");
  stage.press(Key::Kind::home);
  stage.press(Key::Kind::escape);
  CHECK(stage.shows("by rx"));
}

TEST_CASE("filter and search", "[top]") {
  Stage stage;
  stage.press(Key::Kind::function, 4);
  stage.type("serverx");
  CHECK(stage.shows("none has that text"));
  stage.press(Key::Kind::backspace);
  CHECK(stage.shows("Filter: server_"));
  CHECK(stage.shows("QPs: 2 of 3, by tx, filter 'server'"));
  stage.press(Key::Kind::enter);
  CHECK(stage.type("q") == false);
  stage.press(Key::Kind::escape);
  CHECK(stage.shows("QPs: 3"));
  stage.type("/receives");
  CHECK(stage.shows("Search: receives_"));
  CHECK(stage.selected().find("  18 ") != std::string::npos);
  stage.press(Key::Kind::enter);
  CHECK(stage.shows("F1 Help"));
}

TEST_CASE("one QP in detail, which follows it, and says when it has gone", "[top]") {
  Stage stage;
  stage.press(Key::Kind::enter);
  CHECK(stage.shows("QP 17 of rocemu0: RC, RTS, peer QP 18"));
  CHECK(stage.shows("ib_write_bw (500)"));
  CHECK(stage.shows("window: As many packets are in flight"));
  CHECK(stage.shows("256 packets in flight of 256 allowed"));
  CHECK(stage.shows("the oldest was taken 120us ago"));
  CHECK(stage.shows("tx_payload_bytes 126000000"));
  CHECK(stage.type("q"));
  CHECK(stage.shows("QPs: 3"));
  stage.press(Key::Kind::enter);
  stage.screen.show({});
  CHECK(stage.shows("This QP is gone."));
  stage.press(Key::Kind::escape);
  CHECK(stage.shows(" none"));
}

TEST_CASE("Enter goes from a program to its QPs", "[top]") {
  Stage stage;
  stage.press(Key::Kind::tab);
  stage.press(Key::Kind::enter);
  CHECK(stage.shows("QPs: 1 of 3, by tx, filter 'ib_write_bw'"));
}

TEST_CASE("help, stop, and the keys that quit", "[top]") {
  Stage stage;
  stage.press(Key::Kind::function, 1);
  CHECK(stage.shows("WAITS FOR"));
  CHECK(stage.press(Key::Kind::function, 10));
  CHECK(stage.shows("QPs: 3"));
  stage.type("h");
  CHECK(stage.shows("F10 q ^C"));
  stage.press(Key::Kind::escape);
  stage.type("Z");
  stage.screen.show({});
  CHECK(stage.shows("STOPPED"));
  CHECK(stage.shows("QPs: 3"));
  CHECK_FALSE(stage.press(Key::Kind::function, 10));
  CHECK_FALSE(stage.type("q"));
}

TEST_CASE("any size is drawn, with any key before", "[top]") {
  Stage stage;
  const std::string keys = "h/x\\y>NIZPMT?<q";
  for (std::size_t rows = 1; rows < 30; rows += 3)
    for (std::size_t columns = 2; columns < 200; columns += 21) {
      stage.shown({rows, columns});
      stage.type(keys.substr(rows % keys.size()));
      stage.press(static_cast<Key::Kind>((rows + columns) % 12), 3);
    }
  CHECK(stage.screen.draw({0, 0}).empty());
}

TEST_CASE("a list that is longer than the screen scrolls with the selected row", "[top]") {
  View view = example_view();
  for (std::uint32_t qpn = 100; qpn < 200; ++qpn) {
    view.qps.push_back(view.qps[1]);
    view.qps.back().now.qpn = qpn;
  }
  Stage stage;
  stage.screen.show(view);
  stage.press(Key::Kind::end);
  CHECK(stage.selected().find("199") != std::string::npos);
  stage.press(Key::Kind::up);
  CHECK(stage.selected().find("198") != std::string::npos);
  stage.press(Key::Kind::home);
  CHECK(stage.selected().find("  17 ") != std::string::npos);
}

TEST_CASE("text is cut between words", "[top]") {
  CHECK(wrap("", 10) == Lines{""});
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("abcdefghij", 4) == Lines{"abcd", "efgh", "ij"});
}

}  // namespace
}  // namespace rocemu::cli::top
