#include "workloads/cost/measured_ops.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "hw/interrupted.h"
#include "hw/stopwatch.h"
#include "models/layer_math.h"
#include "workloads/cost/roofline.h"
#include "workloads/progress_bar.h"

namespace moebius {
namespace {

using Clock = std::chrono::steady_clock;

// A simulated step asks for many ops once: a few repetitions of each, two of those that take seconds.
constexpr double kLong = 2;
constexpr StoppingRule kShortRule{.precision = 0.05, .least = 3, .most = 10, .most_seconds = 0.1};
constexpr StoppingRule kLongRule{.precision = 0.05, .least = 2, .most = 2, .most_seconds = 0.1};

}  // namespace

MeasuredOps::MeasuredOps(MeasuringDevice device, std::string journal)
    : device_(std::move(device)), journal_(std::move(journal)) {
  if (journal_.empty()) return;
  lines_ = load_journal(journal_);
  for (const JournalLine& line : lines_) {
    if (line.device == device_.bench->device())
      known_[to_text(line.key)] = {.measured = line.measured, .from_journal = true};
  }
}

// Of one execution.
double MeasuredOps::once(const CostQuery& query) {
  probe();
  const bool attends = is_attention(query.kind);
  return op_flops(query.kind, query.shape).value / (attends ? attention_rate_ : flop_rate_) +
         least_bytes(query) / byte_rate_;
}

void MeasuredOps::probe() {
  if (flop_rate_ > 0) return;
  const StoppingRule quick{.precision = 0.1, .least = 3, .most = 5, .most_seconds = 0.1};
  const CostQuery product{.kind = OpKind::kGemm, .shape = {.m = 256, .n = 1024, .k = 1024}};
  const CostQuery sum{.kind = OpKind::kAdd, .shape = {.m = 256, .n = 4096}};
  flop_rate_ = op_flops(product.kind, product.shape).value / device_.bench->measure(product, quick).seconds;
  const CostQuery pairs{
      .kind = OpKind::kAttention,
      .shape = {.m = 256, .groups = 1, .heads = 2, .kv_heads = 2, .head_dim = 128, .v_dim = 128, .kv = 256}};
  attention_rate_ = op_flops(pairs.kind, pairs.shape).value / device_.bench->measure(pairs, quick).seconds;
  byte_rate_ = op_bytes(sum.kind, sum.shape, sum.dtype).value / device_.bench->measure(sum, quick).seconds;
}

OpMeasurement MeasuredOps::get(const OpKey& key) {
  const std::string text = to_text(key);
  const auto found = known_.find(text);
  if (found != known_.end()) {
    found->second.used = true;
    return found->second.measured;
  }
  const Clock::time_point start = Clock::now();
  const CostQuery query = key.query();
  const OpMeasurement measured = device_.bench->measure(query, once(query) > kLong ? kLongRule : kShortRule);
  seconds_ += seconds_since(start);
  known_[text] = {.measured = measured, .from_journal = false, .used = true};
  if (!journal_.empty()) {
    lines_.push_back({device_.bench->device(), key, measured});
    save_journal(journal_, lines_);
  }
  return measured;
}

void MeasuredOps::measure_all(const std::vector<OpKey>& keys) {
  ProgressBar bar;
  const double whole = estimate(keys);
  const LastWords words(journal_.empty()
                            ? "interrupted: what was measured is lost; --out DIR keeps it for the next time"
                            : "interrupted; the same command goes on from " + journal_);
  double done = 0;
  for (const OpKey& key : keys) {
    const bool measures = !knows(key);
    get(key);
    if (measures) done += once(key.query());
    if (whole > 0) bar.show(3 * done / whole);
  }
}

// Each is executed three times at least, the one that warms up included.
double MeasuredOps::estimate(const std::vector<OpKey>& keys) {
  double seconds = 0;
  for (const OpKey& key : keys) {
    if (!knows(key)) seconds += 3 * once(key.query());
  }
  return seconds;
}

std::string MeasuredOps::note(const std::vector<OpKey>& keys) {
  constexpr double kWorthAWord = 30;
  const auto unknown = std::count_if(keys.begin(), keys.end(), [&](const OpKey& key) { return !knows(key); });
  if (unknown == 0) return "";
  std::string text;
  const double seconds = estimate(keys);
  if (seconds > kWorthAWord)
    text += fmt::format(
        "measuring {} ops on {} takes about {:.0f} minutes, at the {:.3g} GFLOP/s and {:.3g} GB/s of a quick "
        "probe\n",
        unknown, device(), std::ceil(seconds / 60), flop_rate_ * 1e-9, byte_rate_ * 1e-9);
  double largest = 0;
  for (const OpKey& key : keys) {
    if (device_.bytes && !knows(key)) largest = std::max(largest, device_.bytes(key.query()));
  }
  if (device_.memory_bytes > 0 && largest > device_.memory_bytes)
    text += fmt::format("the operands of the largest op take {}, {} has {} free: it will fail there\n",
                        to_text(Bytes{largest}), device(), to_text(Bytes{device_.memory_bytes}));
  return text;
}

MeasuringFacts MeasuredOps::facts() const {
  MeasuringFacts facts{.device = device(), .chip = device_.bench->chip(), .seconds = seconds_};
  for (const auto& [text, known] : known_) {
    if (!known.used) continue;
    ++facts.ops;
    facts.once += known.measured.seconds;
    facts.from_journal += known.from_journal;
  }
  return facts;
}

}  // namespace moebius
