/* A congestion control of your own for rocemu, without touching its tree: a shared library that
 * exports rocemu_congestion(). It runs in the live NIC and in the simulator alike.
 *
 *   cc -shared -fPIC -o libmine.so mine.c
 *   rocemu run --congestion ./libmine.so,gain=0.5 -- PROGRAM
 *
 * Plain C, no library to link with. All functions of one device are called by one thread at a time,
 * those of several devices perhaps at once: keep what belongs to a flow in the flow. They must not
 * block. Bytes are those of whole frames, from the Ethernet header through the ICRC; rates are bits
 * a second of such bytes; times are nanoseconds of one clock, which in the simulator is virtual.
 */
#ifndef ROCEMU_CONGESTION_H
#define ROCEMU_CONGESTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library that was built for another one is refused. */
#define ROCEMU_CONGESTION_VERSION 1

#define ROCEMU_NEVER UINT64_MAX     /* a deadline that does not come, a round trip not measured */
#define ROCEMU_UNLIMITED UINT64_MAX /* a rate or a window that limits nothing */

/* The needs of an algorithm, for rocemu_algorithm.needs. */
enum {
  ROCEMU_NEEDS_ECN = 1,          /* packets that leave with data are marked ECT(0) */
  ROCEMU_NEEDS_EVERY_ANSWER = 2, /* every packet asks for an acknowledgement; implied by a window */
  ROCEMU_NEEDS_TELEMETRY = 4,    /* switches write rocemu_hop into packets */
  ROCEMU_NEEDS_HOP_COUNT = 8     /* or say there that they were passed, if no more is asked for */
};

/* The record that a switch on the way has written when it sent a packet on. */
struct rocemu_hop {
  uint64_t queue_bytes;  /* in the port's queue */
  uint64_t tx_bytes;     /* bytes that the port has sent so far, modulo 2^32 */
  uint64_t timestamp_ns; /* by the switch's clock, modulo 2^32 */
  uint64_t link_rate_bps;
};

/* Packets that were in flight have been acknowledged. */
struct rocemu_acknowledgement {
  uint64_t now_ns;
  uint64_t bytes;
  uint64_t in_flight_bytes; /* bytes that are left unacknowledged */
  uint64_t rtt_ns;          /* the newest packet's, or ROCEMU_NEVER */
  uint32_t packets;
  uint32_t ecn_echo;             /* not 0: the answer says that congestion was met */
  const struct rocemu_hop* hops; /* from the sender on; valid during the call */
  uint32_t hop_count;
  uint32_t hops_passed; /* switches on the way; 0: not known */
  uint32_t path;        /* another number: the packet went another way */
};

/* The flow that an algorithm is made for: what one QP sends. */
struct rocemu_flow {
  uint64_t line_rate_bps;
  uint32_t max_frame_bytes; /* that of a packet with the path's whole MTU */
  uint32_t seed;            /* for what is left to chance; differs between flows */
};

struct rocemu_parameter {
  const char* name;
  const char* unit; /* for messages; "" for a plain number */
  double value;     /* unless the user says another one … */
  double least;     /* … between these */
  double most;
};

/* One line of what `rocemu status --json` shows of a flow. */
struct rocemu_value {
  const char* name; /* letters, digits, _ and -, 32 at most: others are left out */
  double value;
};

struct rocemu_algorithm {
  uint32_t version; /* ROCEMU_CONGESTION_VERSION */
  uint32_t needs;   /* ROCEMU_NEEDS_… */
  const char* name; /* letters, digits, _ and - */
  const struct rocemu_parameter* parameters;
  uint32_t parameter_count;

  /* The state of one flow, which all others get; `parameters` are the values in the order of the
   * table, valid during the call. NULL: there is no memory, and the QP goes without. */
  void* (*create)(const struct rocemu_flow* flow, const double* parameters);
  void (*destroy)(void* state);

  /* The algorithm hears of a flow by these. Each may be NULL. */
  void (*on_sent)(void* state, uint64_t now_ns, uint32_t bytes);
  void (*on_acknowledged)(void* state, const struct rocemu_acknowledgement* acknowledgement);
  void (*on_cnp)(void* state, uint64_t now_ns);
  void (*on_loss)(void* state, uint64_t now_ns);
  void (*on_timeout)(void* state, uint64_t now_ns);
  void (*on_timer)(void* state, uint64_t now_ns); /* at deadline() or later; it moves that on */

  /* The algorithm answers by these, which change nothing. Each may be NULL, which is never,
   * unlimited and nothing. */
  uint64_t (*deadline)(const void* state);
  uint64_t (*rate_bps)(const void* state);
  uint64_t (*window_bytes)(const void* state); /* one packet may be in flight at least */
  /* Fills in at most `room` values and returns how many. Names live as long as the library. */
  uint32_t (*view)(const void* state, uint64_t now_ns, struct rocemu_value* values, uint32_t room);
};

/* The one function that a library exports. What it returns lives as long as the library. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct rocemu_algorithm*
rocemu_congestion(void);

#ifdef __cplusplus
}
#endif

#endif
