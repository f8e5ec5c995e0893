#include "workloads/training/training.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/recorder.h"
#include "workloads/training/columns.h"
#include "workloads/training/pipeline.h"
#include "workloads/training/stage_fragments.h"

namespace moebius {
namespace {

// What one class runs.
struct ClassPlace {
  int stage = 0;
  ShardPosition shard;
  std::int32_t last_sequence = -1;  // of its last submission
  int outstanding = 0;              // submissions issued and not completed
  int completed_passes = 0;
};

}  // namespace

struct Training::State {
  explicit State(const TrainingJob& given)
      : job(given),
        layout(make_layout(job.plan, job.column_kinds)),
        store({&job.model, &job.plan, &job.workload, job.ranks_per_node},
              slice_balanced(job.model, job.workload.sequence_length, job.plan.pp, job.plan.stage_speeds)),
        microbatches(job.workload.num_microbatches(job.plan)) {
    for (int stage = 0; stage < job.plan.pp; ++stage) {
      passes.push_back(job.workload.forward_only
                           ? forward_passes(microbatches)
                           : pipeline_passes(job.plan.schedule, stage, job.plan.pp, microbatches));
    }
    if (job.speeds) set_paces(job.plan, *job.speeds, layout);
    for (const RankClass& rank_class : layout.classes) places.push_back(place_of(rank_class));
    rows = (job.workload.steps - job.workload.first_step) * passes_of_step();
    end = rows;
    // A stage must be issued as far ahead as the pipeline is deep, or the first stage would wait for itself.
    window = job.plan.pp + 3;
  }

  ClassPlace place_of(const RankClass& rank_class) const {
    ClassPlace place;
    place.stage = rank_class.representative() / (layout.ranks / job.plan.pp);
    place.shard.tensor = rank_class.group(GroupRole::kTensor).my_index;
    place.shard.expert = rank_class.group(GroupRole::kExpert).my_index;
    place.shard.replica = rank_class.representative() / (job.plan.tp * job.plan.cp) % job.plan.dp;
    return place;
  }

  Pass pass_at(const ClassPlace& place, int at_row) const {
    const std::vector<Pass>& all = passes[place.stage];
    return all[at_row % all.size()];
  }

  FragmentPtr fragment_of(const ClassPlace& place, int step, const Pass& pass) {
    const StageFragments& fragments = store.get(place.stage, place.shard, step, pass.microbatch);
    switch (pass.kind) {
      case PassKind::kForward:
        return fragments.forward;
      case PassKind::kBackward:
        return fragments.backward;
      case PassKind::kLastBackward:
        return fragments.last_backward;
      case PassKind::kOptimizer:
        return fragments.optimizer;
    }
    CHECK(false, std::string("unknown pass"));
    return nullptr;
  }

  int passes_of_step() const { return static_cast<int>(passes[0].size()); }
  int num_classes() const { return static_cast<int>(places.size()); }

