// How many packets may be under way after losses, and after a time without one.
#include "emulator/congestion/adaptive_window.h"

#include <catch2/catch.hpp>

namespace rocemu::congestion {

namespace {

void acknowledge(AdaptiveWindow& window, uint32_t packets) {
  window.on_acknowledged(0, packets, std::nullopt);
}

}  // namespace

TEST_CASE("Losses halve the window, windows without one double it") {
  const auto on_loss = GENERATE(&AdaptiveWindow::on_nak, &AdaptiveWindow::on_timeout);
  AdaptiveWindow window(256);
  CHECK(window.packets() == 256);
  (window.*on_loss)(0);
  CHECK(window.packets() == 128);
  for (int i = 0; i < 10; ++i) (window.*on_loss)(0);
  CHECK(window.packets() == AdaptiveWindow::kMinPackets);
  const uint32_t enough = AdaptiveWindow::kWindowsToWiden * AdaptiveWindow::kMinPackets;
  acknowledge(window, enough - 1);
  CHECK(window.packets() == AdaptiveWindow::kMinPackets);
  acknowledge(window, 1);
  CHECK(window.packets() == 2 * AdaptiveWindow::kMinPackets);
  for (int i = 0; i < 100; ++i) acknowledge(window, 1000);
  CHECK(window.packets() == 256);
}

TEST_CASE("A loss ends the count of what was acknowledged without one") {
  AdaptiveWindow window(64);
  window.on_nak(0);
  const uint32_t enough = AdaptiveWindow::kWindowsToWiden * window.packets();
  acknowledge(window, enough - 1);
  window.on_nak(0);
  acknowledge(window, 1);
  CHECK(window.packets() == AdaptiveWindow::kMinPackets);
}

TEST_CASE("A window that is small by configuration stays as it is") {
  const uint32_t limit = GENERATE(1u, 2u, 16u, AdaptiveWindow::kMinPackets);
  AdaptiveWindow window(limit);
  for (int i = 0; i < 5; ++i) window.on_nak(0);
  CHECK(window.packets() == limit);
  acknowledge(window, 1'000'000);
  CHECK(window.packets() == limit);
}

TEST_CASE("A window that is no power of two returns to what is configured, and no further") {
  AdaptiveWindow window(100);
  window.on_nak(0);
  CHECK(window.packets() == 50);
  window.on_nak(0);
  CHECK(window.packets() == AdaptiveWindow::kMinPackets);
  for (int i = 0; i < 100; ++i) acknowledge(window, 1000);
  CHECK(window.packets() == 100);
}

}  // namespace rocemu::congestion
