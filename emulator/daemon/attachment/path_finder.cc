#include "emulator/daemon/attachment/path_finder.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

namespace rocemu::daemon {
namespace {

using std::chrono::milliseconds;

// Linux asks three times, a second apart, before it gives up.
constexpr milliseconds kPatience{3500};
// A question may be lost, or not leave at all: just after link up an IPv6 address is tentative.
constexpr milliseconds kAskAgain{1000};
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{50};

}  // namespace

struct PathFinder::Search {
  Search(boost::asio::io_context& io, const wire::Gid& searched, Found callback)
      : destination(searched), found(std::move(callback)), timer(io) {}
  wire::Gid destination;
  Found found;
  boost::asio::steady_timer timer;
  milliseconds pause = kFirstPause;
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + kPatience;
  std::chrono::steady_clock::time_point next_ask{};
};

void PathFinder::find(const wire::Gid& destination, Found found) {
  look(std::make_shared<Search>(io_, destination, std::move(found)));
}

void PathFinder::look_once(const wire::Gid& destination, Found found) {
  attachment_.find(port_, destination,
                   [found = std::move(found)](const Attachment::Answer& answer) {
                     const bool known = answer.kind == Attachment::Answer::Kind::found;
                     found(known ? 0 : EHOSTUNREACH, answer.mac);
                   });
}

void PathFinder::look(std::shared_ptr<Search> search) {
  const wire::Gid& destination = search->destination;
  attachment_.find(port_, destination,
                   [this, search = std::move(search)](const Attachment::Answer& answer) mutable {
                     go_on(std::move(search), answer);
                   });
}

void PathFinder::go_on(std::shared_ptr<Search> search, const Attachment::Answer& answer) {
  if (answer.kind == Attachment::Answer::Kind::found) return search->found(0, answer.mac);
  const auto now = std::chrono::steady_clock::now();
  if (answer.kind == Attachment::Answer::Kind::unreachable || now >= search->end)
    return search->found(EHOSTUNREACH, {});
  if (now >= search->next_ask) {
    attachment_.begin_to_ask(search->destination);
    search->next_ask = now + kAskAgain;
  }
  search->timer.expires_after(search->pause);
  search->pause = std::min(2 * search->pause, kLongestPause);
  boost::asio::steady_timer& timer = search->timer;
  timer.async_wait([this, search = std::move(search)](const boost::system::error_code& error) {
    if (!error) look(search);
  });
}

}  // namespace rocemu::daemon
