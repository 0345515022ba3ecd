// fork: a child uses what its parent has made by verbs, or touches memory that it has registered.
#include <mutex>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/memory/child_memory.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class Fork;
Fork* listener = nullptr;  // the detector, for a signal handler

// The memory of a region that child_memory was told of.
struct Added : Note {
  std::mutex lock;
  Span span;
};

class Fork : public Detector {
 public:
  // A child has one of its own.
  Fork() : Detector("fork", kNothing) { listener = this; }

  void on_made(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_MR) add(static_cast<MemoryRegion&>(object));
  }
  void on_region_changed(const Call&, MemoryRegion& region) override { add(region); }
  void on_gone(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_MR) remove(note<Added>(object));
  }

  void on_used_in_child(const Call& call, rocemu_check_kind kind) override {
    if (!is_new(call)) return;
    Finding finding;
    finding.sentence = std::string("A child process called ") + call.verb() + "() for a " +
                       name_of(kind) + " that its parent has made.";
    finding.why =
        "Verbs' objects belong to the process that opened the device (ibv_fork_init(3): only the "
        "parent may use them). Parent and child write to the same rings and doorbells, and "
        "registered "
        "memory is the parent's: what comes of it differs from NIC to NIC.";
    finding.advice =
        "Let the child open the device itself, or hand it the device with ibv_import_device(3).";
    report(call, finding);
  }

  void on_touched(const Call& call, uintptr_t address) {
    if (!is_new(call)) return;
    Finding finding;
    finding.sentence =
        "A child process touched memory that its parent has registered, at " + hex(address) + ".";
    finding.why =
        "With ibv_fork_init(3) a child has no such pages, and this is a segmentation fault. "
        "Without "
        "it, and with a kernel before 5.12, whoever of the two writes first gets a copy of the "
        "page, "
        "and the NIC goes on with the other one.";
    finding.advice =
        "Let the child use memory that was not registered when it was forked; call exec(3) soon. "
        "Registered memory should have its pages to itself.";
    report(call, finding);
  }

 private:
  // On-demand regions follow the page tables.
  void add(MemoryRegion& region) {
    static std::once_flag once;
    std::call_once(once, [] {
      hear_of_children(
          [](rocemu_check_at at, uintptr_t address) { listener->on_touched(Call(at), address); });
    });
    Added& added = note<Added>(region);
    remove(added);
    if ((region.access & IBV_ACCESS_ON_DEMAND) != 0) return;
    std::lock_guard lock(added.lock);
    added.span = span_of(region);
    if (added.span.bytes != 0) add_parents_memory(added.span);
  }

  static void remove(Added& added) {
    std::lock_guard lock(added.lock);
    if (added.span.bytes != 0) remove_parents_memory(added.span);
    added.span = {};
  }
};

}  // namespace

std::unique_ptr<Detector> make_fork() { return std::make_unique<Fork>(); }

}  // namespace rocemu::check
