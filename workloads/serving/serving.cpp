#include "workloads/serving/serving.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/hash.h"
#include "workloads/serving/carried/carried_instance.h"
#include "workloads/serving/carried/popularity_book.h"
#include "workloads/serving/carried/prompt_feed.h"
#include "workloads/serving/left_out.h"

namespace moebius {
namespace {

// What has begun and not ended: an iteration, or a cache on its way.
struct Task {
  std::int32_t instance = 0;   // of an iteration; of a cache: where it goes
  std::int32_t sequence = -1;  // whose cache; -1: an iteration
  int left = 0;                // submissions
  Time end;
  std::vector<std::int32_t> submissions;
  std::vector<BatchPtr> batches;
};

std::vector<RequestTimes> times_of(const CarriedService& service) {
  std::vector<RequestTimes> times;
  for (const TrafficRequest& request : service.requests)
    times.push_back({static_cast<int>(request.input_tokens), static_cast<int>(request.output_tokens), {}});
  return times;
}

SystemRules rules_of(const CarriedService& service) {
  SystemRules rules;
  for (const CarriedPool& pool : service.pools) rules.pools.push_back(pool.rules);
  rules.router = service.router;
  rules.classes = service.classes;
  rules.transfer.bytes_per_token =
      kv_elements_per_token(service.model) * element_bytes(service.pools.front().plan.kv);
  rules.transfer.bytes_per_sequence = state_bytes_per_sequence(service.model).value;
  return rules;
}

}  // namespace

struct Serving::State : public ServiceCarrier {
  explicit State(CarriedService given)
      : service(std::move(given)),
        prompts(service.requests),
        popularities(service, prompts),
        course(service.workload.popularity, service.drift, service.workload.seed, service.model),
        layout(carried_layout(service)),
        feed(carried_feed(service)),
        times(times_of(service)),
        homes(times.size(), 0) {
    SystemRules rules = rules_of(service);
    rules.carrier = this;
    system.emplace(rules, *feed);
    for (int i = 0; i < static_cast<int>(layout.instances.size()); ++i) {
      instances.push_back(std::make_unique<CarriedInstance>(service, layout, i,
                                                            CarriedBooks{&prompts, &popularities, &course}));
      instances.back()->place_pages(system->instance(i));
    }
    ended.resize(instances.size());
    for (const RequestTimes& of : times) tokens_to_give += of.output;
  }

  int num_classes() const { return static_cast<int>(layout.layout.classes.size()); }

  void accepted(std::int32_t id, std::int32_t number) override {
    if (id >= static_cast<std::int32_t>(known.size())) known.resize(id + 1);
    known[id] = {number, times[number].input};
    times[number].arrival = system->now();
  }

  void iterate(std::int32_t number) override {
    CarriedInstance& instance = *instances[number];
    Task& task = begin_task(number, -1);
    task.batches = instance.batches(system->instance(number), [this](std::int32_t id) { return known[id]; });
    const std::vector<std::int32_t> after = std::move(ended[number]);
    ended[number].clear();
    issue(instance.swaps(), after);
    issue(instance.iteration(task.batches, system->now()), after);
    prefills += std::any_of(task.batches.begin(), task.batches.end(),
                            [](const BatchPtr& batch) { return !batch->decodes(); });
  }

  // The iteration that computed the prompt has just ended, and what left room here had ended.
  void move_cache(std::int32_t id, const Location& from, const Location& to) override {
    const int sender = number_of(from), receiver = number_of(to);
    CarriedInstance &source = *instances[sender], &target = *instances[receiver];
    std::vector<std::int32_t> after = ended[sender];
    after.insert(after.end(), ended[receiver].begin(), ended[receiver].end());
    begin_task(receiver, id);
    issue(source.move(true, from.replica, id, known[id], target.first_rank(to.replica)), after);
    issue(target.move(false, to.replica, id, known[id], source.first_rank(from.replica)), after);
  }

  int number_of(const Location& at) const {
    int first = 0;
    for (int p = 0; p < at.pool; ++p) first += service.pools[p].rules.instances;
    return first + at.instance;
  }

  Task& begin_task(std::int32_t instance, std::int32_t sequence) {
    Task& task = tasks.emplace_back();
    task.instance = instance;
    task.sequence = sequence;
    return task;
  }

  // Of the task that was begun last.
  void issue(std::vector<RankWork> work, const std::vector<std::int32_t>& after) {
    const auto number = static_cast<std::int32_t>(tasks.size()) - 1;
    for (RankWork& of : work) {
      const auto sequence = static_cast<std::int32_t>(task_of.size());
      tasks.back().submissions.push_back(sequence);
      ++tasks.back().left;
      task_of.push_back(number);
      queue.push_back({.fragment = std::move(of.fragment),
                       .sequence = sequence,
                       .rank_class = of.rank_class,
                       .step = number,
                       .microbatch = 0,
                       .after = after});
    }
  }

