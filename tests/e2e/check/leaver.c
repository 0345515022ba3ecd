/* Leaves a memory region behind, at a place with a name, and ends with the status it is told. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

static char buffer[4096];

__attribute__((noinline)) static struct ibv_mr* make_region_that_stays(struct ibv_pd* pd) {
  struct ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
  if (mr == NULL) perror("ibv_reg_mr");
  return mr;
}

int main(int argc, char** argv) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = devices == NULL ? NULL : ibv_open_device(devices[0]);
  struct ibv_pd* pd = context == NULL ? NULL : ibv_alloc_pd(context);
  if (pd == NULL || make_region_that_stays(pd) == NULL) return 1;
  ibv_free_device_list(devices);
  return argc > 1 ? atoi(argv[1]) : 0;
}
