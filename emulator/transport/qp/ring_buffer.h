// A queue that keeps its elements' storage: slots are reused, so that a queue in steady state
// allocates nothing. Grows by doubling; the owner bounds its size.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace rocemu::transport {

template <class T>
class RingBuffer {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  T& operator[](size_t i) {
    assert(i < size_);
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  const T& operator[](size_t i) const {
    assert(i < size_);
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }

  // The new last element holds whatever stood in its slot: the caller assigns every field.
  T& push_back() {
    if (size_ == slots_.size()) grow();
    ++size_;
    return back();
  }
  void pop_front() {
    assert(size_ > 0);
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void pop_back() {
    assert(size_ > 0);
    --size_;
  }
  void clear() { size_ = 0; }
  // Gives the storage back.
  void release() {
    std::vector<T>().swap(slots_);
    head_ = size_ = 0;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 1 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two of them
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace rocemu::transport
