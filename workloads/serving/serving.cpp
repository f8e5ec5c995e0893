#include "workloads/serving/serving.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/hash.h"
#include "workloads/serving/batching.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/left_out.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/separation/separated_iteration.h"
#include "workloads/serving/separation/separated_layout.h"

namespace moebius {
namespace {

std::deque<ServedRequest> requests_of(const ServingJob& job, int replica) {
  std::deque<ServedRequest> requests;
  for (int id = replica; id < job.workload.requests; id += job.plan.dp) {
    const RequestLengths lengths = lengths_of(job.workload, id);
    requests.push_back({.id = id, .prompt = lengths.input, .output = lengths.output});
  }
  return requests;
}

// Whole prompts of the longest kind, as many as one iteration takes; or a full batch at the end of its
// requests.
BatchPtr full_batch(const ServingJob& job, bool decode) {
  const ServingPlan& plan = job.plan;
  const int prompt = job.workload.input.high, output = job.workload.output.high;
  const int of_replica = (job.workload.requests + plan.dp - 1) / plan.dp;
  std::int64_t sequences = std::min(plan.max_batch, of_replica);
  if (!decode) sequences = std::clamp<std::int64_t>(plan.token_budget / prompt, 1, sequences);
  auto batch = std::make_shared<Batch>();
  batch->page_tokens = plan.block_tokens;
  std::int32_t page = 0;
  for (std::int32_t i = 0; i < sequences; ++i) {
    BatchSequence sequence{
        i * plan.dp, prompt, decode ? prompt + std::max(0, output - 2) : 0, decode ? 1 : prompt, {}};
    for (int p = pages_for(sequence.length(), plan.block_tokens); p > 0; --p)
      sequence.pages.push_back(page++);
    batch->sequences.push_back(std::move(sequence));
  }
  return batch;
}

}  // namespace

struct Serving::State {
  explicit State(const ServingJob& given)
      : job(given),
        shape(job),
        layout(job.plan.experts_apart() ? separated_layout(job.plan) : make_layout(shape.plan)),
        routes(job) {
    if (job.plan.experts_apart()) separated.emplace(job, shape, PromptCut::kWhole);
    for (int replica = 0; replica < job.plan.dp; ++replica)
      replicas.emplace_back(job.plan, requests_of(job, replica));
    for (int id = 0; id < job.workload.requests; ++id) {
      const RequestLengths lengths = lengths_of(job.workload, id);
      times.push_back({lengths.input, lengths.output, {}});
      tokens_to_give += lengths.output;
    }
  }

  int num_classes() const { return static_cast<int>(layout.classes.size()); }
  // Where experts stand apart, their ranks are of no replica: any will do.
  int replica_of(const RankClass& rank_class) const {
    return std::min(rank_class.representative() / job.plan.tp, job.plan.dp - 1);
  }

  // What all replicas do next; from here their requests count it as done.
  void plan_iteration() {
    batches.clear();
    for (Batching& replica : replicas) batches.push_back(std::make_shared<const Batch>(replica.next()));
    prefills += std::any_of(batches.begin(), batches.end(), [](const BatchPtr& b) { return !b->decodes(); });
    begin_routes(batches);
    next_class = 0;
    ++iteration;
  }

  void begin_routes(const std::vector<BatchPtr>& of_iteration) {
    separated ? separated->begin(of_iteration) : routes.begin(of_iteration);
  }

  FragmentPtr fragment(const RankClass& rank_class, const BatchPtr& batch) {
    if (separated) return separated->fragment(rank_class);
    const ShardPosition shard = shard_of(rank_class);
    const int group = rank_class.representative() / job.plan.ep;
    return lower_iteration(shape, {batch, shard, [&](int layer) { return routes.get(group, layer); }});
  }

  bool all_given() const {
    return std::all_of(replicas.begin(), replicas.end(), [](const Batching& r) { return r.done(); });
  }

  // Every sequence of the iteration got a token: whole prompts are prefilled at once.
  void note_tokens(Time time) {
    for (const BatchPtr& batch : batches) {
      for (const BatchSequence& sequence : batch->sequences) {
        if (sequence.request < 0) continue;
        times[sequence.request].tokens.push_back(time);
        ++tokens_given;
      }
    }
  }

