// verbs: what programs rely on of every service, row by row, with what the specification, the man
// pages and ConnectX do where they leave room: what arrives, what each side is told, what is lost
// in silence, which events come. What a program can do wrong over RC is bad_input's. Uses the
// public libibverbs interface alone, so that it runs on any device. Exits 0 when every row passed.
#include "tests/e2e/tools/row_runner.h"
#include "tests/e2e/verbs/ends.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(
      argc, argv, "verbs", "what programs rely on, of every service",
      {query_rows(), transition_rows(), reliable_rows(), migration_rows(), unreliable_rows(),
       datagram_rows(), shared_receive_rows(), tag_matching_rows(), xrc_rows(), atomic_rows(),
       work_request_rows(), completion_rows(), extended_cq_rows(), memory_rows(),
       bound_window_rows(), domain_rows(), raw_packet_rows()});
}
