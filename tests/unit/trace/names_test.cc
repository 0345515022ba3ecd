#include "emulator/trace/format/names.h"

#include <bit>
#include <catch2/catch.hpp>
#include <string>

namespace rocemu::trace {

namespace {

void add_all(Names& names, const std::vector<Record>& records) {
  for (const Record& record : records) CHECK(names.add(std::bit_cast<NameRecord>(record)));
}

}  // namespace

TEST_CASE("trace names: what a file calls a number, or else the number") {
  Names names;
  add_all(names, name_records(Table::device, 1, "rocemu1", 4096));
  add_all(names, name_records(Table::program, 1, "ib_write_bw", 4711));
  CHECK(names.text(Table::device, 1) == "rocemu1");
  CHECK(names.text(Table::device, 2) == "device 2");
  CHECK(names.text(Table::rule, 7) == "rule 7");
  REQUIRE(names.find(Table::program, 1) != nullptr);
  CHECK(names.find(Table::program, 1)->detail == 4711);
  CHECK(names.find(Table::program, 0) == nullptr);
  CHECK(names.all(Table::device).size() == 1);
}

TEST_CASE("trace names: long ones take several records, the longest are cut off") {
  for (const size_t length : {size_t{0}, NameRecord::kBytes, NameRecord::kBytes + 1,
                              NameRecord::kBytes * NameRecord::kMaxParts + 1}) {
    const std::string text(length, 'x');
    Names names;
    add_all(names, name_records(Table::program, 3, text));
    REQUIRE(names.find(Table::program, 3) != nullptr);
    CHECK(names.find(Table::program, 3)->text ==
          text.substr(0, NameRecord::kBytes * NameRecord::kMaxParts));
  }
}

TEST_CASE("trace names: a later text replaces the first; addresses are collected") {
  Names names;
  for (const char* text : {"first", "second"}) {
    add_all(names, name_records(Table::impairment, 0, text));
    add_all(names, name_records(Table::address, 0, text));
  }
  CHECK(names.text(Table::impairment, 0) == "second");
  REQUIRE(names.addresses(0).size() == 2);
  CHECK(names.addresses(0)[0] == "first");
  CHECK(names.addresses(1).empty());
}

TEST_CASE("trace names: nothing of a file reaches a terminal unchecked") {
  Names names;
  add_all(names, name_records(Table::program, 0, "a\033[31mb\n\xff"));
  CHECK(names.text(Table::program, 0) == "a?[31mb??");
}

TEST_CASE("trace names: records that are none are refused") {
  NameRecord good;
  good.text[0] = 'x';
  const auto refused = [](NameRecord record) { return !Names().add(record); };
  CHECK(!refused(good));
  NameRecord bad = good;
  bad.table = Table{0};
  CHECK(refused(bad));
  bad.table = Table{99};
  CHECK(refused(bad));
  bad = good;
  bad.parts = 0;
  CHECK(refused(bad));
  bad.parts = NameRecord::kMaxParts + 1;
  CHECK(refused(bad));
  bad = good;
  bad.parts = 2;
  bad.part = 1;  // of a text that has not begun
  CHECK(refused(bad));
  bad.table = Table::address;
  CHECK(refused(bad));

  // A first part that is shorter than it may be has no second one.
  Names names;
  good.parts = 2;
  REQUIRE(names.add(good));
  good.part = 1;
  CHECK(!names.add(good));
}

TEST_CASE("trace names: their number is bounded") {
  Names names;
  NameRecord record;
  for (size_t i = 0; i < Names::kMaxNames; ++i) REQUIRE(names.add(record));
  CHECK(!names.add(record));
}

TEST_CASE("trace: each kind and cause has a text of its own") {
  CHECK(to_text(Kind::packet_sent) == "packet sent");
  CHECK(to_text(Kind::none).empty());
  CHECK(to_text(Kind{255}).empty());
  CHECK(to_text(Cause::early_probe) == "early probe");
  CHECK(to_text(Cause::none).empty());
}

}  // namespace rocemu::trace
