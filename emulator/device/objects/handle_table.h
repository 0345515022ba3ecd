// Objects of one kind that belong to one context, by their handles: numbers that programs hold, as
// the kernel's uverbs gives them out. 0 is never a handle.
//
// No number is given out twice, whatever it is a handle of: one that a program uses after the
// object has gone, of another kind of object or of another context finds nothing. So handles are
// numbers of the device, and an object lies at the place that the low bits of its number name. At
// most half of the places are taken, so that a free one is near.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace rocemu::device {

// Gives out the numbers of all handles of a device, each once in 2^32.
class HandleNumbers {
 public:
  // `device_index` keeps the devices of one NIC apart: each has 2^24 numbers before it comes to
  // those that the next one began with. With a seed other than 0, which all devices of a NIC then
  // have, the numbers are in no order.
  explicit HandleNumbers(uint32_t device_index, uint32_t seed = 0)
      : last_(device_index << 24), seed_(seed) {}
  uint32_t next() {
    uint32_t number = 0;
    while (number == 0) number = seed_ == 0 ? ++last_ : scattered(++last_);
    return number;
  }

 private:
  // Each step can be undone, so that different numbers stay different.
  uint32_t scattered(uint32_t number) const {
    number ^= seed_;
    number *= 0x9e3779b1u;
    number ^= number >> 16;
    number *= 0x85ebca6bu;
    return number ^ number >> 13;
  }

  uint32_t last_;
  uint32_t seed_;
};

template <class T>
class HandleTable {
 public:
  // `numbers` outlives the table.
  explicit HandleTable(HandleNumbers& numbers) : numbers_(numbers) {}

  uint32_t insert(std::unique_ptr<T> object) {
    if (2 * size_ >= places_.size()) grow();
    uint32_t handle = numbers_.next();
    while (places_[place_of(handle)].object != nullptr) handle = numbers_.next();
    places_[place_of(handle)] = {handle, std::move(object)};
    ++size_;
    scan_ = std::max(scan_, place_of(handle) + 1);
    return handle;
  }
  // Null when there is none: handles come from programs.
  T* find(uint32_t handle) const {
    const size_t place = place_of(handle);
    return place < places_.size() && places_[place].handle == handle ? places_[place].object.get()
                                                                     : nullptr;
  }
  void erase(uint32_t handle) {
    places_[place_of(handle)].object.reset();
    --size_;
  }
  template <class F>
  void for_each(F&& visit) const {
    for (const Place& place : places_)
      if (place.object) visit(*place.object);
  }
  // Calls visit(handle, object) for what is at the place `from` and behind it, until that says
  // false or `most_places` have been looked at. Returns the place behind the last one that was,
  // which is at least places() at the end. Objects move to places further on, if at all.
  template <class F>
  size_t for_some(size_t from, F&& visit, size_t most_places) const {
    for (; from < places_.size() && most_places > 0; --most_places) {
      const Place& place = places_[from++];
      if (place.object && !visit(place.handle, std::as_const(*place.object))) break;
    }
    return from;
  }
  size_t places() const { return places_.size(); }
  // Some handle that is there, 0 when there is none.
  uint32_t any() {
    while (scan_ > 0 && places_[scan_ - 1].object == nullptr) --scan_;
    return scan_ > 0 ? places_[scan_ - 1].handle : 0;
  }
  uint32_t size() const { return size_; }

 private:
  struct Place {
    uint32_t handle = 0;
    std::unique_ptr<T> object;
  };

  size_t place_of(uint32_t handle) const { return handle & (places_.size() - 1); }

  // Handles that differ in their low bits differ in more of them.
  void grow() {
    std::vector<Place> old(places_.empty() ? 4 : 2 * places_.size());
    old.swap(places_);
    for (Place& place : old)
      if (place.object) places_[place_of(place.handle)] = std::move(place);
    scan_ = places_.size();
  }

  HandleNumbers& numbers_;
  uint32_t size_ = 0;
  std::vector<Place> places_;  // 0, or a power of two
  size_t scan_ = 0;            // no object is at this place or behind it
};

}  // namespace rocemu::device
