// Random lives of connections over a network that loses, repeats and reorders MADs, in virtual
// time:
//
//   cm_scenarios --scenarios N --seed S
//
// Scenario i has seed S + i. In each, two programs connect to each other many times; they accept,
// reject, disconnect and destroy at random instants, before or after the other side knows. Then:
//   - both sides agree: where one side is established and stays so, the other one is, too
//   - nobody waits for ever: every connect ends with an event, and every established connection
//     whose peer has gone hears of it
//   - nothing is left once all ids are destroyed
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>

#include "base/time.h"
#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

constexpr TimeNs kS = 1000 * kMs;

// What one id of a program has been through.
struct Life {
  bool client = false;
  bool over = false;  // an event said that nothing more comes, or it is destroyed
  bool established = false;
  uint32_t qpn = 0;  // the client's: what both sides know a connection by
};

class Program {
 public:
  Program(Hosts& hosts, Host& host, Random& random) : hosts_(hosts), host_(host), random_(random) {}

  std::map<IdHandle, Life> lives;

  void connect(const SocketAddress& to, uint32_t qpn) {
    const IdHandle id = host_.resolved(1, to);
    if (host_.connect(id, with_data("x", qpn)) != 0) throw std::runtime_error("connect");
    lives[id] = {true, false, false, qpn};
  }

  void take_events() {
    while (const auto event = host_.take()) on_event(*event);
  }

  // At random: one of what a program may do at any time.
  void act() {
    if (lives.empty()) return;
    auto at = lives.begin();
    std::advance(at, static_cast<long>(random_.next() % lives.size()));
    if (random_.next() % 2 == 0) {
      host_.disconnect(at->first);
    } else {
      host_.destroy(at->first);
      lives.erase(at);
    }
  }

  void destroy_all() {
    while (!lives.empty()) {
      host_.destroy(lives.begin()->first);
      lives.erase(lives.begin());
    }
  }

 private:
  void on_event(const RdmaEvent& event) {
    switch (event.type) {
      case EventType::connect_request:
        return on_request(event);
      case EventType::connect_response:
        if (host_.confirm(event.id) == 0) lives.at(event.id).established = true;
        return;
      case EventType::established:
        lives.at(event.id).established = true;
        return;
      case EventType::rejected:
      case EventType::unreachable:
      case EventType::disconnected:
        lives.at(event.id).over = true;
        lives.at(event.id).established = false;
        return;
      default:
        return;
    }
  }

  void on_request(const RdmaEvent& event) {
    const uint64_t choice = random_.next() % 10;
    if (choice == 0) {
      host_.cm.reject(hosts_.now, kProgram, event.id, 0, {});
      host_.destroy(event.id);
    } else if (choice == 1) {
      host_.destroy(event.id);
    } else if (host_.accept(event.id, 2, with_data("y", 0x900000 + event.id)) != 0) {
      host_.destroy(event.id);  // the peer has given up meanwhile
    } else {
      lives[event.id] = {false, false, false, stream(event).qpn};
    }
  }

  Hosts& hosts_;
  Host& host_;
  Random& random_;
};

void check_agreement(const Program& a, const Program& b, const Host& host_a, const Host& host_b) {
  const auto compare = [](const Program& mine, const Host& my_host, const Program& other) {
    for (const auto& [id, life] : mine.lives) {
      if (life.client && !life.established && !life.over)
        throw std::runtime_error("a connect came to no end");
      if (!life.established) continue;
      const Connection* connection = my_host.connection(id);
      if (connection == nullptr || connection->state != ConnectionState::established) continue;
      bool found = false;
      for (const auto& [peer_id, peer] : other.lives)
        found |= peer.established && peer.qpn == life.qpn && peer.client != life.client;
      if (!found)
        throw std::runtime_error("established on one side alone, QPN " + std::to_string(life.qpn) +
                                 (life.client ? ", the client's" : ", the server's"));
    }
  };
  compare(a, host_a, b);
  compare(b, host_b, a);
}

void run_scenario(uint64_t seed) {
  Random random(seed);
  const auto percent = [&](unsigned max) {
    return static_cast<double>(random.next() % (max + 1)) / 100;
  };
  Faults faults;
  faults.loss = percent(30);
  faults.duplication = percent(10);
  faults.reordering = percent(20);
  Hosts hosts(seed, faults);
  const IdHandle listener_a = hosts.a.listener(9, hosts.a.ipv4(7000), 4);
  const IdHandle listener_b = hosts.b.listener(9, hosts.b.ipv6(7000), 4);
  Program a(hosts, hosts.a, random);
  Program b(hosts, hosts.b, random);

  const auto steps = 20 + random.next() % 100;
  uint32_t qpn = 0;
  for (uint64_t i = 0; i < steps; ++i) {
    a.take_events();
    b.take_events();
    switch (random.next() % 6) {
      case 0:
      case 1:
        a.connect(hosts.b.ipv6(7000), ++qpn);
        break;
      case 2:
        b.connect(hosts.a.ipv4(7000), ++qpn);
        break;
      case 3:
        a.act();
        break;
      case 4:
        b.act();
        break;
      default:
        break;
    }
    hosts.run(random.next() % (200 * kMs));
  }
  // All that is under way comes to its end; programs look at their events all the time.
  for (int i = 0; i < 1200; ++i) {
    a.take_events();
    b.take_events();
    hosts.run(kS / 10);
  }
  check_agreement(a, b, hosts.a, hosts.b);

  a.destroy_all();
  b.destroy_all();
  hosts.a.destroy(listener_a);
  hosts.b.destroy(listener_b);
  if (!hosts.settle(300 * kS)) throw std::runtime_error("something is still waited for");
  while (hosts.a.take() || hosts.b.take()) throw std::runtime_error("an event about nothing");
  if (!hosts.clean()) throw std::runtime_error("something is left");
}

int run(uint64_t scenarios, uint64_t seed) {
  for (uint64_t i = 0; i < scenarios; ++i) {
    try {
      run_scenario(seed + i);
    } catch (const std::exception& error) {
      std::printf("FAIL seed %llu: %s\n", static_cast<unsigned long long>(seed + i), error.what());
      return 1;
    }
  }
  std::printf("%llu scenarios passed\n", static_cast<unsigned long long>(scenarios));
  return 0;
}

}  // namespace
}  // namespace rocemu::cm::test

int main(int argc, char** argv) {
  uint64_t scenarios = 1000;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--scenarios") scenarios = value;
    if (option == "--seed") seed = value;
  }
  return rocemu::cm::test::run(scenarios, seed);
}
