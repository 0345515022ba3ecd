/* A congestion control of one's own: the rate falls by a part for CNPs, at most once a period, and
 * grows by a step every period. docs/congestion.md, "Your own".
 *   cc -shared -fPIC -o libgentle.so gentle.c */
#include <rocemu/congestion.h>
#include <stdlib.h>

/* create() has their values in this order. */
static const struct rocemu_parameter parameters[] = {
    {"increase", "Mbit/s", 5, 0.001, 1e6}, {"decrease", "", 0.3, 0, 1}, {"period", "us", 100, 1, 1e6}};

struct gentle {
  double rate_bps, line_bps, increase_bps, keep;
  uint64_t period_ns, next_ns, cnps;
  int cnp_came;
};

static void* create(const struct rocemu_flow* flow, const double* values) {
  struct gentle* g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->rate_bps = g->line_bps = (double)flow->line_rate_bps;
  g->increase_bps = values[0] * 1e6;
  g->keep = 1 - values[1];
  g->period_ns = (uint64_t)(values[2] * 1e3);
  g->next_ns = ROCEMU_NEVER;
  return g;
}

static void on_cnp(void* state, uint64_t now_ns) {
  struct gentle* g = state;
  g->cnps++;
  g->cnp_came = 1;
  if (g->next_ns == ROCEMU_NEVER) g->next_ns = now_ns;
}

static void on_timer(void* state, uint64_t now_ns) {
  struct gentle* g = state;
  g->rate_bps = g->cnp_came ? g->rate_bps * g->keep : g->rate_bps + g->increase_bps;
  if (g->rate_bps < 1e6) g->rate_bps = 1e6;
  if (g->rate_bps > g->line_bps) g->rate_bps = g->line_bps;
  g->cnp_came = 0;
  g->next_ns = g->rate_bps < g->line_bps ? now_ns + g->period_ns : ROCEMU_NEVER;
}

static uint64_t deadline(const void* state) { return ((const struct gentle*)state)->next_ns; }
static uint64_t rate_bps(const void* state) { return (uint64_t)((const struct gentle*)state)->rate_bps; }

static uint32_t view(const void* state, uint64_t now_ns, struct rocemu_value* values, uint32_t room) {
  (void)now_ns;
  if (room < 1) return 0;
  values[0] = (struct rocemu_value){"gentle_cnps", (double)((const struct gentle*)state)->cnps};
  return 1;
}

static const struct rocemu_algorithm gentle = {
    .version = ROCEMU_CONGESTION_VERSION, .name = "gentle", .needs = ROCEMU_NEEDS_ECN,
    .parameters = parameters, .parameter_count = sizeof parameters / sizeof *parameters,
    .create = create, .destroy = free, .on_cnp = on_cnp, .on_timer = on_timer,
    .deadline = deadline, .rate_bps = rate_bps, .view = view};

const struct rocemu_algorithm* rocemu_congestion(void) { return &gentle; }
