// Task is a call to be made once by another thread. Unlike std::function it can own what cannot be
// copied.
#pragma once

#include <memory>
#include <utility>

namespace rocemu::daemon {

class Task {
 public:
  template <class Function>
  explicit Task(Function function) : call_(std::make_unique<Held<Function>>(std::move(function))) {}

  void operator()() { call_->run(); }

 private:
  struct Call {
    virtual ~Call() = default;
    virtual void run() = 0;
  };
  template <class Function>
  struct Held final : Call {
    explicit Held(Function held) : function(std::move(held)) {}
    void run() override { function(); }
    Function function;
  };

  std::unique_ptr<Call> call_;
};

}  // namespace rocemu::daemon