  // Whose sequences got a token: those whose last known one was among the rows. What is computed again after
  // a preemption brings no new one until it is at its end.
  void note_tokens(const Task& task, Time time) {
    for (std::size_t replica = 0; replica < task.batches.size(); ++replica) {
      for (const BatchSequence& sequence : task.batches[replica]->sequences) {
        if (sequence.request < 0) continue;
        RequestTimes& of = times[sequence.request];
        if (sequence.length() - sequence.prompt != static_cast<std::int32_t>(of.tokens.size())) continue;
        of.tokens.push_back(time);
        homes[sequence.request] = instances[task.instance]->first_rank(static_cast<int>(replica));
        ++tokens_given;
      }
    }
  }

  void end(std::int32_t number) {
    Task task = std::move(tasks[number]);
    tasks[number] = {};
    // What was decided meanwhile, decided the system by a later clock, which does not go back.
    const Time time = std::max(task.end + skipped, system->now());
    std::vector<std::int32_t>& of_instance = ended[task.instance];
    of_instance.insert(of_instance.end(), task.submissions.begin(), task.submissions.end());
    if (task.sequence >= 0) return system->cache_moved(task.sequence, time);
    instances[task.instance]->iteration_ended(time);
    note_tokens(task, time);
    system->iteration_ended(task.instance, time);
  }

  // Decides what is due; where nothing is under way, what comes next is due now.
  void advance(Time now) {
    system->advance_to(now + skipped);
    while (queue.empty() && outstanding == 0 && system->due()) {
      skipped += std::max(Time{}, *system->due() - (now + skipped));
      system->advance_to(now + skipped);
    }
    if (queue.empty() && outstanding == 0 && system->waiting() > 0)
      throw run_error(fmt::format("{} requests wait for each other", system->waiting()));
  }

