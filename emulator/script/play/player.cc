#include "emulator/script/play/player.h"

#include <algorithm>
#include <deque>

#include "emulator/script/language/parser.h"
#include "emulator/script/language/vocabulary.h"
#include "emulator/script/play/frames.h"

namespace rocemu::script {

namespace {

// Ends the play.
struct Stop {
  Verdict::Kind kind;
  std::string expected;
  std::string came;
};

// True for a field that a completion has only if the script names it.
bool must_be_named(const std::string& key) { return is_one_of("imm inv grh", key); }

class Player {
 public:
  Player(const Script& script, Stage& stage)
      : script_(script), stage_(stage), began_ns_(stage.now_ns()), before_ns_(began_ns_) {}

  Verdict play() {
    try {
      for (const Line& line : script_.lines) {
        line_ = &line;
        step();
      }
      check_end();
    } catch (const Stop& stop) {
      verdict_.kind = stop.kind;
      verdict_.expected = stop.expected;
      verdict_.came = stop.came;
    } catch (const Impossible& error) {
      verdict_.kind = Verdict::Kind::failed;
      verdict_.expected = line_->source;
      verdict_.came = error.what();
    }
    if (verdict_.kind == Verdict::Kind::failed) note_unexpected();
    verdict_.place = line_->place;
    verdict_.at_ns = stage_.now_ns() - began_ns_;
    return std::move(verdict_);
  }

 private:
  void step() {
    if (!line_->call) {
      if (!line_->frame.from_nic) return send();
      return line_->frame.nothing ? expect_silence() : expect_frame();
    }
    if (shows_state(line_->call->verb)) return expect_state();
    if (takes_off(line_->call->verb)) return expect_news();
    act();
  }

  void note(TimeNs at_ns, const std::string& text) {
    verdict_.exchange.push_back(time_text(at_ns - began_ns_) + "  " + text);
  }

  [[noreturn]] void fail(const std::string& came) {
    throw Stop{Verdict::Kind::failed, line_->source, came};
  }

  // ---- actions ----

  void wait_for_action() {
    const TimeNs at_ns = before_ns_ + line_->timing.first_ns;
    while (stage_.now_ns() < at_ns) stage_.advance(at_ns);
    before_ns_ = std::max(before_ns_, stage_.now_ns());
  }

  void send() {
    wait_for_action();
    note(before_ns_, line_->source);
    if (line_->frame.fields.has("src") && !stage_.sends_from_anywhere())
      throw Stop{Verdict::Kind::not_applicable, line_->source,
                 "a UDP socket sends from its own address alone"};
    stage_.send(make_frame(line_->frame, objects_, stage_.ends()));
  }

  void act() {
    wait_for_action();
    const Call& call = *line_->call;
    const Fields result = stage_.call(call);
    const std::string& came = result.text("result");
    note(before_ns_, call.source + " = " + to_text(result));
    const std::string& wanted = call.result.text("result");
    if (came != wanted) {
      const bool lacks = wanted == "ok" && (came == "EOPNOTSUPP" || came == "ENOSYS");
      throw Stop{lacks ? Verdict::Kind::not_applicable : Verdict::Kind::failed, line_->source,
                 call.source + " = " + to_text(result)};
    }
    objects_.learn(call, result);
  }

  // ---- expectations ----

  TimeNs latest_ns() const {
    const Timing& timing = line_->timing;
    const Patience patience = stage_.patience();
    const TimeNs wait_ns = timing.last_ns        ? *timing.last_ns + patience.late_ns
                           : timing.first_ns > 0 ? timing.first_ns + patience.late_ns
                                                 : patience.wait_ns;
    return before_ns_ + wait_ns;
  }

  // Both ends of a range are given: it may come too early.
  void check_not_early(TimeNs at_ns) {
    const Timing& timing = line_->timing;
    if (timing.last_ns && at_ns < before_ns_ + timing.first_ns)
      fail("it came " + time_text(at_ns < before_ns_ ? 0 : at_ns - before_ns_) +
           " after the line before: too early");
    before_ns_ = std::max(before_ns_, at_ns);
  }

  void take_frames() {
    while (auto frame = stage_.take_frame()) {
      note(frame->at_ns, "> " + frame_text(frame->bytes, objects_));
      frames_.push_back(std::move(*frame));
    }
  }

  // Waits for `met`; false when it is not until then.
  template <class Met>
  bool wait(TimeNs until_ns, Met met) {
    for (;;) {
      take_frames();
      if (met()) return true;
      if (stage_.now_ns() >= until_ns) return false;
      stage_.advance(until_ns);
    }
  }

