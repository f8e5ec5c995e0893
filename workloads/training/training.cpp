#include "workloads/training/training.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/recorder.h"
#include "workloads/schedule/work.h"
#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/pipeline/columns.h"
#include "workloads/training/pipeline/pipeline.h"
#include "workloads/training/pipeline/uneven_batches.h"
#include "workloads/training/state/away_state.h"
#include "workloads/training/state/pass_waits.h"
#include "workloads/training/state/run_memory.h"
#include "workloads/training/state/sharding.h"

namespace moebius {
namespace {

// What one class runs.
struct ClassPlace {
  int rank = 0;  // of the pipeline
  ShardPosition shard;
  std::int32_t last_sequence = -1;     // of its last submission
  std::vector<std::int32_t> leaving;   // its ops that may still be on their way when it has computed
  std::vector<IssuedPass> reductions;  // of this step, that complete gradients
  FragmentPtr last_fragment;
  int microbatches = 0;  // of a step
  int next_pass = 0;     // of the step
  int outstanding = 0;   // submissions issued and not completed
  int completed_passes = 0;
  std::map<std::pair<int, int>, IssuedPass> forward_of;   // by chunk, microbatch: the reverse pass waits
  bool begun = false;                                     // this step computes
  std::map<std::pair<int, int>, std::int32_t> loads;      // by chunk and microbatch, not yet used
  std::map<int, std::deque<std::int32_t>> last_forwards;  // by chunk: whose buffers no load has taken
  std::map<int, int> loaded;                              // by chunk, up to the number of buffers
  std::vector<std::int32_t> exchange, last_exchange;      // submissions whose messages travel together
  bool exchange_is_open = false;                          // one more pass may join
};

}  // namespace

struct Training::State {
  explicit State(const TrainingJob& given)
      : job(given),
        layout(make_layout(job.plan, job.column_kinds)),
        store({&job.model, &job.plan, &job.workload, job.ranks_per_node},
              slices_of(job.model, job.plan, job.workload.sequence_length)),
        microbatches(job.workload.num_microbatches(job.plan)) {
    if (!job.device_of_rank.empty()) layout.device_of_rank = job.device_of_rank;
    if (job.speeds) set_paces(job.plan, *job.speeds, layout);
    for (const RankClass& rank_class : layout.classes) places.push_back(place_of(rank_class));
    if (!job.plan.microbatches.empty()) parts = parts_of_batch(job.plan.microbatches);
    add_turns();
    find_last_uses();
    total = std::int64_t{job.workload.num_steps()} * passes_of_step();
    end = total;
    // A rank must be issued as far ahead as the pipeline is deep, or the first one would wait for itself.
    window = 2 * store.placement().stages() + 3;
    if (store.placement().chunks() == 1) window = job.plan.pp + 3;
    if (job.workload.input_ahead > 0) window = 2 * window + 2 * job.workload.input_ahead;  // loads between
    needed_window = window;
    // Replicas without a pipeline meet at the end of the step: slow ones hold up no others before.
    const int ahead = 1024 / static_cast<int>(places.size());
    if (job.plan.pp == 1 && places.size() > 1) window = std::max(window, ahead);
  }

  ClassPlace place_of(const RankClass& rank_class) const {
    ClassPlace place;
    place.rank = rank_class.representative() / (layout.ranks / job.plan.pp);
    place.shard.tensor = rank_class.group(GroupRole::kTensor).my_index;
    place.shard.expert = rank_class.group(GroupRole::kExpert).my_index;
    place.shard.dense = rank_class.group(GroupRole::kDenseTensor).my_index;
    place.shard.expert_part = rank_class.group(GroupRole::kExpertTensor).my_index;
    place.shard.replica = rank_class.representative() / (job.plan.tp * job.plan.cp) % job.plan.dp;
    place.microbatches = microbatches;
    if (!job.plan.microbatches.empty()) place.microbatches = job.plan.microbatches[place.shard.replica];
    return place;
  }

  // Replicas that take unequal numbers of microbatches have passes of their own, issued at the pace at which
  // all come to their end together.
  void add_turns() {
    struct Turn {
      double progress;
      int microbatches;
      std::vector<int> ranks;
    };
    std::vector<Turn> turns;
    for (const ClassPlace& place : places) {
      if (passes_by_number.count(place.microbatches) > 0) continue;
      auto& passes = passes_by_number[place.microbatches];
      passes = pipeline_passes(pipeline_spec(job.plan, place.microbatches));
      if (job.workload.forward_only) passes = forward_passes(passes);
      const auto all = issue_turns(passes, store.placement());
      const int ahead = job.workload.input_ahead;
      for (int rank = 0; ahead > 0 && rank < job.plan.pp; ++rank)
        passes[rank] = with_loads(passes[rank], rank, store.placement(), ahead);
      for (std::size_t i = 0; i < all.size(); ++i)
        turns.push_back({(i + 1.0) / static_cast<double>(all.size()), place.microbatches, all[i]});
    }
    std::stable_sort(turns.begin(), turns.end(),
                     [](const Turn& a, const Turn& b) { return a.progress < b.progress; });
    for (const Turn& turn : turns) add_turn(turn.ranks, turn.microbatches);
  }