  const CarriedService service;
  const PromptBook prompts;
  const PopularityBook popularities;
  ExpertCourse course;
  const CarriedLayout layout;
  std::unique_ptr<RequestFeed> feed;
  std::optional<ServingSystem> system;
  std::vector<std::unique_ptr<CarriedInstance>> instances;
  std::vector<CarriedSequence> known;  // by the id of a sequence
  std::vector<RequestTimes> times;     // by request
  std::vector<int> homes;              // rank that has its tokens
  std::deque<Task> tasks;
  std::vector<std::int32_t> task_of;             // by submission
  std::vector<std::vector<std::int32_t>> ended;  // by instance: submissions since its last iteration began
  std::deque<Submission> queue;
  int outstanding = 0;
  std::int64_t prefills = 0, tokens_given = 0, tokens_to_give = 0;
  Time skipped;  // of the service's clock, before the executor's
};

Serving::Serving(const ServingJob& job) : Serving(carried_alone(job)) {}
Serving::Serving(const CarriedService& service) : state_(std::make_unique<State>(service)) {}
Serving::~Serving() = default;

const Layout& Serving::layout() const {
  return state_->layout.layout;
}

// Not before the last tokens are there: their moments are part of the result.
bool Serving::done() const {
  const State& s = *state_;
  return s.queue.empty() && s.outstanding == 0 && !s.system->due() && s.system->waiting() == 0;
}

double Serving::progress() const {
  return static_cast<double>(state_->tokens_given) / static_cast<double>(state_->tokens_to_give);
}

std::optional<Submission> Serving::next(Time now) {
  State& s = *state_;
  if (s.queue.empty()) s.advance(now);
  if (s.queue.empty()) return std::nullopt;
  Submission submission = std::move(s.queue.front());
  s.queue.pop_front();
  ++s.outstanding;
  return submission;
}

Time Serving::due() const {
  const std::optional<Time> due = state_->system->due();
  return due ? *due - state_->skipped : kForever;
}

void Serving::completed(const Completion& completion) {
  State& s = *state_;
  --s.outstanding;
  const std::int32_t number = s.task_of[completion.sequence];
  Task& task = s.tasks[number];
  task.end = std::max(task.end, completion.time);
  if (--task.left == 0) s.end(number);
}

MemoryReport Serving::memory(Bytes capacity) {
  State& s = *state_;
  MemoryReport report;
  report.capacity = capacity;
  for (std::size_t i = 0; i < s.instances.size(); ++i) {
    const ServingPlan& plan = s.service.pools[s.layout.instances[i].pool].plan;
    CarriedInstance& instance = *s.instances[i];
    const std::vector<RankWork> prompts = instance.largest_iteration(instance.full_batches(false));
    const std::vector<RankWork> decode = instance.largest_iteration(instance.full_batches(true));
    // Ranks have shared experts whole for the phase that dispatches, whatever columns do in the other:
    // weights count as they stand in the first pass.
    const bool decode_dispatches = plan.sharing(true) == ExpertSharing::kDispatch;
    for (std::size_t c = 0; c < prompts.size(); ++c) {
      std::vector<MemoryPass> passes{{prompts[c].fragment.get(), 0}, {decode[c].fragment.get(), 0}};
      if (decode_dispatches && plan.sharing(false) != ExpertSharing::kDispatch)
        std::swap(passes.front(), passes.back());
      report.classes.push_back(memory_of_passes(passes));
    }
  }
  return report;
}

std::string expert_degrees(const ServingPlan& plan) {
  return plan.shares_by(ExpertSharing::kGather) ? fmt::format("ep {} x tp {}", plan.ep, plan.expert_tp)
                                                : fmt::format("ep {}", plan.ep);
}

std::string Serving::describe() const {
  std::string text;
  for (const CarriedPool& pool : state_->service.pools) {
    const ServingPlan& plan = pool.plan;
    if (state_->service.several())
      text += fmt::format("pool           {}: {} instance{}\n", pool.rules.name, pool.rules.instances,
                          pool.rules.instances == 1 ? "" : "s");
    text += fmt::format("ranks          {} = dp {} x tp {}{}; {}\n", plan.ranks(), plan.dp, plan.tp,
                        plan.experts_apart() ? fmt::format(" + {} with experts", plan.apart.ranks) : "",
                        expert_degrees(plan));
    text += fmt::format("batch          {} sequences a replica decode at once; {} prompt tokens a prefill\n",
                        plan.max_batch, plan.token_budget);
    text += fmt::format("cache          {} pages of {} tokens a rank, {}\n",
                        pool.rules.instance.replica.pages + 1, plan.block_tokens, to_string(plan.kv));
  }
  text += fmt::format("rank classes   {}\n", state_->num_classes());
  const std::string missing = left_out(state_->service.model);
  if (!missing.empty()) text += fmt::format("left out       {}\n", missing);
  return text;
}

ServingFigures Serving::figures(const ServiceGoal& goal) const {
  const State& s = *state_;
  ServingFigures figures = serving_figures(s.times, goal);
  double busy = 0, prompts = 0;
  for (const PoolFigures& pool : s.system->pools()) {
    figures.iterations += pool.totals.iterations;
    busy += pool.totals.busy.seconds();
    prompts += pool.totals.busy_with_prompts.seconds();
  }
  figures.prompt_share = busy > 0 ? prompts / busy : 0;
  figures.prefills = s.prefills;
  for (const auto& instance : s.instances) {
    figures.cache_pages = std::max(figures.cache_pages, instance->pages());
    figures.peak_pages = std::max(figures.peak_pages, instance->peak_pages());
  }
  return figures;
}

const std::vector<RequestTimes>& Serving::times() const {
  return state_->times;
}
const ServingSystem& Serving::system() const {
  return *state_->system;
}
const CarriedService& Serving::service() const {
  return state_->service;
}
std::optional<ExpertFigures> Serving::experts(int pool) const {
  const State& s = *state_;
  std::vector<ExpertBalancer*> balancers;
  for (std::size_t i = 0; i < s.instances.size(); ++i)
    if (s.layout.instances[i].pool == pool && s.instances[i]->experts() != nullptr)
      balancers.push_back(&s.instances[i]->experts()->balancer());
  if (balancers.empty()) return std::nullopt;
  ExpertFigures figures = figures_of(s.course, s.service.pools[pool].experts, balancers);
  figures.carried = true;
  return figures;
}

const PromptBook& Serving::prompts() const {
  return state_->prompts;
}

std::vector<std::vector<std::int32_t>> Serving::generated(const ReadTensor& values) const {
  const State& s = *state_;
  std::vector<std::vector<std::int32_t>> tokens(s.times.size());
  std::map<int, std::vector<float>> tables;  // by rank
  for (std::size_t id = 0; id < s.times.size(); ++id) {
    const auto [table, is_new] = tables.try_emplace(s.homes[id]);
    if (is_new) table->second = values(s.homes[id], generated_key());
    const std::size_t columns = table->second.size() / s.times.size();
    for (std::size_t i = 0; i < s.times[id].tokens.size() && columns > 0; ++i)
      tokens[id].push_back(static_cast<std::int32_t>(std::lround(table->second[id * columns + i])));
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
