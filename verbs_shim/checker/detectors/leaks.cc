// leaks: objects that are still there when the program has ended by exit(3).
#include <map>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class Leaks : public Detector {
 public:
  Leaks() : Detector("leaks", kNothing) {}

  void on_end(const Model& model) override {
    // Objects of one kind that were made at one place are one finding.
    std::map<std::pair<rocemu_check_kind, PlaceId>, std::vector<std::shared_ptr<Object>>> groups;
    for (const auto& object : model.all()) {
      if (object->kind == ROCEMU_CHECK_CONTEXT) continue;
      groups[{object->kind, object->made_at}].push_back(object);
    }
    for (const auto& [key, objects] : groups) {
      if (is_new(key.second)) tell(objects);
    }
  }

 private:
  void tell(const std::vector<std::shared_ptr<Object>>& objects) {
    const Object& first = *objects.front();
    Finding finding;
    if (objects.size() == 1) {
      finding.sentence = first.name() + " is still there at the program's end.";
    } else {
      finding.sentence = std::to_string(objects.size()) + " objects that were made at one place, " +
                         first.name() + " the first of them, are still there at the program's end.";
    }
    finding.why =
        "The kernel destroys what a process leaves, so nothing is seen of it until a program lives "
        "long or makes many: then registering and creating fail for want of room, after hours on a "
        "NIC with many entries and after minutes on one with few.";
    finding.advice = "Destroy it, before what it was made of: QPs, then CQs, MRs and PDs.";
    for (const auto& object : objects) {
      if (finding.objects.size() < 16) finding.objects.push_back(object->name());
    }
    report(first.made_at, first.made_with, first.made_by, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_leaks() { return std::make_unique<Leaks>(); }

}  // namespace rocemu::check
