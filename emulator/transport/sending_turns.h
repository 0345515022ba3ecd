// SendingTurns says which of the QPs that may have something to send is next, so that small
// messages and answers do not wait behind others' bulk, and nobody waits for ever.
//
// It is a deficit round robin with a list for sparse flows (RFC 8290, 4.1 and 5.4, is its model):
// a QP has a share, in units of weight, and what it sends is taken off. As long as some of the
// share is left, it comes before all that have used theirs up. Those wait in line, and get a new
// share when their turn comes. So a QP that sends little never waits for the line, one that sends
// much has only what the line gives it, and for each turn in the line a QP comes before it at most
// once its share.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace rocemu::transport {

// A Qp has the members `active` and `share_left`, of which the first is kept here and the second by
// whoever lets it send.
template <class Qp>
class SendingTurns {
 public:
  // `share` is what Burst::weight() counts.
  explicit SendingTurns(uint32_t share) : share_(share) {}

  bool empty() const { return sparse_.empty() && line_.empty(); }
  // Nothing happens when the QP is listed already.
  void add(Qp& qp) {
    if (qp.active) return;
    qp.active = true;
    (qp.share_left > 0 ? sparse_ : line_).push_back(&qp);
  }
  void remove(Qp& qp) {
    if (!qp.active) return;
    std::erase(sparse_, &qp);
    std::erase(line_, &qp);
    qp.active = false;
  }

  // True when the next one is of those that wait in line.
  bool at_line() const { return sparse_.empty(); }
  // The next one, with some of its share left. Precondition: not empty.
  Qp& first() {
    if (!at_line()) return *sparse_.front();
    Qp& qp = *line_.front();
    if (qp.share_left == 0) qp.share_left = share_;
    return qp;
  }
  // The first one has sent, and may have more: it stays first while some of its share is left.
  void first_goes_on() {
    Qp& qp = first_of_list();
    if (qp.share_left > 0) return;
    (at_line() ? line_ : sparse_).pop_front();
    line_.push_back(&qp);
  }
  void remove_first() {
    first_of_list().active = false;
    (at_line() ? line_ : sparse_).pop_front();
  }
  // The first one has something to send, but not in this turn. It is listed again by take_aside(),
  // before anything else happens to it.
  void put_first_aside() {
    aside_.push_back(&first_of_list());
    remove_first();
  }
  // Calls list(qp) for each that was put aside.
  template <class List>
  void take_aside(List&& list) {
    for (Qp* qp : aside_) list(*qp);
    aside_.clear();
  }

 private:
  Qp& first_of_list() { return *(at_line() ? line_ : sparse_).front(); }

  uint32_t share_;
  std::deque<Qp*> sparse_;
  std::deque<Qp*> line_;
  std::vector<Qp*> aside_;
};

}  // namespace rocemu::transport
