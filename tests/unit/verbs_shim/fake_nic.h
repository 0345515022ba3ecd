// A NIC that a test plays: it answers the control protocol, lays out the rings, and completes sends
// when told to. Its state directory, sysfs tree included, is temporary.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/rings.h"

class FakeNic {
 public:
  explicit FakeNic(std::string directory);
  ~FakeNic();

  // Makes the directory with its sysfs tree, before any NIC runs in it.
  static void make_sysfs(const std::string& directory);

  // Completes what was posted on all send queues, each with its opcode taken for a completion's
  // IBV_WC_SEND; how many entries there were.
  unsigned complete_sends();
  void send_async(uint64_t object, uint32_t event_type);
  // Ends all connections, as the death of the process would.
  void die();

  unsigned doorbells_rung();  // since the last call
  unsigned requests(rocemu_op op);
  std::vector<rocemu_send_wqe> sent;        // what complete_sends() saw
  std::vector<std::string> inline_payload;  // of those that had it

 private:
  struct Memory {
    int fd = -1;
    uint8_t* address = nullptr;
    size_t bytes = 0;
    void make(size_t size);
    ~Memory();
  };
  struct Queue {
    Memory memory;
    uint64_t user_pointer = 0;
    uint32_t channel = 0;
    uint32_t entries = 0;
    uint32_t comp_events = 0;
    uint32_t async_events = 0;
    rocemu_create_qp qp = {};
    uint32_t stride = 0;
    uint32_t consumed = 0;
    uint32_t state = 0;
    rocemu_qp_attr attr = {};
  };

  void serve();
  bool answer(int fd);
  bool reply(int fd, const rocemu_header& request, rocemu_header* reply, size_t bytes, int status,
             std::vector<int> fds = {});
  int hello(int fd, const rocemu_hello& request, const std::vector<int>& fds);
  void complete(Queue& cq, const rocemu_cqe& entry);

  std::string directory_;
  int listener_ = -1;
  int stop_fd_ = -1;
  std::mutex mutex_;
  std::map<uint32_t, Queue> cqs_, qps_;
  std::map<uint32_t, int> channels_;
  std::map<uint32_t, unsigned> requests_;
  Memory doorbells_, engine_;
  int wake_fd_ = -1;
  int async_fd_ = -1;
  int connection_ = -1;
  uint32_t next_handle_ = 1;
  std::thread thread_;
};
