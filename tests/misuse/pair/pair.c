#include "tests/misuse/pair/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void must(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  _exit(1);
}

bool is_wrong(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "wrong") == 0) return true;
  if (argc == 2 && strcmp(argv[1], "right") == 0) return false;
  fprintf(stderr, "usage: %s wrong|right\n", argv[0]);
  exit(2);
}

void* whole_pages(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  return memory;
}

/* The first GID that a router would forward. */
static int global_gid_index(struct ibv_context* context) {
  union ibv_gid gid;
  for (int index = 0; ibv_query_gid(context, 1, index, &gid) == 0; ++index) {
    const bool is_link_local = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
    const bool is_empty = gid.global.interface_id == 0;
    if (!is_link_local && !is_empty) return index;
  }
  must(false, "no GID but link-local ones");
  return -1;
}

static void open_end(struct end* end, struct ibv_device* device, int access) {
  end->context = ibv_open_device(device);
  must(end->context != NULL, "ibv_open_device");
  end->gid_index = global_gid_index(end->context);
  end->pd = ibv_alloc_pd(end->context);
  must(end->pd != NULL, "ibv_alloc_pd");
  end->channel = ibv_create_comp_channel(end->context);
  must(end->channel != NULL, "ibv_create_comp_channel");
  end->cq = ibv_create_cq(end->context, CQ_DEPTH, NULL, end->channel, 0);
  must(end->cq != NULL, "ibv_create_cq");
  end->buffer = whole_pages(BUFFER_BYTES);
  end->mr = ibv_reg_mr(end->pd, end->buffer, BUFFER_BYTES, access);
  must(end->mr != NULL, "ibv_reg_mr");
}

void open_ends(struct pair* pair) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  must(devices != NULL && count > 0, "ibv_get_device_list");
  memset(pair, 0, sizeof(*pair));
  open_end(&pair->client, devices[0], IBV_ACCESS_LOCAL_WRITE);
  open_end(&pair->server, devices[count - 1],
           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
               IBV_ACCESS_REMOTE_ATOMIC);
  ibv_free_device_list(devices);
}

struct ibv_qp_init_attr usual_qp(const struct end* end, enum ibv_qp_type type) {
  return (struct ibv_qp_init_attr){
      .send_cq = end->cq,
      .recv_cq = end->cq,
      .cap = {.max_send_wr = QUEUE_DEPTH,
              .max_recv_wr = QUEUE_DEPTH,
              .max_send_sge = 1,
              .max_recv_sge = 1},
      .qp_type = type,
  };
}

void make_qp(struct end* end, struct ibv_qp_init_attr* how) {
  end->qp = ibv_create_qp(end->pd, how);
  must(end->qp != NULL, "ibv_create_qp");
}

static struct ibv_ah_attr path(const struct end* from, const struct end* to) {
  struct ibv_ah_attr attr = {
      .is_global = 1,
      .grh = {.sgid_index = (uint8_t)from->gid_index, .hop_limit = 64},
      .port_num = 1,
  };
  must(ibv_query_gid(to->context, 1, to->gid_index, &attr.grh.dgid) == 0, "ibv_query_gid");
  return attr;
}

struct ibv_qp_attr usual_connection(const struct end* from, const struct end* to) {
  return (struct ibv_qp_attr){
      .path_mtu = IBV_MTU_1024,
      .qkey = QKEY,
      .rq_psn = to->qp->qp_num & 0xffffff,
      .sq_psn = from->qp->qp_num & 0xffffff,
      .dest_qp_num = to->qp->qp_num,
      .ah_attr = path(from, to),
      .max_rd_atomic = 4,
      .max_dest_rd_atomic = 4,
      .min_rnr_timer = 12,
      .timeout = 14,
      .retry_cnt = 7,
      .rnr_retry = 7,
  };
}

void to_init(struct end* end) {
  const bool is_datagram = end->qp->qp_type == IBV_QPT_UD;
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qkey = QKEY,
      .qp_access_flags =
          IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
  };
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                   (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  must(ibv_modify_qp(end->qp, &attr, mask) == 0, "ibv_modify_qp to INIT");
}

void to_rtr(struct end* end, struct ibv_qp_attr* how) {
  const bool is_datagram = end->qp->qp_type == IBV_QPT_UD;
  const int connection = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  how->qp_state = IBV_QPS_RTR;
  must(ibv_modify_qp(end->qp, how, IBV_QP_STATE | (is_datagram ? 0 : connection)) == 0,
       "ibv_modify_qp to RTR");
}

