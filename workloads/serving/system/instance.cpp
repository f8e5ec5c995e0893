#include "workloads/serving/system/instance.h"

#include <algorithm>

#include "hw/error.h"

namespace moebius {

std::int64_t load_of(const ReplicaLoad& load, ReplicaBalance by) {
  if (by == ReplicaBalance::kTokens) return load.prompt_tokens + load.context_tokens + load.expected_tokens;
  return load.waiting + load.running + load.expected;
}

Instance::Instance(const InstanceRules& rules, StepCost* cost)
    : rules_(rules),
      cost_(cost),
      awake_(rules.replicas),
      changed_(rules.replicas),
      loads_(rules.replicas),
      before_(rules.replicas),
      shapes_(rules.replicas),
      host_takes_time_(rules.host.takes_time()),
      host_(rules.host) {
  replicas_.reserve(rules.replicas);
  for (int i = 0; i < rules.replicas; ++i) replicas_.emplace_back(rules.replica);
  set_marks({});
}

void Instance::set_marks(TouchMark all) {
  for (int i = 0; i < size(); ++i) replicas_[i].watch({awake_.mark(i), changed_.mark(i), all});
}

void Instance::watch(TouchMark mark) {
  set_marks(mark);
  mark.set();
}

std::int64_t captured_size(const std::vector<std::int32_t>& captured, std::int64_t sequences) {
  const auto at = std::lower_bound(captured.begin(), captured.end(), sequences);
  return at == captured.end() ? sequences : *at;
}

bool is_eager(const InstanceRules& rules, std::span<const StepShape> replicas) {
  if (rules.captured.empty()) return false;
  std::int64_t most = 0;
  for (const StepShape& shape : replicas) {
    if (shape.prefill_tokens > 0) return false;
    most = std::max<std::int64_t>(most, shape.decode_sequences);
  }
  if (most == 0) return false;
  if (most > rules.captured.back()) return true;
  // A replica without a sequence has a row of nobody's, as all take part.
  const auto fits = [&](const StepShape& shape) { return std::max(1, shape.decode_sequences) == most; };
  return !rules.fills_graphs && (captured_size(rules.captured, most) != most ||
                                 !std::all_of(replicas.begin(), replicas.end(), fits));
}

int Instance::choose() {
  const int turn = turn_;
  turn_ = (turn_ + 1) % size();
  if (rules_.balance == ReplicaBalance::kRoundRobin) return turn;
  refresh();
  const auto least = [&](int begin, int end) {  // the first of equals
    const auto at = std::min_element(before_.begin() + begin, before_.begin() + end);
    return static_cast<int>(at - before_.begin());
  };
  const int best = least(turn, size());  // of equals, the one whose turn it is
  if (turn == 0) return best;
  const int other = least(0, turn);
  return before_[other] < before_[best] ? other : best;
}

void Instance::refresh() const {
  changed_.filter([&](std::size_t i) {
    const ReplicaLoad found = replicas_[i].load();
    load_.add(found, 1);
    load_.add(loads_[i], -1);
    loads_[i] = found;
    before_[i] = load_of(found, rules_.balance);
    return false;
  });
}

// Of all replicas: rows, and those of prompts among them.
std::int64_t Instance::plan(Time now, std::int64_t& prompts) {
  std::int64_t rows = 0;
  const bool admits = rules_.await_prompts == 0 || admits_prompts();
  // Those that rest may have had rows in vain.
  if (!awake_.full()) std::fill(shapes_.begin(), shapes_.end(), kNoStep);
  awake_.filter([&](std::size_t i) {
    shapes_[i] = replicas_[i].plan(now, admits);
    rows += shapes_[i].rows();
    prompts += shapes_[i].prefill_tokens;
    return !replicas_[i].rests();
  });
  if (rows > 0) return rows;
  awake_.visit([&](std::size_t i) {
    shapes_[i] = replicas_[i].plan_prompts();
    prompts += shapes_[i].prefill_tokens;
  });
  return prompts;
}

bool Instance::start(Time now) {
  std::int64_t prompts = 0;
  if (busy_ || plan(now, prompts) == 0) return false;
  sums_ = StepSums(shapes_);
  count_iteration(now);
  begun_ = now;
  until_ = shown_ = kForever;
  return true;
}

void Instance::ended(Time now) {
  until_ = shown_ = now;
  count_busy(now - begun_);
}

std::optional<Time> Instance::begin(Time now) {
  std::int64_t prompts = 0;
  const std::int64_t rows = busy_ ? 0 : plan(now, prompts);
  if (rows == 0) return std::nullopt;
  cost_->begin(now, prompts < rows || ends_prompt());
  const HostWork work = host_work();
  cost_->starts(host_.begin(now, work));
  sums_ = StepSums(shapes_);
  const std::int64_t sequences = sums_.sequences;  // rows that fill a graph are nobody's
  if (prompts == 0 && !rules_.captured.empty()) fill_graphs();
  const double seconds = cost_->seconds(shapes_);
  count_stalls(seconds, sequences);
  // Pages go both ways at once, before they are written again and before they are read.
  const double swapping = static_cast<double>(sums_.most_swapped) * rules_.swap_seconds;
  const HostLane::Turn lasts = host_.end(behind_loads(now, time_from_seconds(swapping + seconds)), work);
  shown_ = lasts.shown;
  count_iteration(now);
  count_busy(lasts.end - now);
  until_ = lasts.end;
  return until_;
}

void Instance::count_iteration(Time now) {
  ++totals_.iterations;
  totals_.prefills += sums_.prompts > 0;
  totals_.rows += static_cast<double>(sums_.rows);
  totals_.slowest_rows += static_cast<double>(sums_.most_rows) * size();
  totals_.padding += static_cast<double>(sums_.padding);
  if (anew_) busy_since_ = now;
  busy_ = true;
}

void Instance::count_busy(Time busy) {
  totals_.busy += busy;
  if (sums_.prompts == 0) return;
  const double with_prompts = static_cast<double>(busy.ns) * sums_.prompts / sums_.rows;
  totals_.busy_with_prompts +=
      sums_.prompts == sums_.rows ? busy : Time{static_cast<std::int64_t>(with_prompts)};
}

bool Instance::ends_prompt() const {
  bool ends = false;
  visit_awake([&](const Replica& replica) { ends = ends || replica.prompts_ending() > 0; });
  return ends;
}

bool Instance::admits_prompts() {
  bool all_want = true, all_decode = true;
  for (const Replica& replica : replicas_) {
    all_want &= replica.wants_prompts();
    all_decode &= replica.decodes();
  }
  if (all_want) {
    awaited_ = 0;
    if (all_decode && gathered_ < rules_.gather_prompts) {
      ++gathered_;
      return false;
    }
    gathered_ = 0;
    return true;
  }
  if (++awaited_ < rules_.await_prompts && all_decode) return false;
  awaited_ = 0;
  return true;
}

// The last layer is computed when its own blocks are there.
Time Instance::behind_loads(Time now, Time device) {
  Time ready = now;
  visit_awake([&](const Replica& replica) { ready = std::max(ready, replica.loaded()); });
  const Time behind = ready - now + Time{device.ns / rules_.load_layers};
  if (ready == now || behind <= device) return device;
  totals_.stalled += behind - device;
  return behind;
}

void Instance::count_stalls(double seconds, std::int64_t sequences) {
  const StepStalls stalls = cost_->stalls(shapes_, seconds);
  totals_.stalls.add(stalls, 1);
  totals_.waited.add(stalls, static_cast<double>(sequences));
}

HostWork Instance::host_work() const {
  HostWork work;
  if (!host_takes_time_) return work;
  work.anew = anew_;
  awake_.visit([&](std::size_t i) {
    const StepShape& shape = shapes_[i];
    const std::int64_t sequences = shape.prefill_sequences + shape.decode_sequences;
    work.sequences = std::max(work.sequences, sequences);
    work.changes = std::max<std::int64_t>(work.changes, shape.changes);
    work.samples = std::max(work.samples, shape.decode_tokens + replicas_[i].prompts_ending());
    work.tokens += replicas_[i].tokens_to_come();
  });
  return work;
}

// Ranks that share experts replay graphs of one size. A row without a sequence has itself to attend to, and
// chooses the experts that all such rows choose.
void Instance::fill_graphs() {
  if (is_eager(rules_, shapes_)) {
    ++totals_.eager;
    for (StepShape& shape : shapes_) shape.eager = true;
    return;
  }
  std::int64_t most = 0;
  for (const StepShape& shape : shapes_) most = std::max<std::int64_t>(most, shape.decode_sequences);
  const std::int64_t size = captured_size(rules_.captured, most);
  if (size == 0) return;
  const std::int32_t rows = 1 + rules_.replica.speculation.drafts;
  for (StepShape& shape : shapes_) {
    const auto missing = static_cast<std::int32_t>(size) - shape.decode_sequences;
    shape.padding += std::int64_t{missing} * rows;
    if (rules_.choose_experts) shape.fillers = missing;
    shape.decode_sequences += missing;
    shape.decode_tokens += missing * rows;
    shape.decode_context += std::int64_t{missing} * rows;
  }
  sums_ = StepSums(shapes_);
}

void Instance::end(Time now, StepOutcome& outcome) {
  CHECK(now <= shown_, "tokens are shown before they are there");
  busy_ = false;
  anew_ = true;
  awake_.visit([&](std::size_t i) {
    replicas_[i].complete(shown_, outcome);
    anew_ = anew_ && replicas_[i].idle();
  });
  if (anew_ && rules_.replica.reserve_decay > 0)
    for (Replica& replica : replicas_) replica.begin_reserve();
}

std::int64_t Instance::load(ReplicaBalance by) const {
  return load_of(load(), by);
}

const ReplicaLoad& Instance::load() const {
  refresh();
  return load_;
}

}  // namespace moebius
