#include "workloads/schedule/replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/peer.h"

namespace moebius {
namespace {

// Who meets: the group (of a message: sender, receiver), the microbatch, the op.
struct MeetingKey {
  std::vector<std::int32_t> ranks;
  int group = 0;
  std::int32_t step = 0, microbatch = 0;
  std::uint32_t match = 0;
  auto operator<=>(const MeetingKey&) const = default;
};

struct OpPlace {
  std::int32_t sequence = 0, op = 0;
  auto operator<=>(const OpPlace&) const = default;
};

struct Meeting {
  std::vector<OpPlace> members;  // that have come
  Time longest;                  // of their work
};

// Of one sender and receiver under one key: messages and receivers find each other in order.
struct Mailbox {
  struct Message {
    Time sent, there;
  };
  std::deque<Message> messages;
  std::deque<OpPlace> receivers;
};

struct Running {
  Submission submission;
  std::vector<std::int32_t> waits_for;  // by op: dependencies that have not ended; -1: it has ended
  std::vector<std::vector<std::int32_t>> followers;
  std::vector<Time> start, work_start;
  std::int32_t ops_left = 0, submissions_before = 0;
};

struct Lanes {
  struct Queue {
    std::deque<OpPlace> ops;  // in order; the first one is next or runs
    bool busy = false;
  };
  std::array<Queue, kNumLanes> of;
};

class Replay : public Executor {
 public:
  Replay(const Layout& layout, Recorder& recorder, OpDurations durations)
      : layout_(layout),
        recorder_(recorder),
        durations_(std::move(durations)),
        lanes_(layout.classes.size()) {}

  Time now() const override { return now_; }

  void submit(const Submission& submission) override {
    Running& running = running_[submission.sequence] = open(submission);
    for (const std::int32_t before : submission.after) {
      if (running_.count(before) == 0) continue;
      ++running.submissions_before;
      after_[before].push_back(submission.sequence);
    }
    for (const Follow& follow : submission.follows) {
      const auto before = running_.find(follow.sequence);
      if (before == running_.end() || before->second.waits_for[follow.before] < 0) continue;
      ++running.waits_for[follow.op];
      follows_[{follow.sequence, follow.before}].push_back({submission.sequence, follow.op});
    }
    const std::vector<Op>& ops = submission.fragment->ops;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(ops.size()); ++i)
      lanes_[submission.rank_class].of[static_cast<int>(ops[i].lane)].ops.push_back({submission.sequence, i});
    if (ops.empty() && running.submissions_before == 0) return complete(submission.sequence);
    start_lanes(submission.rank_class);
  }

  std::vector<Completion> wait(Time until) override {
    while (completions_.empty() && !ends_.empty() && std::get<0>(ends_.top()) <= until) end_next();
    if (completions_.empty() && ends_.empty() && !running_.empty() && until == kForever) throw deadlock();
    if (completions_.empty() && until != kForever) now_ = std::max(now_, until);
    return std::exchange(completions_, {});
  }

  Time finish() override {
    while (!running_.empty()) wait(kForever);
    return now_;
  }

 private:
  static Running open(const Submission& submission) {
    const Fragment& fragment = *submission.fragment;
    Running running{submission, {}, {}, {}, {}, static_cast<std::int32_t>(fragment.ops.size()), 0};
    running.followers.resize(fragment.ops.size());
    running.start.resize(fragment.ops.size());
    running.work_start.resize(fragment.ops.size());
    for (std::int32_t i = 0; i < running.ops_left; ++i) {
      const Op& op = fragment.ops[i];
      running.waits_for.push_back(op.num_dependencies);
      for (int d = 0; d < op.num_dependencies; ++d)
        running.followers[fragment.dependencies[op.first_dependency + d]].push_back(i);
    }
    return running;
  }

  void start_lanes(std::int32_t rank_class) {
    for (Lanes::Queue& queue : lanes_[rank_class].of) {
      if (queue.busy || queue.ops.empty()) continue;
      const OpPlace next = queue.ops.front();
      Running& running = running_.at(next.sequence);
      if (running.submissions_before > 0 || running.waits_for[next.op] > 0) continue;
      queue.busy = true;
      start(next, running);
    }
  }