  ServingJob job;
  ServingShape shape;
  Layout layout;
  IterationRoutes routes;
  std::optional<SeparatedIteration> separated;  // where experts stand apart
  std::vector<Batching> replicas;
  std::vector<BatchPtr> batches;  // of the iteration that is under way, by replica
  std::vector<RequestTimes> times;
  int next_class = 0;  // whose fragment of it is issued next
  int outstanding = 0;
  std::int32_t iteration = -1, sequence = 0;
  std::int64_t prefills = 0, tokens_given = 0, tokens_to_give = 0;
  Time last_end;
};

Serving::Serving(const ServingJob& job) : state_(std::make_unique<State>(job)) {
  state_->plan_iteration();
}
Serving::~Serving() = default;

const Layout& Serving::layout() const {
  return state_->layout;
}
// Not before the last tokens are there: their moments are part of the result.
bool Serving::done() const {
  return state_->all_given() && state_->next_class == state_->num_classes() && state_->outstanding == 0;
}
double Serving::progress() const {
  return static_cast<double>(state_->tokens_given) / static_cast<double>(state_->tokens_to_give);
}

std::optional<Submission> Serving::next(Time) {
  State& s = *state_;
  if (s.next_class == s.num_classes()) {
    if (s.outstanding > 0 || s.all_given()) return std::nullopt;
    s.plan_iteration();
  }
  const RankClass& rank_class = s.layout.classes[s.next_class];
  Submission submission{.fragment = s.fragment(rank_class, s.batches[s.replica_of(rank_class)]),
                        .sequence = s.sequence++,
                        .rank_class = s.next_class,
                        .step = s.iteration,
                        .microbatch = 0,
                        .after = {}};
  ++s.next_class;
  ++s.outstanding;
  return submission;
}

void Serving::completed(const Completion& completion) {
  State& s = *state_;
  s.last_end = std::max(s.last_end, completion.time);
  if (--s.outstanding == 0 && s.next_class == s.num_classes()) s.note_tokens(s.last_end);
}

MemoryReport Serving::memory(Bytes capacity) {
  State& s = *state_;
  MemoryReport report;
  report.capacity = capacity;
  std::vector<BatchPtr> batches[2];
  for (const bool decode : {false, true}) batches[decode].assign(s.job.plan.dp, full_batch(s.job, decode));
  for (const RankClass& rank_class : s.layout.classes) {
    std::vector<FragmentPtr> fragments;
    for (const auto& full : batches) {
      s.begin_routes(full);
      fragments.push_back(s.fragment(rank_class, full[0]));
    }
    const std::vector<MemoryPass> passes{{fragments[0].get(), 0}, {fragments[1].get(), 0}};
    report.classes.push_back(memory_of_passes(passes));
  }
  s.begin_routes(s.batches);
  return report;
}

std::string Serving::describe() const {
  const ServingPlan& plan = state_->job.plan;
  std::string text =
      fmt::format("ranks          {} = dp {} x tp {}{}; ep {}\n", plan.ranks(), plan.dp, plan.tp,
                  plan.experts_apart() ? fmt::format(" + {} with experts", plan.apart.ranks) : "", plan.ep);
  text += fmt::format("batch          {} sequences a replica decode at once; {} prompt tokens a prefill\n",
                      plan.max_batch, plan.token_budget);
  text += fmt::format("cache          {} pages of {} tokens a rank, {}\n",
                      state_->replicas.front().pool().size(), plan.block_tokens, to_string(plan.kv));
  text += fmt::format("rank classes   {}\n", state_->num_classes());
  const std::string missing = left_out(state_->job.model);
  if (!missing.empty()) text += fmt::format("left out       {}\n", missing);
  return text;
}

ServingFigures Serving::figures(const ServiceGoal& goal) const {
  const State& s = *state_;
  ServingFigures figures = serving_figures(s.times, goal);
  figures.iterations = s.iteration + 1;
  figures.prefills = s.prefills;
  for (const Batching& replica : s.replicas) {
    figures.cache_pages = std::max(figures.cache_pages, replica.pool().size());
    figures.peak_pages = std::max(figures.peak_pages, replica.pool().peak());
  }
  return figures;
}

std::vector<std::vector<std::int32_t>> Serving::generated(const ReadTensor& values) const {
  const State& s = *state_;
  std::vector<std::vector<std::int32_t>> tokens(s.times.size());
  for (int replica = 0; replica < s.job.plan.dp; ++replica) {
    const std::vector<float> table = values(replica * s.job.plan.tp, generated_key());
    const std::size_t columns = table.size() / s.times.size();
    for (std::size_t id = replica; id < s.times.size() && columns > 0; id += s.job.plan.dp) {
      for (int i = 0; i < s.times[id].output; ++i)
        tokens[id].push_back(static_cast<std::int32_t>(std::lround(table[id * columns + i])));
    }
  }
  return tokens;
}

std::uint64_t hash_of(const std::vector<std::vector<std::int32_t>>& tokens) {
  Hash hash;
  for (const std::vector<std::int32_t>& request : tokens) {
    hash.add(request.size());
    for (const std::int32_t token : request) hash.add(token);
  }
  return hash.value();
}

}  // namespace moebius
