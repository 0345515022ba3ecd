// The rings of one device that hold completions back, for moments by which all have to be shown.
#pragma once

#include <algorithm>
#include <vector>

namespace rocemu::shake {

class CompletionHolders {
 public:
  class Holder {
   public:
    virtual void release_all() noexcept = 0;

   protected:
    ~Holder() = default;
  };

  // Holders remove themselves before they go.
  void add(Holder& holder) { holders_.push_back(&holder); }
  void remove(Holder& holder) { std::erase(holders_, &holder); }
  void release_all() noexcept {
    for (Holder* holder : holders_) holder->release_all();
  }

 private:
  std::vector<Holder*> holders_;
};

}  // namespace rocemu::shake
