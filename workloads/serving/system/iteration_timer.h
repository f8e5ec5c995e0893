// Carries out iterations one by one on an executor, to learn what they take. Where layers repeat, two short
// stacks stand for all: what the longer one takes more is what further repetitions take. That holds for
// layers whose loads of experts are equal or drawn in one way, not for recorded ones. Where weights move
// beside an iteration, or loads differ from layer to layer, all layers are carried out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/schedule/recorder.h"
#include "workloads/schedule/steady_timer.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/separation/separated_iteration.h"
#include "workloads/serving/separation/side_times.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// Layers from `from` on come in repetitions of `period`.
struct Repetition {
  int from = 0, period = 1;
};
Repetition repetition_of(const Model& model);

class IterationTimer {
 public:
  // All outlive the timer. Its executor has the layout of the job's plan and has been given nothing.
  // `from_hidden`: of a module that guesses, see Iteration. `balanced`: see IterationRoutes.
  IterationTimer(const ServingJob& job, const Layout& layout, SteadyTimer timer, Recorder& recorder,
                 bool from_hidden = false, std::shared_ptr<RouteCache> balanced = nullptr);

  // What an iteration has beside its batches.
  struct Extras {
    const SlotDraw* loads = nullptr;  // of experts' slots; null: as the popularity says
    PairBytesPtr moves = {};          // weights of experts that travel meanwhile
    bool all_layers = false;          // none stands for others
    int drafts = -1;  // rows of guesses that decoding sequences have, no more than the plan's; -1: as many
    std::optional<LaunchMode> launch = {};  // see Iteration; of a point, it says itself
    std::optional<bool> absorbed = {};      // likewise; where experts stand together, alone: of the first
    bool absorbed_alone = false;            // replica, as the others have other prompts
  };
  // Seconds from the first op of the iteration to the end of the last, as one of many such. Decoding whose
  // point is not eager is replayed where the plan has graphs, however many sequences it has: whoever asks
  // knows which there are.
  double seconds(const StepPoint& point) { return seconds(point, {}); }
  double seconds(const StepPoint& point, const Extras& extras);
  // The same of given batches, one a replica.
  double seconds(const std::vector<BatchPtr>& batches) { return seconds(batches, {}); }
  double seconds(const std::vector<BatchPtr>& batches, const Extras& extras);
  // What the ranks did in the iteration that was asked for last, where the costs of it come from.
  const BusySources& busy() const { return busy_; }
  // Where experts stand apart and the recorder keeps ops: the mean over the iterations, with prompts or
  // without, since the last call.
  SideTimes take_mean_sides(bool prompts);
  const std::shared_ptr<RouteCache>& balanced() const { return balanced_; }

 private:
  // So many layers of the model, as a job of its own.
  struct Stack {
    Stack(const ServingJob& whole, int layers, std::shared_ptr<RouteCache> balanced);
    ServingJob job;
    ServingShape shape;
    IterationRoutes routes;
    std::optional<SeparatedIteration> separated;  // where experts stand apart
  };
  double seconds(Stack& stack, const std::vector<BatchPtr>& batches, const Extras& extras);
  double all_layers(const std::vector<BatchPtr>& batches, const Extras& extras);
  double with_draws(const std::vector<BatchPtr>& batches, const Extras& extras, int draws);
  // By class of ranks.
  std::vector<FragmentPtr> iteration(Stack& stack, const std::vector<BatchPtr>& batches,
                                     const Extras& extras);
  std::vector<FragmentPtr> fragments(Stack& stack, const std::vector<BatchPtr>& batches,
                                     const Extras& extras);

  const Layout& layout_;
  SteadyTimer timer_;
  Recorder& recorder_;
  bool from_hidden_;
  std::shared_ptr<RouteCache> balanced_;  // of all stacks
  Repetition repetition_;
  static constexpr int kDrawnRepetitions = 4;
  int further_ = 1;                             // repetitions that the longer stack has more
  int all_layers_ = 0;                          // where short stacks stand for them
  std::vector<std::unique_ptr<Stack>> stacks_;  // one of all layers, or a short one and a longer one
  struct Sides {
    SideTimes sum;
    std::int64_t iterations = 0;
  };
  BusySources busy_;            // of the iteration carried out last
  SideTimes sides_;             // of the iteration carried out last
  std::array<Sides, 2> means_;  // without and with prompts
  // Made when asked for, where stacks_ are short: one with all layers, and those that are longer than the
  // short one by so many repetitions, whose loads are as many different draws.
  std::unique_ptr<Stack> whole_;
  std::map<int, Stack> drawn_;
  std::int32_t sequence_ = 0, step_ = 0;
};

// Equal sequences of so many tokens and keys. Prompts stand whole where each token has no more keys than that
// leaves, in one sequence behind others' tokens where it has more.
// Decoding sequences have the rows of their guesses, too. `chunk`: the model's attention_chunk; sequences
// longer than it then stand evenly in theirs.
Batch batch_of(const StepPoint& point, int drafts = 0, int chunk = 0);

}  // namespace moebius
