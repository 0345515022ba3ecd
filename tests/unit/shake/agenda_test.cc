#include "emulator/shake/common/agenda.h"

#include <catch2/catch.hpp>
#include <memory>

namespace rocemu::shake {
namespace {

class Alarm final : private Agenda::Item {
 public:
  explicit Alarm(Agenda& agenda) : Item(agenda) {}
  void set(TimeNs at) { wake_at(at); }
  unsigned rung = 0;
  TimeNs again_at = kNever;

 private:
  void on_time() noexcept override {
    ++rung;
    wake_at(again_at);
  }
};

}  // namespace

TEST_CASE("what was held back has its moment once, and not before") {
  Agenda agenda;
  Alarm early(agenda), late(agenda);
  CHECK(agenda.next() == kNever);
  late.set(200);
  early.set(100);
  late.set(300);  // later than it was asked for
  CHECK(agenda.next() == 100);
  agenda.tick(99);
  CHECK(early.rung == 0);
  agenda.tick(100);
  CHECK(early.rung == 1);
  CHECK(agenda.now() == 100);
  CHECK(agenda.next() == 200);
  agenda.tick(1000);
  CHECK(early.rung == 1);
  CHECK(late.rung == 1);
  CHECK(agenda.next() == kNever);
}

TEST_CASE("who is woken may ask to be woken again, and who goes is not") {
  Agenda agenda;
  Alarm alarm(agenda);
  alarm.set(10);
  alarm.again_at = 20;
  {
    Alarm gone(agenda);
    gone.set(5);
  }
  agenda.tick(10);
  CHECK(alarm.rung == 1);
  alarm.again_at = kNever;
  CHECK(agenda.next() == 20);
  agenda.tick(20);
  CHECK(alarm.rung == 2);
  CHECK(agenda.next() == kNever);
}

}  // namespace rocemu::shake
