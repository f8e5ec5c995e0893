#include "workloads/serving/system/iteration_timer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "workloads/serving/cut_prompts.h"
#include "workloads/serving/two_batches.h"

namespace moebius {
namespace {

// Where the cache holds a sequence changes nothing of what an iteration takes: each has one page, as large as
// the longest one needs, so that long prompts are no long lists; or one for each chunk that layers attend in.
class BatchMaker {
 public:
  explicit BatchMaker(std::int32_t chunk = 0) : chunk_(chunk) {
    if (chunk > 0) batch_.page_tokens = chunk;
  }
  void add(std::int32_t past, std::int32_t count, bool padding = false) {
    const std::int32_t number = padding ? -1 : static_cast<std::int32_t>(batch_.sequences.size());
    const std::int32_t length = past + count;
    std::vector<std::int32_t> pages(chunk_ > 0 ? (length + chunk_ - 1) / chunk_ : 1);
    std::iota(pages.begin(), pages.end(), pages_);
    pages_ += static_cast<std::int32_t>(pages.size());
    batch_.sequences.push_back({number, length, past, count, std::move(pages)});
    if (chunk_ == 0) batch_.page_tokens = std::max(batch_.page_tokens, length);
  }
  Batch take() { return std::move(batch_); }

 private:
  Batch batch_;
  std::int32_t chunk_, pages_ = 0;
};

// Keys of the i-th of so many sequences that have so many on average. Where layers attend in chunks,
// sequences beyond the first stand evenly in theirs: were all as long, all would see a full chunk, or none of
// it.
std::int64_t keys_of(std::int64_t mean, std::int64_t i, std::int64_t sequences, std::int64_t chunk) {
  if (chunk == 0 || mean <= chunk) return mean;
  return mean / chunk * chunk + (2 * i + 1) * chunk / (2 * sequences);
}

// A whole prompt of n tokens has (n + 1) / 2 keys a token; n is taken to be even, so that edges of tokens are
// cut into equal prompts.
void add_prompts(BatchMaker& maker, std::int64_t tokens, std::int64_t keys) {
  const std::int64_t whole = keys == 1 ? 1 : 2 * keys;
  if (whole >= tokens) {
    maker.add(static_cast<std::int32_t>(std::max<std::int64_t>(0, keys - (tokens + 1) / 2)),
              static_cast<std::int32_t>(tokens));
    return;
  }
  for (std::int64_t left = tokens; left > 0; left -= whole)
    maker.add(0, static_cast<std::int32_t>(std::min(left, whole)));
}

// Of an iteration with so many times what the longer of two stacks has more than the shorter one.
BusySources stacked(const BusySources& shorter, const BusySources& longer, double times) {
  BusySources all = shorter;
  all.add(longer, times);
  all.add(shorter, -times);
  return all;
}

SideTimes stacked(const SideTimes& shorter, SideTimes longer, double times) {
  longer += shorter * -1;
  SideTimes all = shorter;
  all += longer * times;
  all.microbatches = shorter.microbatches;
  return all;
}

BatchPtr rows_only(std::int64_t rows, std::int64_t padding, int chunk) {
  BatchMaker maker(chunk);
  rows = std::max<std::int64_t>(1, rows);
  padding = std::min(padding, rows);
  if (rows > padding) maker.add(0, static_cast<std::int32_t>(rows - padding));
  if (padding > 0) maker.add(0, static_cast<std::int32_t>(padding), true);
  return std::make_shared<const Batch>(maker.take());
}

// What a token chooses by popularity follows from its request: replicas whose tokens meet have requests of
// their own.
std::vector<BatchPtr> with_own_requests(const std::vector<BatchPtr>& batches) {
  std::vector<BatchPtr> named;
  std::int32_t first = 0;
  for (const BatchPtr& batch : batches) {
    Batch own = *batch;
    for (BatchSequence& s : own.sequences)
      if (s.request >= 0) s.request += first;
    first += static_cast<std::int32_t>(own.sequences.size());
    named.push_back(std::make_shared<const Batch>(std::move(own)));
  }
  return named;
}

}  // namespace

Batch batch_of(const StepPoint& point, int drafts, int chunk) {
  BatchMaker maker(chunk);
  if (point.prefill_tokens > 0)
    add_prompts(maker, point.prefill_tokens, std::max<std::int64_t>(point.prefill_keys, 1));
  for (std::int64_t i = 0; i < point.decode_sequences; ++i) {
    const std::int64_t keys = keys_of(point.decode_keys, i, point.decode_sequences, chunk);
    maker.add(static_cast<std::int32_t>(std::max<std::int64_t>(1 + drafts, keys) - 1 - drafts), 1 + drafts,
              i >= point.decode_sequences - point.fillers);
  }
  return maker.take();
}

Repetition repetition_of(const Model& model) {
  const auto alike = [&](int a, int b) {
    return model.is_moe_layer(a) == model.is_moe_layer(b) && model.window(a) == model.window(b) &&
           model.chunk(a) == model.chunk(b) && model.is_delta_layer(a) == model.is_delta_layer(b) &&
           model.rotates(a) == model.rotates(b);
  };
  Repetition best{model.layers, 1};
  for (int period = 1; period <= 8; ++period) {
    int from = std::max(0, model.layers - period);
    while (from > 0 && alike(from - 1, from - 1 + period)) --from;
    if (from + period < best.from + best.period) best = {from, period};
  }
  return best;
}

IterationTimer::Stack::Stack(const ServingJob& whole, int layers, std::shared_ptr<RouteCache> balanced)
    : job(whole), shape(job), routes(job, std::move(balanced)) {
  job.model.layers = layers;
  if (job.plan.experts_apart()) separated.emplace(job, shape, PromptCut::kAnywhere);
}

// Of the repetitions two stay in the short stack: the first follows other layers, or none. Layers whose
// tokens draw their experts differ by their draws alone: a few stand for all.
IterationTimer::IterationTimer(const ServingJob& job, const Layout& layout, SteadyTimer timer,
                               Recorder& recorder, bool from_hidden, std::shared_ptr<RouteCache> balanced)
    : layout_(layout),
      timer_(timer),
      recorder_(recorder),
      from_hidden_(from_hidden),
      balanced_(balanced ? std::move(balanced) : std::make_shared<RouteCache>()),
      repetition_(repetition_of(job.model)) {
  const auto [from, period] = repetition_;
  const int shorter = from + (job.model.layers - from) % period + 2 * period;
  const Popularity& popularity = job.workload.popularity;
  further_ =
      popularity.kind == PopularityKind::kBalanced || job.model.experts.routed == 0 ? 1 : kDrawnRepetitions;
  const int longer = shorter + further_ * period;
  if (popularity.kind == PopularityKind::kRecorded || longer >= job.model.layers) {
    stacks_.push_back(std::make_unique<Stack>(job, job.model.layers, balanced_));
    return;
  }
  all_layers_ = job.model.layers;
  for (const int layers : {shorter, longer})
    stacks_.push_back(std::make_unique<Stack>(job, layers, balanced_));
}

double IterationTimer::seconds(const StepPoint& point, const Extras& extras) {
  const ServingPlan& plan = stacks_.front()->job.plan;
  const int chunk = stacks_.front()->job.model.attention_chunk;
  const int drafts = extras.drafts < 0 ? plan.drafts : extras.drafts;
  const auto own = std::make_shared<const Batch>(batch_of(point, drafts, chunk));
  std::vector<BatchPtr> batches{own};
  // Where one replica has two halves, the others meet it twice, with a token of padding if need be.
  const std::int64_t least = plan.overlap(plan.decodes(*own)).two_batch && own->rows() > 1 ? 2 : 1;
  const auto rows = std::max(
      least, static_cast<std::int64_t>(std::llround(point.others * static_cast<double>(own->rows()))));
  batches.resize(plan.replicas(),
                 rows == own->rows() ? own : rows_only(rows, point.fillers * (1 + drafts), chunk));
  const bool meet = plan.ranks_of_route() > plan.tp || plan.experts_apart();
  if (meet && stacks_.front()->job.workload.popularity.kind != PopularityKind::kBalanced)
    batches = with_own_requests(batches);
  Extras launched = extras;
  if (plan.launch == LaunchMode::kGraph && point.prefill_tokens == 0)
    launched.launch = point.eager ? LaunchMode::kKernel : LaunchMode::kGraph;
  launched.absorbed = point.absorbed;
  launched.absorbed_alone = rows != own->rows();
  const double seconds = this->seconds(batches, launched);
  Sides& sides = means_[point.prefill_tokens > 0];
  sides.sum += sides_;
  ++sides.iterations;
  return seconds;
}

double IterationTimer::all_layers(const std::vector<BatchPtr>& batches, const Extras& extras) {
  if (stacks_.size() == 1) return seconds(*stacks_.front(), batches, extras);
  if (!whole_) {
    whole_ = std::make_unique<Stack>(stacks_.front()->job, all_layers_, balanced_);
  }
  return seconds(*whole_, batches, extras);
}

double IterationTimer::with_draws(const std::vector<BatchPtr>& batches, const Extras& extras, int draws) {
  const Stack& front = *stacks_.front();
  const int layers = front.job.model.layers, more = draws * repetition_.period;
  if (stacks_.size() == 1 || layers + more >= all_layers_) return all_layers(batches, extras);
  Stack& drawn = drawn_.try_emplace(draws, front.job, layers + more, balanced_).first->second;
  const double shorter = seconds(*stacks_.front(), batches, extras);
  const SideTimes of_shorter = sides_;
  const BusySources busy = busy_;
  const double longer = seconds(drawn, batches, extras);
  const double times = static_cast<double>(all_layers_ - layers) / more;
  sides_ = stacked(of_shorter, sides_, times);
  busy_ = stacked(busy, busy_, times);
  return shorter + times * (longer - shorter);
}

double IterationTimer::seconds(const std::vector<BatchPtr>& batches, const Extras& extras) {
  const SlotDraw* loads = extras.loads;
  if (extras.moves || extras.all_layers) return all_layers(batches, extras);
  if (loads != nullptr && loads->draws > 1) return with_draws(batches, extras, loads->draws);
  if (loads != nullptr && loads->weights.size() > 1) return all_layers(batches, extras);
  const double shorter = seconds(*stacks_.front(), batches, extras);
  if (stacks_.size() == 1) return shorter;
  const SideTimes of_shorter = sides_;
  const BusySources busy = busy_;
  const int layers = stacks_.front()->job.model.layers;
  const double repetitions = static_cast<double>(all_layers_ - layers) / repetition_.period / further_;
  const double longer = seconds(*stacks_.back(), batches, extras);
  sides_ = stacked(of_shorter, sides_, repetitions);
  busy_ = stacked(busy, busy_, repetitions);
  return shorter + repetitions * (longer - shorter);
}

SideTimes IterationTimer::take_mean_sides(bool prompts) {
  Sides& of = means_[prompts];
  const SideTimes mean = of.sum * (of.iterations > 0 ? 1 / static_cast<double>(of.iterations) : 0);
  of = {};
  return mean;
}

// What every class of ranks does.
std::vector<FragmentPtr> IterationTimer::fragments(Stack& stack, const std::vector<BatchPtr>& batches,
                                                   const Extras& extras) {
  std::vector<FragmentPtr> fragments;
  if (stack.separated) {
    stack.separated->draw(extras.loads);
    stack.separated->begin(batches, extras.launch, extras.absorbed);
    for (const RankClass& of : layout_.classes) fragments.push_back(stack.separated->fragment(of));
    return fragments;
  }
  const ServingPlan& plan = stack.job.plan;
  const std::vector<BatchPtr> of_ranks = cut_prompts(batches, plan.cp, plan.attend_by);
  stack.routes.draw(extras.loads);
  stack.routes.begin(of_ranks);
  for (const RankClass& of : layout_.classes) {
    const int group = of.representative() / plan.ranks_of_route();
    const BatchPtr& batch = of_ranks[of.representative() / stack.job.plan.tp];
    Iteration part{batch, shard_of(of), [&](int layer) { return stack.routes.get(group, layer); },
                   extras.moves, from_hidden_};
    part.launch = extras.launch;
    part.absorbed = extras.absorbed;
    if (extras.absorbed_alone && batch != of_ranks.front()) part.absorbed = false;
    if (plan.attend_by == CutAttention::kHeads) part.whole = batches[of.representative() / plan.cp];
    if (plan.shares_by(ExpertSharing::kGather)) part.longest = stack.routes.longest(group);
    fragments.push_back(lower_iteration(stack.shape, part));
  }
  return fragments;
}

std::vector<FragmentPtr> IterationTimer::iteration(Stack& stack, const std::vector<BatchPtr>& batches,
                                                   const Extras& extras) {
  const bool decodes = stack.job.plan.decodes(*batches.front());
  const auto halves =
      stack.job.plan.overlap(decodes).two_batch ? halves_of(batches) : std::optional<HalfBatches>();
  if (!halves) return fragments(stack, batches, extras);
  std::vector<FragmentPtr> both = fragments(stack, halves->first, extras);
  Extras rest = extras;
  rest.moves = nullptr;  // weights move once
  const std::vector<FragmentPtr> second = fragments(stack, halves->second, rest);
  for (std::size_t c = 0; c < both.size(); ++c) both[c] = lower_two_batches(both[c], second[c], decodes);
  return both;
}

double IterationTimer::seconds(Stack& stack, const std::vector<BatchPtr>& batches, const Extras& extras) {
  const std::vector<FragmentPtr> of_classes = iteration(stack, batches, extras);
  const auto num_classes = static_cast<std::int32_t>(layout_.classes.size());
  BusySources before;  // the last of the runs until its clocks settle
  const double seconds = timer_.seconds([&](Executor& executor) {
    before = recorder_.busy_so_far();
    for (std::int32_t c = 0; c < num_classes; ++c) {
      const Submission submission{.fragment = of_classes[c],
                                  .sequence = sequence_++,
                                  .rank_class = c,
                                  .step = step_,
                                  .microbatch = 0,
                                  .after = {}};
      recorder_.submitted(submission);
      executor.submit(submission);
    }
  });
  ++step_;
  busy_ = recorder_.busy_so_far();
  busy_.add(before, -1);
  if (stack.separated) {
    sides_ =
        take_side_times(recorder_.timeline(), stack.job.plan, layout_, of_classes, sequence_ - num_classes);
    sides_.microbatches = stack.separated->microbatches();
  }
  return seconds;
}

}  // namespace moebius
