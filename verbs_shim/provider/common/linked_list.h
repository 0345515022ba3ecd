// Objects in a list by links of their own: each joins and leaves it at once, however many there
// are.
#pragma once

namespace rocemu::provider {

template <typename T>
struct ListLinks {
  T* object = nullptr;
  ListLinks* next = nullptr;
  ListLinks* previous = nullptr;
};

// The newest is the first.
template <typename T>
class LinkedList {
 public:
  ListLinks<T>* first() const { return first_; }

  void add(T& object, ListLinks<T>& links) {
    links = {&object, first_, nullptr};
    if (first_ != nullptr) first_->previous = &links;
    first_ = &links;
  }
  // Precondition: they are in the list.
  void remove(ListLinks<T>& links) {
    (links.previous != nullptr ? links.previous->next : first_) = links.next;
    if (links.next != nullptr) links.next->previous = links.previous;
    links = {};
  }

 private:
  ListLinks<T>* first_ = nullptr;
};

}  // namespace rocemu::provider
