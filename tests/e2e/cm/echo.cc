// echo ADDRESS [client]: an ordinary sockets program, which rsockets' preload library can carry
// over RDMA. The server sends back what its one connection sends; the client checks it.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint16_t kPort = 7490;
constexpr size_t kBytes = 1 << 20;
constexpr int kRounds = 8;

int fail(const char* what) {
  std::perror(what);
  return 1;
}

bool send_all(int fd, const std::vector<char>& data) {
  for (size_t sent = 0; sent < data.size();) {
    const ssize_t n = send(fd, data.data() + sent, data.size() - sent, 0);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int fd, std::vector<char>& data) {
  for (size_t received = 0; received < data.size();) {
    const ssize_t n = recv(fd, data.data() + received, data.size() - received, 0);
    if (n <= 0) return false;
    received += static_cast<size_t>(n);
  }
  return true;
}

int serve(int listener, const sockaddr_in& address) {
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return fail("bind");
  if (listen(listener, 1) != 0) return fail("listen");
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) return fail("accept");
  std::vector<char> data(kBytes);
  for (int i = 0; i < kRounds; ++i)
    if (!receive_all(fd, data) || !send_all(fd, data)) return fail("echo");
  shutdown(fd, SHUT_RDWR);
  close(fd);
  return 0;
}

int ask(int fd, const sockaddr_in& address) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return fail("connect");
  for (int i = 0; i < kRounds; ++i) {
    std::vector<char> data(kBytes);
    for (size_t at = 0; at < data.size(); ++at)
      data[at] = static_cast<char>(at * 7 + at / 256 + static_cast<size_t>(i));
    std::vector<char> answer(kBytes);
    if (!send_all(fd, data) || !receive_all(fd, answer)) return fail("echo");
    if (answer != data) {
      std::puts("FAIL other bytes");
      return 1;
    }
  }
  shutdown(fd, SHUT_RDWR);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, argv[1], &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return fail("socket");
  const bool client = argc > 2 && std::string(argv[2]) == "client";
  const int result = client ? ask(fd, address) : serve(fd, address);
  close(fd);
  return result;
}