  const std::vector<Pass>& passes_of(const ClassPlace& place) const {
    return passes_by_number.at(place.microbatches)[place.rank];
  }

  // All classes of the ranks whose turn it is, in their order, each with its pass and the loads around it.
  void add_turn(const std::vector<int>& ranks, int number) {
    issued.resize(places.size(), 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const bool in_turn = places[i].microbatches == number;
      if (!in_turn || !std::binary_search(ranks.begin(), ranks.end(), places[i].rank)) continue;
      const std::vector<Pass>& passes = passes_of(places[i]);
      std::size_t& next = issued[i];
      const auto add_loads = [&] {
        for (; next < passes.size() && passes[next].kind == PassKind::kLoad; ++next)
          order.push_back(static_cast<int>(i));
      };
      add_loads();
      order.push_back(static_cast<int>(i)), ++next;
      add_loads();
    }
  }

  // forgotten[i]: microbatches that no submission of a step from number i on works on.
  void find_last_uses() {
    std::vector<std::size_t> last(microbatches, 0);
    std::vector<int> next(places.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Pass& pass = passes_of(places[order[i]])[next[order[i]]++];
      last[pass.part.microbatch] = i;
      if (pass.kind == PassKind::kPair) last[pass.backward.microbatch] = i;
    }
    forgotten.resize(order.size());
    for (int i = 0; i < microbatches; ++i) forgotten[last[i]].push_back(i);
  }

  FragmentPtr fragment_of(const ClassPlace& place, int step, const Pass& pass) {
    return store.get(place.rank, place.shard, step, pass);
  }

  // A forward pass waits for its load; a load for the forward pass that leaves its buffer.
  void wait_for_input(const Pass& pass, ClassPlace& place, Submission& submission) const {
    const int chunk = pass.part.chunk;
    std::deque<std::int32_t>& forwards = place.last_forwards[chunk];
    if (pass.kind == PassKind::kLoad) {
      place.loads[{chunk, pass.part.microbatch}] = submission.sequence;
      if (place.loaded[chunk]++ < job.workload.input_ahead) return;
      submission.after.push_back(forwards.front());
      forwards.pop_front();
      return;
    }
    const auto load = place.loads.find({chunk, pass.part.microbatch});
    if (!pass.runs_forward() || load == place.loads.end()) return;
    submission.after.push_back(load->second);
    place.loads.erase(load);
    forwards.push_back(submission.sequence);
  }

  // A pass waits for all messages of the exchange before its own. Interleaved, those of a forward pass travel
  // with those of the backward pass after it, as in Megatron-LM's schedule.
  void wait_for_messages(const Pass& pass, ClassPlace& place, Submission& submission) const {
    const bool joins = place.exchange_is_open && pass.kind == PassKind::kBackward;
    if (!joins) place.last_exchange = std::exchange(place.exchange, {});
    place.exchange.push_back(submission.sequence);
    place.exchange_is_open =
        job.plan.schedule == PipelineKind::kInterleaved && pass.kind == PassKind::kForward;
    submission.after.insert(submission.after.end(), place.last_exchange.begin(), place.last_exchange.end());
  }

  int step_at(std::int64_t position) const {
    return job.workload.first_step + static_cast<int>(position / passes_of_step());
  }
  std::int64_t passes_of_step() const { return static_cast<std::int64_t>(order.size()); }  // of all classes
  int num_classes() const { return static_cast<int>(places.size()); }