  void start(OpPlace place, Running& running) {
    running.start[place.op] = running.work_start[place.op] = now_;
    const OpKind kind = op_at(place, running).kind;
    if (kind == OpKind::kSend) {
      send(place);
    } else if (kind == OpKind::kRecv) {
      receive(place);
    } else if (is_communication(kind)) {
      meet(place);
    } else {
      end_at(now_ + duration(place), place);
    }
  }

  const Op& op_at(OpPlace place, const Running& running) const {
    return running.submission.fragment->ops[place.op];
  }
  Time duration(OpPlace place) const { return durations_.at(place.sequence, place.op); }
  void end_at(Time end, OpPlace place) { ends_.push({end, place}); }

  const Group& group_of(OpPlace place) const {
    const Running& running = running_.at(place.sequence);
    return layout_.classes[running.submission.rank_class].group(op_at(place, running).group);
  }

  MeetingKey key_of(OpPlace place) const {
    const Running& running = running_.at(place.sequence);
    const Op& op = op_at(place, running);
    return {group_of(place).ranks, static_cast<int>(op.group), running.submission.step,
            running.submission.meeting_microbatch(op), op.match};
  }

  void meet(OpPlace place) {
    const MeetingKey key = key_of(place);
    Meeting& meeting = meetings_[key];
    meeting.members.push_back(place);
    meeting.longest = std::max(meeting.longest, duration(place));
    if (meeting.members.size() < std::max<std::size_t>(1, key.ranks.size())) return;
    for (const OpPlace member : meeting.members) {
      running_.at(member.sequence).work_start[member.op] = now_;
      end_at(now_ + meeting.longest, member);
    }
    meetings_.erase(key);
  }

  // One member calls it the next stage, the other the previous one: the key names no group.
  MeetingKey message_key(OpPlace place, bool sends) const {
    MeetingKey key = key_of(place);
    const Group& group = group_of(place);
    const Op& op = op_at(place, running_.at(place.sequence));
    const std::int32_t me = group.my_index;
    const std::int32_t peer = peer_of(op, me, static_cast<std::int64_t>(group.ranks.size()));
    key.group = -1;
    key.ranks = {group.ranks[sends ? me : peer], group.ranks[sends ? peer : me]};
    return key;
  }

  void send(OpPlace place) {
    const MeetingKey key = message_key(place, true);
    const Time there = now_ + duration(place);
    mail_[key].messages.push_back({now_, there});
    end_at(there, place);
    deliver(key);
  }

  void receive(OpPlace place) {
    const MeetingKey key = message_key(place, false);
    mail_[key].receivers.push_back(place);
    deliver(key);
  }

  void deliver(const MeetingKey& key) {
    Mailbox& box = mail_[key];
    if (box.messages.empty() || box.receivers.empty()) return;
    const Mailbox::Message message = box.messages.front();
    const OpPlace receiver = box.receivers.front();
    box.messages.pop_front();
    box.receivers.pop_front();
    if (box.messages.empty() && box.receivers.empty()) mail_.erase(key);
    Running& running = running_.at(receiver.sequence);
    running.work_start[receiver.op] = std::max(running.start[receiver.op], message.sent);
    end_at(std::max(now_, message.there) + duration(receiver), receiver);
  }

  // All that end at one time, in the order of submissions and ops; then the lanes that they set free.
  void end_next() {
    now_ = std::get<0>(ends_.top());
    std::vector<std::int32_t> touched;
    while (!ends_.empty() && std::get<0>(ends_.top()) == now_) {
      const OpPlace place = std::get<1>(ends_.top());
      ends_.pop();
      touched.push_back(running_.at(place.sequence).submission.rank_class);
      end(place);
    }
    for (const std::int32_t rank_class : woken_) touched.push_back(rank_class);
    woken_.clear();
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::int32_t rank_class : touched) start_lanes(rank_class);
  }

