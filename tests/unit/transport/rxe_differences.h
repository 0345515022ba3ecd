// Lists where rocemu and Linux rxe put different frames on the wire in the same situation: from the
// BTH on, all that the captures show. docs/compatibility.md says the same to users; keep them in
// agreement. (That we coalesce ACKs does not show here: a replay hands over one frame at a time.)
#pragma once

#include <array>
#include <string_view>

namespace rocemu::transport_test {

enum class Side { requester, responder };

struct RxeDifference {
  Side side;                   // whose frames
  std::string_view file;       // "*": any
  int frame;                   // number among rxe's frames of that side, from 0; -1: any
  std::string_view operation;  // of rxe's frame; "*": any
  std::string_view field;      // as describe() names it; "frame": none is sent by us
  std::string_view ours;
  std::string_view rxe;     // "none": the frame has no such field; for "frame": its syndrome
  std::string_view clause;  // what permits ours
};

namespace clause {
inline constexpr std::string_view kLength =
    "IBTA vol 1, 9.9.6.1 and table 58: a length error is an invalid request";
inline constexpr std::string_view kOneNak = "IBTA vol 1, 9.7.5.2.8: one NAK for one packet";
inline constexpr std::string_view kReadFirst =
    "IBTA vol 1, 9.4.4: the response to a READ request begins with FIRST or ONLY";
inline constexpr std::string_view kAlwaysAnswered =
    "IBTA vol 1, 9.7.5.1: READs and atomics are answered by their response, asked for or not";
inline constexpr std::string_view kRequestersChoice =
    "IBTA vol 1, 9.7.5.1: where to ask for an ACK is the requester's choice";
inline constexpr std::string_view kMigrated =
    "IBTA vol 1, 17.2.8: a QP that is not to migrate is MIGRATED, and says so";
}  // namespace clause

inline constexpr std::array kRxeDifferences{
    RxeDifference{Side::responder, "*", -1, "*", "mig_req", "0x1", "0x0", clause::kMigrated},
    RxeDifference{Side::requester, "*", -1, "*", "mig_req", "0x1", "0x0", clause::kMigrated},
    RxeDifference{Side::responder, "nak-invalid-length", 0, "acknowledge", "syndrome", "0x61",
                  "0x63", clause::kLength},
    RxeDifference{Side::responder, "rnr-nak", -1, "acknowledge", "frame", "none", "0x60",
                  clause::kOneNak},
    RxeDifference{Side::responder, "retry-lost-read-response", 5, "read response middle",
                  "operation", "read response first", "read response middle", clause::kReadFirst},
    RxeDifference{Side::responder, "retry-lost-read-response", 5, "read response middle",
                  "syndrome", "0x1f", "none", clause::kReadFirst},
    RxeDifference{Side::responder, "retry-lost-read-response", 5, "read response middle", "msn",
                  "0x1", "none", clause::kReadFirst},
    RxeDifference{Side::requester, "*", -1, "read request", "ack_request", "0x0", "0x1",
                  clause::kAlwaysAnswered},
    RxeDifference{Side::requester, "*", -1, "compare swap", "ack_request", "0x0", "0x1",
                  clause::kAlwaysAnswered},
    RxeDifference{Side::requester, "*", -1, "fetch add", "ack_request", "0x0", "0x1",
                  clause::kAlwaysAnswered},
    RxeDifference{Side::requester, "rc-write-long-1024", 63, "write middle", "ack_request", "0x1",
                  "0x0", clause::kRequestersChoice},
    RxeDifference{Side::requester, "rc-write-long-1024", 65, "write middle", "ack_request", "0x0",
                  "0x1", clause::kRequestersChoice},
};

}  // namespace rocemu::transport_test
