#include "sim/faults/failing_network.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/event_queue.h"
#include "sim/faults/moving_step.h"
#include "sim/faults/outages.h"

namespace moebius {
namespace {

struct Change {
  enum class Kind { kEnd, kBegin, kDetect, kMitigate };
  Time time;
  Kind kind = Kind::kBegin;
  std::int32_t number = 0;  // of the occurrence
  bool operator<(const Change& other) const {
    return std::tie(time, kind, number) < std::tie(other.time, other.kind, other.number);
  }
};

// The platform sees and mitigates what is still there by then.
std::vector<Change> changes_of(const std::vector<Occurrence>& occurrences, const Failover& failover) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < occurrences.size(); ++i) {
    const auto& [fault, down, up] = occurrences[i];
    const auto number = static_cast<std::int32_t>(i);
    if (fault.kind == FaultKind::kSlowNode) continue;
    changes.push_back({down, Change::Kind::kBegin, number});
    const Time detected = down + failover.detect, mitigated = down + failover.mitigate;
    if (detected < up) changes.push_back({detected, Change::Kind::kDetect, number});
    if (mitigated < up) changes.push_back({mitigated, Change::Kind::kMitigate, number});
    if (up != kForever) changes.push_back({up, Change::Kind::kEnd, number});
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

class FailingNetwork : public Network {
 public:
  explicit FailingNetwork(FailingParts parts)
      : network_(std::move(parts.network)),
        table_(parts.table),
        occurrences_(parts.occurrences),
        log_(parts.log),
        fabric_(parts.cluster.fabric),
        whole_(fabric_, parts.cluster.damaged),
        adaptive_(fabric_.spec().routing == Routing::kAdaptive),
        paths_(parts.cluster, parts.seed),
        outages_(fabric_, parts.plan.failover),
        changes_(changes_of(parts.occurrences, parts.plan.failover)) {}

  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override {
    if (running_.size() <= static_cast<std::size_t>(transfer)) running_.resize(transfer + 1);
    Running& running = running_[transfer];
    running.step = &step;
    running.moving.reset();
    running.id = id;
    ++running.version;
    set_capacities(now);
    network_->start(transfer, step, id, now);
    if (!outages_.none()) look_at(transfer, now, slowed_ > 0);
  }

  Time next_event() override {
    const Time change = next_ < changes_.size() ? changes_[next_].time : kForever;
    return std::min({network_->next_event(), change, next_try()});
  }

  void set_capacity(int wire, double share, Time now) override { network_->set_capacity(wire, share, now); }
  double carried(int wire) const override { return network_->carried(wire); }

  void advance(Time now, std::vector<std::int32_t>& ended) override {
    const std::size_t before = ended.size();
    network_->advance(now, ended);
    for (std::size_t i = before; i < ended.size(); ++i) {
      Running& over = running_[ended[i]];
      over.step = nullptr;
      over.moving.reset();
      ++over.version;
    }
    for (; next_ < changes_.size() && changes_[next_].time <= now; ++next_) apply(changes_[next_], now);
    while (next_try() <= now) {
      const std::int32_t transfer = tries_.top().slot;
      tries_.pop();
      look_at(transfer, now);
    }
  }

 private:
  struct Running {
    const Step* step = nullptr;          // as it was started; null: nothing runs
    std::unique_ptr<MovingStep> moving;  // null: it goes its usual ways
    std::uint64_t id = 0;
    std::uint32_t version = 0;
  };

  Time next_try() {
    return tries_.next([&](const Event& event) { return running_[event.slot].version == event.version; });
  }

  void apply(const Change& change, Time now) {
    const std::int32_t number = change.number;
    PartHealth part = occurrences_[number].fault.part;
    const bool levels = adaptive_ && part.capacity > 0;
    switch (change.kind) {
      case Change::Kind::kDetect:
        return log_.detected(number, now);
      case Change::Kind::kMitigate:  // senders that wait hear of it in Outages::avoided_from
        return log_.mitigated(number, now);
      case Change::Kind::kBegin:
        outages_.begin(number, part, now);
        log_.down(number, now);
        slowed_ += levels ? 1 : 0;
        break;
      case Change::Kind::kEnd:
        outages_.end(number);
        log_.up(number, now);
        part.capacity = 1;
        slowed_ -= levels ? 1 : 0;
        break;
    }
    paths_.set_health(part);
    num_set_ = 0;
    set_capacities(now);
    for (std::size_t i = 0; i < running_.size(); ++i)
      if (running_[i].step != nullptr) look_at(static_cast<std::int32_t>(i), now, levels);
  }

  // Of wires that are new, or of all after a change.
  void set_capacities(Time now) {
    shares_.resize(table_.size(), 1);
    for (; num_set_ < table_.size(); ++num_set_) {
      if (table_.kind(num_set_) == kNumWireKinds) continue;
      const WireId wire{static_cast<WireKind>(table_.kind(num_set_)), table_.index(num_set_)};
      const double from_start = whole_.share(wire);  // is in the table's capacity
      const double share = from_start > 0 ? paths_.health().share(wire) / from_start : 1;
      if (share == shares_[num_set_]) continue;
      shares_[num_set_] = share;
      network_->set_capacity(num_set_, share, now);
    }
  }

  bool broken(const std::vector<WireId>& way, std::int32_t& number) const {
    bool any = false;
    for (const WireId wire : way) any = outages_.breaks(wire, number) || any;
    return any;
  }

  bool any_broken(const Step& step) {
    std::int32_t number = -1;
    for (const StepPart& part : step.parts->parts) {
      way_.clear();
      paths_.wires(part.from, part.to, part.way, way_);
      if (broken(way_, number)) return true;
    }
    return false;
  }

  // Its messages go on, wait or go around, as things are now; what goes on may be levelled anew.
  void look_at(std::int32_t transfer, Time now, bool levels = false) {
    Running& running = running_[transfer];
    if (running.moving) {
      running.moving->settle(network_->left(transfer, now));
    } else {
      if (!running.step->parts || !(levels || any_broken(*running.step))) return;
      const std::vector<double> left = network_->left(transfer, now);
      running.moving = std::make_unique<MovingStep>(*running.step, left, paths_, table_);
    }
    const Time next = choose_ways(*running.moving, now);
    ++running.version;
    if (levels) running.moving->level();
    if (next != kForever) tries_.push({next, running.id, transfer, running.version});
    const bool any = running.moving->rebuild([&](std::int32_t wire) { return shares_of(wire) <= 0; });
    set_capacities(now);
    if (any) return network_->replace(transfer, running.moving->step(), now);
    running.step = nullptr;  // it is through, but for rounding: no one looks at it again
    ++running.version;
  }

  double shares_of(std::int32_t wire) const {
    return static_cast<std::size_t>(wire) < shares_.size() ? shares_[wire] : 1;
  }

  // Returns when to look again: when the first of the NICs that wait takes other ways.
  Time choose_ways(MovingStep& step, Time now) {
    Time next = kForever;
    std::vector<MovingStep::Part> parts;
    for (MovingStep::Part& part : step.parts()) {
      std::int32_t number = -1;
      if (!broken(step.way(part.part), number)) {
        part.stalled = false;
        parts.push_back(std::move(part));
        continue;
      }
      const auto [sender, receiver] = part.part.way.gates;
      const Time from = outages_.avoided_from(number, fabric_.nic_of(sender), fabric_.nic_of(receiver), now);
      if (from <= now && can_move(part.part, number)) {
        move(step, part, number, now, parts);
        continue;
      }
      if (!part.stalled) log_.stalled(number, part.left(), now);
      part.stalled = true;
      if (from > now) next = std::min(next, from);
      parts.push_back(std::move(part));
    }
    step.parts() = std::move(parts);
    return next;
  }

  // Where no way is left a message waits until there is one again, if ever.
  bool can_move(const StepPart& part, std::int32_t number) {
    return occurrences_[number].up == kForever || paths_.connected(part.from, part.to, part.way.change);
  }

  void move(const MovingStep& step, const MovingStep::Part& part, std::int32_t number, Time now,
            std::vector<MovingStep::Part>& into) {
    const auto [from, to] = std::pair(part.part.from, part.part.to);
    std::vector<FlowPath> ways;
    const RailChange change = part.part.way.change;
    paths_.choose(from, to, change, ways);
    const Fabric::Gates usual = fabric_.gates(from, to, change), by = ways.front().gates;
    const bool detour = by.sender != usual.sender || by.receiver != usual.receiver;
    log_.moved(number, part.left(), detour, now);
    for (MovingStep::Part& moved : step.moved(part, ways)) into.push_back(std::move(moved));
  }

  std::unique_ptr<Network> network_;
  WireTable& table_;
  const std::vector<Occurrence>& occurrences_;
  FaultLog& log_;
  const Fabric& fabric_;
  const PathHealth whole_;  // as it was when the run began
  const bool adaptive_;
  int slowed_ = 0;  // parts that are, for adaptive switches to level around
  FlowPaths paths_;
  Outages outages_;
  std::vector<Change> changes_;
  std::size_t next_ = 0;        // of the changes
  std::vector<double> shares_;  // of the table's capacity, by wire
  int num_set_ = 0;             // wires with the share that they should have
  std::vector<Running> running_;
  EventQueue tries_;
  std::vector<WireId> way_;
};

}  // namespace

std::unique_ptr<Network> make_failing_network(FailingParts parts) {
  return std::make_unique<FailingNetwork>(std::move(parts));
}

}  // namespace moebius