  void end(OpPlace place) {
    Running& running = running_.at(place.sequence);
    report(place, running);
    Lanes::Queue& queue =
        lanes_[running.submission.rank_class].of[static_cast<int>(op_at(place, running).lane)];
    queue.ops.pop_front();
    queue.busy = false;
    for (const std::int32_t follower : running.followers[place.op]) --running.waits_for[follower];
    running.waits_for[place.op] = -1;
    if (const auto later = follows_.extract(place); !later.empty())
      for (const OpPlace follower : later.mapped()) --running_.at(follower.sequence).waits_for[follower.op];
    if (--running.ops_left == 0) complete(place.sequence);
  }

  void report(OpPlace place, const Running& running) {
    Span span;
    span.sequence = place.sequence;
    span.op = place.op;
    span.rank_class = running.submission.rank_class;
    span.lane = op_at(place, running).lane;
    span.origin = Origin::kExecuted;
    span.start = running.start[place.op];
    span.end = now_;
    if (is_communication(op_at(place, running).kind)) span.work_start = running.work_start[place.op];
    recorder_.span(span);
  }

  void complete(std::int32_t sequence) {
    running_.erase(sequence);
    completions_.push_back({sequence, now_});
    const auto followers = after_.extract(sequence);
    if (followers.empty()) return;
    for (const std::int32_t next : followers.mapped()) {
      Running& running = running_.at(next);
      if (--running.submissions_before > 0) continue;
      woken_.push_back(running.submission.rank_class);
      if (running.ops_left == 0) complete(next);
    }
  }

  Error deadlock() const {
    const Running& first = running_.begin()->second;
    return run_error(
        fmt::format("deadlock at {}: submission {} ({}) of rank {} and {} more wait for each other",
                    to_text(now_), first.submission.sequence, first.submission.fragment->name,
                    layout_.classes[first.submission.rank_class].representative(), running_.size() - 1));
  }

  using End = std::pair<Time, OpPlace>;

  const Layout& layout_;
  Recorder& recorder_;
  OpDurations durations_;
  std::vector<Lanes> lanes_;                                 // by class
  std::map<std::int32_t, Running> running_;                  // by sequence, until complete
  std::map<std::int32_t, std::vector<std::int32_t>> after_;  // by sequence: who comes after it
  std::map<OpPlace, std::vector<OpPlace>> follows_;          // by op: those of later submissions
  std::map<MeetingKey, Meeting> meetings_;
  std::map<MeetingKey, Mailbox> mail_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::int32_t> woken_;  // classes whose submissions need wait no more
  std::vector<Completion> completions_;
  Time now_;
};

}  // namespace

void OpDurations::set(std::int32_t sequence, std::int32_t op, Time duration) {
  CHECK(sequence >= 0 && op >= 0 && duration.ns >= 0,
        fmt::format("submission {}, op {}: {} ns", sequence, op, duration.ns));
  if (times_.size() <= static_cast<std::size_t>(sequence)) times_.resize(sequence + 1);
  std::vector<Time>& ops = times_[sequence];
  if (ops.size() <= static_cast<std::size_t>(op)) ops.resize(op + 1, Time{-1});
  ops[op] = duration;
}

Time OpDurations::at(std::int32_t sequence, std::int32_t op) const {
  const bool known = sequence >= 0 && static_cast<std::size_t>(sequence) < times_.size() && op >= 0 &&
                     static_cast<std::size_t>(op) < times_[sequence].size() && times_[sequence][op].ns >= 0;
  CHECK(known, fmt::format("submission {}, op {} was not measured", sequence, op));
  return times_[sequence][op];
}

OpDurations median_of(const std::vector<OpDurations>& runs) {
  CHECK(!runs.empty(), "no runs");
  OpDurations medians;
  for (std::size_t sequence = 0; sequence < runs.front().submissions(); ++sequence) {
    const auto s = static_cast<std::int32_t>(sequence);
    for (std::size_t op = 0; op < runs.front().of(s).size(); ++op) {
      std::vector<Time> times;
      for (const OpDurations& run : runs) times.push_back(run.at(s, static_cast<std::int32_t>(op)));
      const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
      std::nth_element(times.begin(), middle, times.end());
      medians.set(s, static_cast<std::int32_t>(op), *middle);
    }
  }
  return medians;
}

std::unique_ptr<Executor> make_replay(const Layout& layout, Recorder& recorder, OpDurations durations) {
  return std::make_unique<Replay>(layout, recorder, std::move(durations));
}

}  // namespace moebius