  TrainingJob job;
  Layout layout;
  FragmentStore store;
  int microbatches = 0;
  std::vector<std::vector<Pass>> passes;  // of one step, by stage
  std::vector<ClassPlace> places;         // by class
  int rows = 0, window = 0;
  int end = 0;              // the row to stop before, for now
  int row = 0, column = 0;  // the next submission: pass `row` of class `column`
  std::int32_t sequence = 0;
  Recorder* recorder = nullptr;
  std::vector<std::vector<Bytes>> memory_after_pass;  // by class, when recorded
};

Training::Training(const TrainingJob& job) : state_(std::make_unique<State>(job)) {}
Training::~Training() = default;

const Layout& Training::layout() const {
  return state_->layout;
}
bool Training::done() const {
  return state_->row >= state_->end;
}
double Training::progress() const {
  return static_cast<double>(state_->sequence) / (static_cast<double>(state_->rows) * state_->num_classes());
}

std::optional<Submission> Training::next(Time) {
  State& s = *state_;
  if (done()) return std::nullopt;
  ClassPlace& place = s.places[s.column];
  if (place.outstanding == s.window) return std::nullopt;
  const Pass pass = s.pass_at(place, s.row);
  const int step = s.job.workload.first_step + s.row / s.passes_of_step();
  Submission submission{.fragment = s.fragment_of(place, step, pass),
                        .sequence = s.sequence++,
                        .rank_class = s.column,
                        .step = step,
                        .microbatch = pass.microbatch,
                        .after = {}};
  // Lanes keep the order within a step. The optimizer needs the gradients that still travel when the last
  // reverse pass has computed, and the next step the weights that come back.
  const bool first = s.row % s.passes_of_step() == 0;
  if (place.last_sequence >= 0 && (first || pass.kind == PassKind::kOptimizer))
    submission.after = {place.last_sequence};
  place.last_sequence = submission.sequence;
  ++place.outstanding;
  if (++s.column == s.num_classes()) {
    s.column = 0;
    ++s.row;
    // The first stage is the last to run the reverse pass of a microbatch.
    const bool last_use = s.job.workload.forward_only || pass.kind != PassKind::kForward;
    if (last_use && place.stage == s.job.plan.pp - 1) {
      s.store.forget_before(step, pass.microbatch - s.job.plan.pp - 1);
    }
  }
  return submission;
}

int Training::steps_begun() const {
  const State& s = *state_;
  const int rows = s.row + (s.column > 0 ? 1 : 0);
  return s.job.workload.first_step + (rows + s.passes_of_step() - 1) / s.passes_of_step();
}

void Training::stop_before(int step) {
  State& s = *state_;
  const int steps = std::max(step, steps_begun()) - s.job.workload.first_step;
  s.end = std::min(s.rows, steps * s.passes_of_step());
}

void Training::go_on() {
  for (ClassPlace& place : state_->places) {
    place.completed_passes += place.outstanding;
    place.outstanding = 0;
  }
  state_->end = state_->rows;
}

void Training::completed(const Completion& completion) {
  State& s = *state_;
  const int rank_class = completion.sequence % s.num_classes();
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
  State& s = *state_;
  MemoryReport report;
  report.capacity = capacity;
  for (const ClassPlace& place : s.places) {
    std::vector<MemoryPass> passes;
    for (const Pass& pass : s.passes[place.stage]) {
      const int change = s.job.workload.forward_only         ? 0
                         : pass.kind == PassKind::kForward   ? 1
                         : pass.kind == PassKind::kOptimizer ? 0
                                                             : -1;
      passes.push_back({s.fragment_of(place, 0, {pass.kind, 0}).get(), change});
    }
    report.classes.push_back(memory_of_passes(passes));
    const auto last = static_cast<int>(report.classes.size()) - 1;
    if (report.classes[last].peak > report.peak()) report.worst_class = last;
  }
  return report;
}

void Training::record_memory(Recorder& recorder) {
  state_->recorder = &recorder;
  state_->memory_after_pass.clear();
  for (const ClassMemory& memory : this->memory({}).classes)
    state_->memory_after_pass.push_back(memory.after_pass);
}

const ExpertLoads& Training::expert_loads() const {
  return state_->store.loads();
}

std::string Training::describe() const {
  const State& s = *state_;
  const TrainingPlan& plan = s.job.plan;
  std::string text = fmt::format("ranks          {} = tp {} x cp {} x dp {} x pp {}; ep {}\n", plan.ranks(),
                                 plan.tp, plan.cp, plan.dp, plan.pp, plan.ep);
  text += fmt::format("microbatches   {} a step and data-parallel rank, {} tokens each\n", s.microbatches,
                      s.job.workload.micro_batch * s.job.workload.sequence_length);
  text += fmt::format("rank classes   {}\n", s.num_classes());
  for (std::size_t i = 0; i < s.store.slices().size(); ++i) {
    const StageSlice& slice = s.store.slices()[i];
    text += fmt::format("stage {:<8} layers {}..{}{}{}\n", i, slice.first_layer,
                        slice.first_layer + slice.num_layers - 1, slice.has_embedding ? ", embedding" : "",
                        slice.has_head ? ", head, MTP modules and loss" : "");
  }
  return text;
}

}  // namespace moebius
