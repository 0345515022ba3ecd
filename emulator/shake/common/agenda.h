// The time of one device's turn, and what is to be done later: things that were held back. Whoever
// drives the device calls tick() at the beginning of each turn, and no later than next().
#pragma once

#include <algorithm>
#include <vector>

#include "base/time.h"

namespace rocemu::shake {

class Agenda {
 public:
  // Something that waits for its time; it leaves the agenda when it is destroyed, and must not
  // outlive it.
  class Item {
   public:
    explicit Item(Agenda& agenda) : agenda_(agenda) {}
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;

   protected:
    virtual ~Item() {
      if (due_ != kNever) std::erase(agenda_.items_, this);
    }
    // on_time() is called at `at`, or earlier if that was asked for before.
    void wake_at(TimeNs at) {
      if (at >= due_) return;
      if (due_ == kNever) agenda_.items_.push_back(this);
      due_ = at;
      agenda_.next_ = std::min(agenda_.next_, at);
    }
    TimeNs now() const { return agenda_.now(); }

   private:
    friend class Agenda;
    // May wake itself or others again, but destroys nothing.
    virtual void on_time() noexcept = 0;

    Agenda& agenda_;
    TimeNs due_ = kNever;
  };

  TimeNs now() const { return now_; }
  TimeNs next() const { return next_; }

  void tick(TimeNs now) {
    now_ = now;
    if (now < next_) return;
    next_ = kNever;
    due_.clear();
    std::erase_if(items_, [&](Item* item) {
      if (item->due_ > now) {
        next_ = std::min(next_, item->due_);
        return false;
      }
      item->due_ = kNever;
      due_.push_back(item);
      return true;
    });
    for (Item* item : due_) item->on_time();
  }

 private:
  TimeNs now_ = 0;
  TimeNs next_ = kNever;
  std::vector<Item*> items_;  // items that wait
  std::vector<Item*> due_;    // items of the tick under way
};

}  // namespace rocemu::shake
