// What is a script, and what is said of a text that is none.
#include "emulator/script/language/parser.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace rocemu;
using namespace rocemu::script;

namespace {

Script parsed(const std::string& lines) { return parse_script("a.roce", "# title\n" + lines); }

// The place and message of what is wrong.
std::string error_of(const std::string& text) {
  try {
    parse_script("a.roce", text);
  } catch (const SyntaxError& error) {
    return std::to_string(error.place().line) + ":" + std::to_string(error.place().column) + ": " +
           error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("A script's lines have a time, a call or a frame") {
  const Script script = parsed(
      "create_qp(q, rc, send_wr 4)  # a comment\n"
      "\n"
      "+1.5us < SEND_ONLY psn +3, ackreq, payload 4 of 0x11\n"
      "+1ms..2ms > ACK psn 7, msn *\n"
      "poll_cq() = success, recv, wr_id 1, byte_len 2..4\n"
      "> nothing\n");
  REQUIRE(script.lines.size() == 5);
  CHECK(script.title == "title");
  const Line& create = script.lines[0];
  CHECK(create.place.line == 2);
  CHECK(create.call->verb == "create_qp");
  CHECK(create.call->arguments.text("TYPE") == "rc");
  CHECK(create.call->arguments.number("send_wr", 0) == 4);
  CHECK(create.call->result.text("result") == "ok");
  CHECK(create.source == "create_qp(q, rc, send_wr 4)");
  const Line& send = script.lines[1];
  CHECK(send.timing.first_ns == 1500);
  CHECK(send.frame.fields.find("psn")->kind == Value::Kind::relative);
  CHECK(send.frame.fields.number("ackreq", 0) == 1);
  CHECK(send.frame.fields.find("payload")->make_bytes() ==
        std::vector<std::byte>(4, std::byte{0x11}));
  const Line& ack = script.lines[2];
  CHECK(ack.timing.first_ns == 1'000'000);
  CHECK(ack.timing.last_ns == 2'000'000);
  CHECK(ack.frame.from_nic);
  CHECK(ack.frame.fields.find("msn")->kind == Value::Kind::any);
  const Fields& polled = script.lines[3].call->result;
  CHECK(polled.text("opcode") == "recv");
  CHECK(polled.find("byte_len")->last == 4);
  CHECK(script.lines[4].frame.nothing);
}

TEST_CASE("Bytes are written in five ways") {
  const Script script = parsed(
      "set_memory(m, 3 from 254)\nset_memory(m, 2 of 9)\nset_memory(m-1, \"0aff\")\n"
      "set_memory(m+2, word 258)\nset_memory(m, 2)\n");
  const auto bytes = [&](size_t line) {
    std::vector<int> made;
    for (const std::byte byte : script.lines[line].call->arguments.find("BYTES")->make_bytes())
      made.push_back(static_cast<int>(byte));
    return made;
  };
  CHECK(bytes(0) == std::vector<int>{254, 255, 0});
  CHECK(bytes(1) == std::vector<int>{9, 9});
  CHECK(bytes(2) == std::vector<int>{10, 255});
  CHECK(bytes(3) == std::vector<int>{2, 1, 0, 0, 0, 0, 0, 0});
  CHECK(bytes(4) == std::vector<int>{0, 1});
}

TEST_CASE("What is no script is named with its place and what is allowed") {
  using Catch::StartsWith;
  CHECK_THAT(error_of("create_qp(q, rc)\n"), StartsWith("1:1: the first line is a comment"));
  CHECK_THAT(error_of("# t\n"), StartsWith("1:1: there is nothing"));
  CHECK_THAT(error_of("# t\n  creat_qp(q)\n"),
             StartsWith("2:3: 'creat_qp' is no verb; a line has <, > or one of: create_cq"));
  CHECK_THAT(error_of("# t\ncreate_qp(q, rd)\n"),
             StartsWith("2:14: 'rd' is none of: rc uc ud xrc_send xrc_recv"));
  CHECK_THAT(error_of("# t\ncreate_qp(q)\n"), StartsWith("2:12: missing: TYPE"));
  CHECK_THAT(error_of("# t\n< SEND psn 0\n"), StartsWith("2:3: 'SEND' is no opcode; there are: "));
  CHECK_THAT(error_of("# t\n< SEND_ONLY pns 0\n"),
             StartsWith("2:13: 'pns' is none of what may stand here: qp transport"));
  CHECK_THAT(error_of("# t\n> WRITE_ONLY psn 0, va 0, rkey 0, payload 0\n"),
             StartsWith("2:44: WRITE_ONLY needs len, or ... at its end"));
  CHECK_THAT(error_of("# t\n< SEND_ONLY payload 8\n"), StartsWith("2:22: SEND_ONLY needs psn"));
  CHECK_THAT(error_of("# t\n< CNP psn 0, ...\n"), StartsWith("2:17: ... is for frames"));
  CHECK_THAT(error_of("# t\n+5 > ACK psn 0\n"), StartsWith("2:2: a time has a unit"));
  CHECK_THAT(error_of("# t\n+2ms..1ms > ACK psn 0\n"), StartsWith("2:11: the later time"));
  CHECK_THAT(error_of("# t\npoll_cq()\n"), StartsWith("2:10: poll_cq needs = and what it gives"));
  CHECK_THAT(error_of("# t\nconnect(q) = fine\n"), StartsWith("2:14: the result is ok or a name"));
  CHECK_THAT(error_of("# t\nconnect(q) ok\n"), StartsWith("2:12: the line goes on"));
  CHECK_THAT(error_of("# t\nreg_mr(m, bytes 5lb)\n"), StartsWith("2:17: a number is followed"));
  CHECK_THAT(error_of("# t\nset_memory(m, \"0g\")\n"), StartsWith("2:15: bytes in quotes"));
  CHECK_THAT(error_of("# t\nset_memory(m, 99999999)\n"), StartsWith("2:23: more than 65536"));
  CHECK_THAT(error_of("# t\nconnect(q) ; \n"), StartsWith("2:12: a character that no script has"));
}

TEST_CASE("Calls and results go through text") {
  const Call call = parse_call("post_send(q, read, wr_id 3, at m+8, len 4, va 0x5000, rkey 7)");
  CHECK(call.verb == "post_send");
  CHECK(call.arguments.find("at")->text == "m");
  CHECK(call.arguments.find("at")->number == 8);
  for (const std::string text : {"success, recv, wr_id 7, qp q, byte_len 8, imm 0x12345", "nothing",
                                 "wr_flush_err, wr_id 4"})
    CHECK(to_text(parse_result("poll_cq", text)) == text);
  CHECK(to_text(parse_result("create_qp", "ok, qpn 17")) == "ok, qpn 17");
  CHECK(to_text(parse_result("create_qp", "EOPNOTSUPP")) == "EOPNOTSUPP");
  CHECK(to_text(parse_result("memory", "8 of 0x11")) == "8 of 0x11");
}
