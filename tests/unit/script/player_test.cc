// What is said of a NIC that does something else than the script.
#include "emulator/script/play/player.h"

#include <catch2/catch.hpp>
#include <string>

#include "emulator/script/language/parser.h"
#include "emulator/script/virtual_time/virtual_stage.h"

using namespace rocemu;
using namespace rocemu::script;

namespace {

constexpr const char* kConnected = "# title\ncreate_qp(q, rc)\nconnect(q)\nreg_mr(m, bytes 64)\n";

Verdict verdict_of(const std::string& lines) {
  VirtualStage stage;
  return play(parse_script("a.roce", kConnected + lines), stage);
}

// The fifth line is the first of `lines`.
void expect_failure(const std::string& lines, unsigned line, const std::string& came) {
  INFO(lines);
  const Verdict verdict = verdict_of(lines);
  CHECK(verdict.kind == Verdict::Kind::failed);
  CHECK(verdict.place.line == line);
  CHECK(verdict.came == came);
}

}  // namespace

TEST_CASE("A script that goes as written is well") {
  const Verdict verdict = verdict_of(
      "< WRITE_ONLY psn +0, va m, rkey m, len 4, ackreq, payload 4 of 0x11\n"
      "> ACK psn +0, msn 1\nmemory(m) = 4 of 0x11\n");
  CHECK(verdict.kind == Verdict::Kind::ok);
  CHECK(verdict.exchange.size() == 6);
}

TEST_CASE("What comes otherwise is named") {
  const std::string write = "< WRITE_ONLY psn +0, va m, rkey m, len 4, ackreq, payload 4 of 0x11\n";
  expect_failure(write + "> ACK psn +1, msn 1\n", 6,
                 "> ACK psn +0, msn 1  (psn is 4096, expected is 4097)");
  expect_failure(write + "> NAK_SEQUENCE psn +0\n", 6,
                 "> ACK psn +0, msn 1  (the opcode is ACK, expected is NAK_SEQUENCE)");
  expect_failure(write + "> ACK psn +0, msn 2..3\n", 6,
                 "> ACK psn +0, msn 1  (msn is 1, expected is 2..3)");
  expect_failure(write + "> nothing\n", 6, "> ACK psn +0, msn 1");
  expect_failure(write + "+1ms..2ms > ACK psn +0\n", 6,
                 "it came 2 us after the line before: too early");
  expect_failure("+3us > ACK psn +0\n", 5, "nothing until 3 us");
  expect_failure("memory(m) = 2 of 0x11\n", 5, "memory(m, bytes 2) = 2 of 0x0");
  expect_failure("query_qp(q) = err\n", 5,
                 "query_qp(q) = rts, sq_draining 0, timeout 0, retry_cnt 7, rnr_retry 7, "
                 "min_rnr_timer 1");
  expect_failure("modify_qp(q, init)\n", 5, "modify_qp(q, init) = EINVAL");
  expect_failure("poll_cq() = success, send\n", 5, "poll_cq() = nothing");
  expect_failure("connect(p)\n", 5, "there is no QP 'p'");
}

TEST_CASE("A frame or a completion that no line expects is a failure at the end") {
  expect_failure("< WRITE_ONLY psn +0, va m, rkey m, len 4, ackreq, payload 4\n", 5,
                 "> ACK psn +0, msn 1");
  expect_failure("modify_qp(q, err)\npost_recv(q, wr_id 3)\n", 6,
                 "poll_cq() = wr_flush_err, wr_id 3, qp q");
}

TEST_CASE("An immediate is to be named, unless the script leaves it open") {
  const std::string lines =
      "post_recv(q, wr_id 3)\n< SEND_ONLY_IMM psn +0, imm 0x1234, payload 0\n";
  expect_failure(lines + "poll_cq() = success, recv\n", 7,
                 "poll_cq() = success, recv, wr_id 3, qp q, byte_len 0, imm 4660");
  CHECK(verdict_of(lines + "poll_cq() = success, recv, ...\n").kind == Verdict::Kind::ok);
  CHECK(verdict_of(lines + "poll_cq() = success, recv, imm 0x1234\n").kind == Verdict::Kind::ok);
}