  TrainingJob job;
  Layout layout;
  FragmentStore store;
  int microbatches = 0;
  std::map<int, std::vector<std::vector<Pass>>> passes_by_number;  // of microbatches: of one step, by rank
  std::vector<std::vector<std::int32_t>> parts;                    // of the batch, by replica; none: in turn
  std::vector<ClassPlace> places;                                  // by class
  std::vector<std::size_t> issued;                                 // by class: passes that have their turn
  std::vector<int> order;                                          // classes of the submissions of one step
  std::vector<std::vector<int>> forgotten;                         // by submission of a step
  int window = 0, needed_window = 0;  // submissions of a class on their way; fewer would wait for themselves
  std::int64_t total = 0;
  std::int64_t end = 0;   // the submission to stop before, for now
  std::int64_t next = 0;  // submission
  Recorder* recorder = nullptr;
  std::vector<std::vector<Bytes>> memory_after_pass;  // by class, when recorded
  std::optional<MemoryReport> memory;                 // of classes alone, once asked for
};

Training::Training(const TrainingJob& job) : state_(std::make_unique<State>(job)) {}
Training::~Training() = default;

const Layout& Training::layout() const {
  return state_->layout;
}
bool Training::done() const {
  return state_->next >= state_->end;
}
double Training::progress() const {
  return static_cast<double>(state_->next) / static_cast<double>(state_->total);
}

std::optional<Submission> Training::next(Time) {
  State& s = *state_;
  if (done()) return std::nullopt;
  const std::int64_t of_step = s.next % s.passes_of_step();
  const int rank_class = s.order[of_step];
  ClassPlace& place = s.places[rank_class];
  if (place.outstanding == s.window) return std::nullopt;
  const std::vector<Pass>& passes = s.passes_of(place);
  const Pass& pass = passes[place.next_pass];
  const bool loads = pass.kind == PassKind::kLoad;
  const bool first = !loads && !place.begun;
  place.begun = pass.kind != PassKind::kOptimizer && (place.begun || !loads);
  place.next_pass = (place.next_pass + 1) % static_cast<int>(passes.size());
  const int step = s.step_at(s.next);
  Submission submission{.fragment = s.fragment_of(place, step, pass),
                        .sequence = static_cast<std::int32_t>(s.next),
                        .rank_class = rank_class,
                        .step = step,
                        .microbatch = pass.part.microbatch,
                        .after = {}};
  if (pass.kind == PassKind::kPair) submission.second_microbatch = pass.backward.microbatch;
  // Replicas meet in the optimizer, however many microbatches each of them took.
  if (pass.kind == PassKind::kOptimizer) submission.microbatch = s.microbatches - 1;
  if (!s.parts.empty()) submission.batch_part = s.parts[place.shard.replica][pass.part.microbatch];
  // Lanes keep the order within a step. The optimizer needs the gradients that still travel when passes have
  // computed, the next step the weights that come back.
  if (pass.last) place.reductions.push_back({submission.sequence, submission.fragment});
  if (pass.kind == PassKind::kOptimizer)
    wait_for_gradients(s.job.plan, std::exchange(place.reductions, {}),
                       {place.last_sequence, place.last_fragment}, submission);
  if (first && place.last_sequence >= 0) submission.after = {place.last_sequence};
  // What the forward pass copies to the host has arrived when the reverse pass loads it.
  if (s.job.plan.offload.activations) {
    if (pass.runs_forward())
      place.forward_of[{pass.part.chunk, pass.part.microbatch}] = {submission.sequence, submission.fragment};
    const PassPart& reverse = pass.backward_part();
    const auto before = place.forward_of.find({reverse.chunk, reverse.microbatch});
    const bool reads = pass.runs_backward() || pass.kind == PassKind::kBackwardWeight;
    if (reads && before != place.forward_of.end()) wait_for_host_copies(before->second, submission);
  }
  // Passes end with all that they leave, as those of PyTorch's FSDP and DeepSpeed do: none of it stands
  // beside the next one.
  if (!loads && submission.after.empty()) wait_for_ops(place.last_sequence, place.leaving, submission);
  if (!loads) place.leaving = leaving_ops(s.job.plan, *submission.fragment);
  if (s.job.workload.input_ahead > 0) s.wait_for_input(pass, place, submission);
  if (s.job.plan.blocking_messages && !loads) s.wait_for_messages(pass, place, submission);
  if (!loads) place.last_sequence = submission.sequence, place.last_fragment = submission.fragment;
  ++place.outstanding;
  for (const int microbatch : s.forgotten[of_step]) s.store.forget(step, microbatch);
  ++s.next;
  return submission;
}

int Training::steps_begun() const {
  const State& s = *state_;
  return s.step_at(s.next + s.passes_of_step() - 1);
}

void Training::stay_within(int steps) {
  State& s = *state_;
  std::size_t passes = 0;
  for (const ClassPlace& place : s.places) passes = std::max(passes, s.passes_of(place).size());
  s.window = std::max(s.needed_window, std::min(s.window, steps * static_cast<int>(passes)));
}

void Training::stop_before(int step) {
  State& s = *state_;
  const std::int64_t steps = std::max(step, steps_begun()) - s.job.workload.first_step;
  s.end = std::min(s.total, steps * s.passes_of_step());
}

void Training::go_on() {
  state_->end = state_->total;
}

void Training::begin_again() {
  State& s = *state_;
  s.places.clear();
  for (const RankClass& rank_class : s.layout.classes) s.places.push_back(s.place_of(rank_class));
  s.next = 0;
  s.end = s.total;
}

void Training::completed(const Completion& completion) {
  State& s = *state_;
  const int rank_class = s.order[completion.sequence % s.passes_of_step()];
  ClassPlace& place = s.places[rank_class];
  --place.outstanding;
  if (s.recorder != nullptr) {
    const auto& after = s.memory_after_pass[rank_class];
    s.recorder->counter(rank_class, "memory", completion.time,
                        after[place.completed_passes % after.size()].value);
  }
  ++place.completed_passes;
}

MemoryReport Training::memory(Bytes capacity) {
  if (!state_->memory) state_->memory = memory_of_classes();
  MemoryReport report = *state_->memory;
  report.capacity = capacity;
  report.reserve = state_->job.plan.memory_reserve;
  return report;
}

MemoryReport Training::memory_of_classes() {
  State& s = *state_;
  MemoryReport report;
  for (const ClassPlace& place : s.places) {
    const auto rank_class = static_cast<std::int32_t>(report.classes.size());
    const bool drawn = s.job.workload.popularity.kind != PopularityKind::kBalanced;
    const std::vector<int> members =
        drawn && s.job.plan.ep > 1 ? members_of_class(s.layout, rank_class) : std::vector<int>();
    report.classes.push_back(
        memory_of_run(s.store, s.job.workload, {place.rank, place.shard, &s.passes_of(place), members}));
    const auto last = static_cast<int>(report.classes.size()) - 1;
    if (report.classes[last].peak > report.peak()) report.worst_class = last;
  }
  return report;
}

void Training::record_memory(Recorder& recorder) {
  state_->recorder = &recorder;
  state_->memory_after_pass.clear();
  const MemoryReport report = memory({});
  for (const ClassMemory& memory : report.classes) {
    // What stays for the whole run is there before the first pass.
    const auto rank_class = static_cast<std::int32_t>(state_->memory_after_pass.size());
    recorder.counter(rank_class, "memory", {}, total(memory.resident).value);
    state_->memory_after_pass.push_back(memory.after_pass);
  }
}

const ExpertLoads& Training::expert_loads() const {
  return state_->store.loads();
}

std::string Training::describe() const {
  const State& s = *state_;
  const TrainingPlan& plan = s.job.plan;
  std::string text = fmt::format("ranks          {} = tp {} x cp {} x dp {} x pp {}; ep {}\n", plan.ranks(),
                                 plan.tp, plan.cp, plan.dp, plan.pp, plan.ep);
  if (plan.mixed_tp()) text += fmt::format("dense MLPs     over {} ranks\n", plan.dense_degree());
  if (plan.expert_tp > 1) text += fmt::format("experts        each over {} ranks\n", plan.expert_tp);
  if (plan.tp_chunks > 0)
    text +=
        fmt::format("tp overlap     gathers and sums in {} pieces beside their products\n", plan.tp_chunks);
  const std::string number = plan.microbatches.empty()
                                 ? fmt::format("{} a step and data-parallel rank", s.microbatches)
                                 : microbatches_text(plan.microbatches) + " data-parallel ranks";
  text += fmt::format("microbatches   {}, {} tokens each\n", number,
                      s.job.workload.micro_batch * s.job.workload.sequence_length);
  text += fmt::format("rank classes   {}\n", s.num_classes());
  if (const std::string separate = kernels_apart(plan); !separate.empty())
    text += fmt::format("kernel by kernel {}\n", separate);
  if (plan.clip > 0) text += fmt::format("gradients      of all ranks kept to a norm of {}\n", plan.clip);
  if (plan.tensor_sms > 0) text += fmt::format("tensor sums    hold {} cores each\n", plan.tensor_sms);
  text += describe_adapters(s.job.model, s.job.workload.adapters);
  text += describe_state(plan);
  const char* last = s.job.model.mtp_layers > 0 ? ", head, MTP modules and loss" : ", head and loss";
  for (std::size_t i = 0; i < s.store.slices().size(); ++i) {
    const StageSlice& slice = s.store.slices()[i];
    text += fmt::format("stage {:<8} {}{}{}\n", i, layers_text(slice),
                        slice.has_embedding ? ", embedding" : "", slice.has_head ? last : "");
  }
  const StagePlacement& placement = s.store.placement();
  for (int rank = 0; placement.chunks() > 1 && rank < placement.ranks(); ++rank) {
    text += fmt::format("rank {:<9} stages", rank);
    for (int chunk = 0; chunk < placement.chunks(); ++chunk)
      text += fmt::format("{} {}", chunk == 0 ? "" : ",", placement.stage_of(rank, chunk));
    text += "\n";
  }
  return text;
}

}  // namespace moebius
