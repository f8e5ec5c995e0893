#include "workloads/service/pipeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "workloads/collective.h"
#include "workloads/service/rules.h"
#include "workloads/serving/token_ends.h"

namespace moebius {
namespace {

// Stages whose layers are of the same kinds in the same order, with the same ends, take as long.
std::string kind_of(const Job& job) {
  const Model& model = job.scenario.model;
  std::string kind = job.scenario.serving.exits() ? "last:" : "middle:";
  for (int layer = 0; layer < model.layers; ++layer)
    kind += fmt::format("{}{}{},{},{};", model.is_moe_layer(layer) ? 'e' : 'd',
                        model.is_delta_layer(layer) ? "n" : "", model.rotates(layer) ? "" : "p",
                        model.window(layer), model.chunk(layer));
  return kind;
}

Layout link_layout(int ranks, std::int32_t from, std::int32_t to) {
  Layout layout;
  layout.ranks = 2 * ranks;
  layout.classes.resize(2);
  for (int side = 0; side < 2; ++side) {
    RankClass& of = layout.classes[side];
    for (int r = 0; r < ranks; ++r) {
      of.ranks.push_back(side * ranks + r);
      layout.class_of_rank.push_back(side);
      layout.device_of_rank.push_back((side == 0 ? from : to) + r);
    }
    of.groups[static_cast<int>(side == 0 ? GroupRole::kNext : GroupRole::kPrevious)] = {
        .ranks = {0, ranks}, .my_index = side, .num_classes = 2};
  }
  return layout;
}

}  // namespace

StepSurface::KeyStep key_step(const ServingPlan& plan) {
  const bool halves = plan.prefill_overlap.two_batch || plan.decode_overlap.two_batch;
  return halves ? StepSurface::KeyStep::kFine : StepSurface::KeyStep::kCoarse;
}

TimedStage::TimedStage(const Job& job, const ServingWorkload& work, const StartExecutor& start,
                       const std::shared_ptr<RouteCache>& balanced, StepSurface::Known* known)
    : recorder_(job.layout(), {.detail = Detail::kNone}),
      engine_(start(job, job.layout(), recorder_)),
      served_{.model = job.scenario.model,
              .plan = job.scenario.serving,
              .workload = work,
              .ranks_per_node = job.scenario.cluster->pools.front().node.accelerators},
      timer_(served_, job.layout(), {*engine_.executor, engine_.clocks}, recorder_, false, balanced),
      surface_(
          [this](const StepPoint& point) {
            const double seconds = timer_.seconds(point);
            return StepTime(seconds, timer_.busy());
          },
          known, key_step(served_.plan)) {}

StageLink::StageLink(const Job& job, int ranks, std::int32_t from, std::int32_t to,
                     const StartExecutor& start)
    : layout_(link_layout(ranks, from, to)),
      recorder_(layout_, {.detail = Detail::kNone}),
      engine_(start(job, layout_, recorder_)),
      timer_(*engine_.executor, engine_.clocks) {}

double StageLink::timed(double bytes) {
  const auto [known, fresh] = known_.try_emplace(bytes, 0);
  if (!fresh) return known->second;
  CollectiveWorkload work;
  work.operation = OpKind::kSend;
  work.bytes = Bytes{bytes};
  work.ranks = 2;
  work.dtype = DType::kBf16;
  const auto [send, receive] = message_fragments(work);
  const std::vector<FragmentPtr> sides{send, receive};
  known->second = timer_.seconds([&](Executor& executor) {
    for (std::int32_t side = 0; side < 2; ++side) {
      const Submission submission{
          .fragment = sides[side], .sequence = sequence_++, .rank_class = side, .after = {}};
      recorder_.submitted(submission);
      executor.submit(submission);
    }
  });
  return known->second;
}

double StageLink::seconds(double bytes) {
  const double low = std::exp2(std::floor(std::log2(std::max(bytes, 256.0))));
  if (bytes <= low) return timed(low);
  return timed(low) + (timed(2 * low) - timed(low)) * (bytes - low) / low;
}

ServedPipeline::ServedPipeline(const ServicePool& pool, const ServingWorkload& work,
                               const StartExecutor& start, StepSurface& first,
                               const std::shared_ptr<RouteCache>& balanced, StepTimings* timings)
    : pool_(pool), start_(start), first_(first) {
  const std::string& name = pool.job->scenario.cluster->pools.front().name;
  for (const auto& job : pool.further) {
    const std::string kind = kind_of(*job);
    std::unique_ptr<TimedStage>& stage = timed_[kind];
    if (!stage)
      stage = std::make_unique<TimedStage>(
          *job, work, start, balanced,
          timings == nullptr ? nullptr : &timings->of_pool[fmt::format("{} {}", name, kind)]);
    further_.push_back(stage.get());
  }
  const int pp = pool.phase.plan.pp;
  for (int i = 0; i < pool.phase.instances; ++i) {
    std::vector<PipelineCost::Stage> stages;
    for (int s = 0; s < pp; ++s) stages.push_back(this->stage(s));
    costs_.push_back(std::make_unique<PipelineCost>(std::move(stages)));
  }
}

// Those of the first instance stand for all.
StageLink& ServedPipeline::link(int from, int to) {
  const int ranks = pool_.phase.plan.ranks();
  const int per_node = pool_.job->scenario.cluster->pools.front().node.accelerators;
  const bool near = from * ranks / per_node == to * ranks / per_node;
  std::unique_ptr<StageLink>& link = links_[near];
  if (!link) link = std::make_unique<StageLink>(*pool_.job, ranks, from * ranks, to * ranks, start_);
  return *link;
}

// Behind the last stage a number for each row goes back, and is on its way as long as a short message.
PipelineCost::Stage ServedPipeline::stage(int number) {
  const ServingPlan& plan = pool_.phase.plan;
  const bool last = number + 1 == plan.pp;
  StageLink& to = link(number, last ? 0 : number + 1);
  const double bytes_per_row = last ? element_bytes(DType::kInt32)
                                    : static_cast<double>(pool_.model.hidden) * rows_handed_on(plan) *
                                          element_bytes(DType::kBf16) / plan.tp;
  StepCost* cost = number == 0 ? static_cast<StepCost*>(&first_) : &further_[number - 1]->surface();
  return {cost, [&to, bytes_per_row](std::int64_t rows) {
            return to.seconds(static_cast<double>(rows) * bytes_per_row);
          }};
}

std::vector<StepCost*> ServedPipeline::costs() {
  std::vector<StepCost*> costs;
  for (const auto& cost : costs_) costs.insert(costs.end(), lanes_of(pool_), cost.get());
  return costs;
}

PipelineCost::Totals ServedPipeline::totals() const {
  PipelineCost::Totals sum;
  for (const auto& cost : costs_) sum.add(cost->totals());
  return sum;
}

BusySources ServedPipeline::busy() const {
  BusySources sum;
  for (const auto& [kind, stage] : timed_) sum.add(stage->surface().busy(), 1);
  return sum;
}

std::int64_t ServedPipeline::measured() const {
  std::int64_t count = 0;
  for (const auto& [kind, stage] : timed_) count += stage->surface().measured();
  return count;
}

SurfaceError ServedPipeline::error() {
  SurfaceError worst;
  for (const auto& [kind, stage] : timed_) {
    const SurfaceError of = stage->surface().error();
    if (of.p90 > worst.p90) worst = of;
  }
  return worst;
}

}  // namespace moebius