  void expect_frame() {
    if (!wait(latest_ns(), [&] { return !frames_.empty(); }))
      fail("nothing until " + time_text(stage_.now_ns() - began_ns_) + completion_text());
    const SeenFrame frame = std::move(frames_.front());
    frames_.pop_front();
    const std::string differs = differences(line_->frame, frame.bytes, objects_);
    if (!differs.empty()) fail("> " + frame_text(frame.bytes, objects_) + "  (" + differs + ")");
    check_not_early(frame.at_ns);
  }

  // A completion often says why no frame comes.
  std::string completion_text() {
    const Fields result = stage_.call(poll());
    return result.text("result") == "nothing" ? "" : "; poll_cq() = " + to_text(result);
  }

  static Call poll() {
    Call call;
    call.verb = "poll_cq";
    call.source = "poll_cq()";
    return call;
  }

  std::string next_frame_text() {
    const SeenFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return "> " + frame_text(frame.bytes, objects_);
  }

  void expect_silence() {
    const TimeNs until_ns = before_ns_ + line_->timing.last_ns.value_or(line_->timing.first_ns) +
                            stage_.patience().quiet_ns;
    wait(until_ns, [] { return false; });
    if (!frames_.empty()) fail(next_frame_text());
    before_ns_ = stage_.now_ns();
  }

  void expect_state() {
    const Call& call = *line_->call;
    Fields result;
    const bool met = wait(latest_ns(), [&] {
      result = stage_.call(call);
      return fits(result);
    });
    note(stage_.now_ns(), call.source + " = " + to_text(result));
    if (!met) fail(call.source + " = " + to_text(result));
    check_not_early(stage_.now_ns());
  }

  void expect_news() {
    const Call& call = *line_->call;
    const bool none_wanted = call.result.text("result") == "nothing";
    Fields result;
    const TimeNs quiet_ns = before_ns_ + line_->timing.last_ns.value_or(line_->timing.first_ns) +
                            stage_.patience().quiet_ns;
    wait(none_wanted ? quiet_ns : latest_ns(), [&] {
      result = stage_.call(call);
      return result.text("result") != "nothing";
    });
    note(stage_.now_ns(), call.source + " = " + to_text(result));
    if (!fits(result)) fail(call.source + " = " + to_text(result));
    check_not_early(stage_.now_ns());
  }

  bool fits(const Fields& came) const {
    const Fields& wanted = line_->call->result;
    for (const Field& field : wanted.list)
      if (!field_fits(field, came.find(field.key))) return false;
    return wanted.open || std::ranges::none_of(came.list, [&](const Field& field) {
             return must_be_named(field.key) && !wanted.has(field.key);
           });
  }

  bool field_fits(const Field& wanted, const Value* came) const {
    const Value& value = wanted.value;
    if (value.kind == Value::Kind::any) return true;
    if (came == nullptr) return false;
    if (value.is_bytes())
      return value.kind == Value::Kind::length ? came->make_bytes().size() == value.number
                                               : came->make_bytes() == value.make_bytes();
    if (wanted.key == "inv") return came->number == objects_.key(value);
    if (value.kind == Value::Kind::range)
      return came->number >= value.number && came->number <= value.last;
    if (value.kind == Value::Kind::name) return came->text == value.text;
    return came->number == value.number;
  }

  // ---- the end ----

  void check_end() {
    const TimeNs until_ns = stage_.now_ns() + stage_.patience().settle_ns;
    wait(until_ns, [] { return false; });
    const std::string expected = "the end, and nothing more";
    if (!frames_.empty()) throw Stop{Verdict::Kind::failed, expected, next_frame_text()};
    const Fields result = stage_.call(poll());
    if (result.text("result") != "nothing")
      throw Stop{Verdict::Kind::failed, expected, "poll_cq() = " + to_text(result)};
  }

  // Frames that lie there unread tell of what went wrong.
  void note_unexpected() {
    for (const SeenFrame& frame : frames_)
      verdict_.came += "; and > " + frame_text(frame.bytes, objects_);
  }

  const Script& script_;
  Stage& stage_;
  Objects objects_;
  TimeNs began_ns_;
  TimeNs before_ns_;  // when the line before happened
  const Line* line_ = nullptr;
  std::deque<SeenFrame> frames_;  // frames that have come and that no line has expected yet
  Verdict verdict_;
};

}  // namespace

Verdict play(const Script& script, Stage& stage) { return Player(script, stage).play(); }

}  // namespace rocemu::script
