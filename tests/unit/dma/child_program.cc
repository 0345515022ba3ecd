#include "tests/unit/dma/child_program.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace rocemu::dma::test {
namespace {

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t after_name = text.rfind(") ");
  return after_name == std::string::npos ? '?' : text[after_name + 2];
}

void wait_for_zombie(pid_t pid) {
  for (int i = 0; i < 5000 && state_of(pid) != 'Z'; ++i) usleep(1000);
  check(state_of(pid) == 'Z', "the main thread did not end");
}

union DescriptorMessage {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

void* idle(void*) {
  while (true) pause();
}

// Its stack is none that the C library has used before: the stack tells threads apart, and
// ThreadSanitizer still knows those that the parent of a fork had.
bool start_idle_thread() {
  constexpr size_t kStackBytes = 1 << 20;
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  pthread_attr_t attributes;
  pthread_t thread;
  return stack != MAP_FAILED && pthread_attr_init(&attributes) == 0 &&
         pthread_attr_setstack(&attributes, stack, kStackBytes) == 0 &&
         pthread_create(&thread, &attributes, &idle, nullptr) == 0;
}

}  // namespace

ChildProgram::ChildProgram(size_t pages, const Prepare& prepare) {
  const size_t bytes = pages * kPageBytes;
  const int memory_fd = memfd_create("child_program", MFD_CLOEXEC);
  check(memory_fd >= 0 && ftruncate(memory_fd, static_cast<off_t>(bytes)) == 0, "memfd");
  void* here = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
  // A page to spare, so that the end of the child's memory is followed by nothing.
  void* there = mmap(nullptr, bytes + kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(here != MAP_FAILED && there != MAP_FAILED, "mmap");
  memory_ = {static_cast<std::byte*>(here), bytes};
  base_ = reinterpret_cast<uintptr_t>(there);
  std::memcpy(here, &kProbeValue, sizeof kProbeValue);

  int sockets[2];
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
  pid_ = fork();
  check(pid_ >= 0, "fork");
  if (pid_ == 0) run_child(memory_fd, sockets[1], prepare);
  close(sockets[1]);
  close(memory_fd);
  socket_ = sockets[0];
  receive_mem_fd();
}

ChildProgram::~ChildProgram() {
  if (pid_ > 0) {
    kill();
    reap();
  }
  close(mem_fd_);
  close(socket_);
  munmap(memory_.data(), memory_.size());
  munmap(reinterpret_cast<void*>(base_), memory_.size() + kPageBytes);
}

void ChildProgram::run_child(int memory_fd, int socket, const Prepare& prepare) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
  void* memory = mmap(reinterpret_cast<void*>(base_), memory_.size(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, memory_fd, 0);
  munmap(reinterpret_cast<void*>(base_ + memory_.size()), kPageBytes);
  const int mem_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (memory == MAP_FAILED || mem_fd < 0) _exit(1);
  if (prepare) prepare(static_cast<std::byte*>(memory));
  if (!start_idle_thread()) _exit(1);

  char ready = 'r';
  iovec data{&ready, 1};
  DescriptorMessage control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN(sizeof mem_fd);
  std::memcpy(CMSG_DATA(&control.header), &mem_fd, sizeof mem_fd);
  if (sendmsg(socket, &message, 0) != 1) _exit(1);
  close(mem_fd);

  char word = 0;
  if (recv(socket, &word, 1, 0) == 1) syscall(SYS_exit, 0);
  _exit(0);
}

void ChildProgram::receive_mem_fd() {
  char ready = 0;
  iovec data{&ready, 1};
  DescriptorMessage control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  check(recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) == 1, "the child did not start");
  std::memcpy(&mem_fd_, CMSG_DATA(&control.header), sizeof mem_fd_);
}

int ChildProgram::mem_fd() const {
  const int copy = fcntl(mem_fd_, F_DUPFD_CLOEXEC, 0);
  check(copy >= 0, "dup");
  return copy;
}

std::unique_ptr<AddressSpace> ChildProgram::address_space(std::optional<Method> force) const {
  return AddressSpace::probe(pid_, mem_fd(), base_, kProbeValue, force);
}

void ChildProgram::end_main_thread() {
  check(send(socket_, "x", 1, 0) == 1, "send");
  wait_for_zombie(pid_);
}

void ChildProgram::kill() {
  ::kill(pid_, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
}

void ChildProgram::reap() {
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::vector<std::byte> random_bytes(std::mt19937& random, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

bool holds_without_privilege(const std::function<bool()>& body) {
  constexpr uid_t kNobody = 65534;
  const pid_t pid = fork();
  check(pid >= 0, "fork");
  if (pid == 0) {
    if (geteuid() == 0 &&
        (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0)) {
      _exit(2);
    }
    prctl(PR_SET_DUMPABLE, 1);  // the change of uid cleared it
    bool good = false;
    try {
      good = body();
    } catch (const std::exception&) {
      _exit(3);
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace rocemu::dma::test