void to_rts(struct end* end, struct ibv_qp_attr* how) {
  const bool is_datagram = end->qp->qp_type == IBV_QPT_UD;
  const int connection =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  how->qp_state = IBV_QPS_RTS;
  must(ibv_modify_qp(end->qp, how, IBV_QP_STATE | IBV_QP_SQ_PSN | (is_datagram ? 0 : connection)) ==
           0,
       "ibv_modify_qp to RTS");
}

void connect_end(struct end* end, struct ibv_qp_attr* how) {
  to_init(end);
  to_rtr(end, how);
  to_rts(end, how);
}

struct ibv_ah* make_ah(const struct end* from, const struct end* to) {
  struct ibv_ah_attr attr = path(from, to);
  struct ibv_ah* ah = ibv_create_ah(from->pd, &attr);
  must(ah != NULL, "ibv_create_ah");
  return ah;
}

void open_pair(struct pair* pair) {
  open_ends(pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair->client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair->server, IBV_QPT_RC);
  make_qp(&pair->client, &client_qp);
  make_qp(&pair->server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair->client, &pair->server);
  struct ibv_qp_attr to_client = usual_connection(&pair->server, &pair->client);
  connect_end(&pair->client, &to_server);
  connect_end(&pair->server, &to_client);
}

void close_qp(struct end* end) { must(ibv_destroy_qp(end->qp) == 0, "ibv_destroy_qp"); }

void close_end(struct end* end) {
  must(ibv_destroy_cq(end->cq) == 0, "ibv_destroy_cq");
  must(ibv_destroy_comp_channel(end->channel) == 0, "ibv_destroy_comp_channel");
  must(ibv_dereg_mr(end->mr) == 0, "ibv_dereg_mr");
  must(ibv_dealloc_pd(end->pd) == 0, "ibv_dealloc_pd");
  must(ibv_close_device(end->context) == 0, "ibv_close_device");
  must(munmap(end->buffer, BUFFER_BYTES) == 0, "munmap");
}

void close_pair(struct pair* pair) {
  close_qp(&pair->client);
  close_qp(&pair->server);
  close_end(&pair->client);
  close_end(&pair->server);
}

void prepare(struct send* send, enum ibv_wr_opcode opcode, const struct end* from,
             const struct end* to, uint32_t bytes) {
  send->sge = (struct ibv_sge){(uintptr_t)from->buffer, bytes, from->mr->lkey};
  send->wr = (struct ibv_send_wr){
      .sg_list = &send->sge,
      .num_sge = 1,
      .opcode = opcode,
      .send_flags = IBV_SEND_SIGNALED,
  };
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    send->wr.wr.atomic.remote_addr = (uintptr_t)to->buffer;
    send->wr.wr.atomic.rkey = to->mr->rkey;
    send->wr.wr.atomic.compare_add = 1;
  } else {
    send->wr.wr.rdma.remote_addr = (uintptr_t)to->buffer;
    send->wr.wr.rdma.rkey = to->mr->rkey;
  }
}

void post_send(struct end* end, struct send* send) {
  struct ibv_send_wr* bad;
  must(ibv_post_send(end->qp, &send->wr, &bad) == 0, "ibv_post_send");
}

void post_receive(struct end* end, void* at, uint32_t bytes) {
  struct ibv_sge sge = {(uintptr_t)at, bytes, end->mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  wr.wr_id = (uintptr_t)at;
  must(ibv_post_recv(end->qp, &wr, &bad) == 0, "ibv_post_recv");
}

struct ibv_wc take_completion(struct end* end) {
  struct ibv_wc wc;
  int taken;
  do {
    taken = ibv_poll_cq(end->cq, 1, &wc);
  } while (taken == 0);
  must(taken == 1, "ibv_poll_cq");
  return wc;
}

void take_success(struct end* end) {
  const struct ibv_wc wc = take_completion(end);
  must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

void drain(struct end* end, int receives) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  must(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) == 0, "ibv_modify_qp to ERR");
  while (receives-- > 0) take_completion(end);
}

void wait_for_event(struct end* end) {
  struct ibv_cq* cq;
  void* context;
  must(ibv_get_cq_event(end->channel, &cq, &context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
}
