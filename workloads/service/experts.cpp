#include "workloads/service/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/job.h"
#include "workloads/routing/routing.h"
#include "workloads/service/rules.h"
#include "workloads/serving/lower.h"

namespace moebius {
namespace {

constexpr double kMostDraws =
    1 << 17;  // copies that are drawn for a layer of one timed iteration, or more layers share a draw
constexpr double kMostChecked = 1 << 26;  // copies that are drawn to see how far the surface is off

double copies_of(const StepPoint& point, const ServicePool& pool) {
  const double rows = static_cast<double>(point.prefill_tokens + point.decode_sequences);
  return rows * (1 + point.others * (pool.phase.plan.replicas() - 1)) *
         pool.job->scenario.model.experts.active;
}

int draws_of(const StepPoint& point, const ServicePool& pool) {
  return static_cast<int>(std::clamp(kMostDraws / std::max(1.0, copies_of(point, pool)), 1.0, 4.0));
}

// Copies on every rank are loaded alike: there is nothing to place.
int placed_always(const ServingPlan& plan, const Experts& experts) {
  return plan.shared_experts == SharedExperts::kRouted ? experts.always : 0;
}

// Of the layer that stands in the middle by imbalance, at the beginning.
std::vector<double> loads_of_middle_layer(const ExpertBalancer& balancer) {
  std::vector<int> order(balancer.imbalances().size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](int a, int b) {
    return std::pair(balancer.imbalances()[a], a) < std::pair(balancer.imbalances()[b], b);
  });
  return balancer.slot_loads(*middle);
}

// Of a token, on slots that are placed.
double placed_active(const ServicePool& pool) {
  const Experts& experts = pool.job->scenario.model.experts;
  return experts.active - experts.always + placed_always(pool.phase.plan, experts);
}

}  // namespace

BalancerShape balancer_shape(const ServicePool& pool) {
  const Scenario& scenario = pool.job->scenario;
  const ServingPlan& plan = pool.phase.plan;
  const Experts& experts = scenario.model.experts;
  // Ranks that have columns of one expert are neighbours.
  const int cut_over = plan.ranks_of_expert();
  const int of_node = plan.experts_apart()
                          ? plan.apart.ranks_per_node
                          : std::max(1, scenario.cluster->pools.front().node.accelerators / cut_over);
  return {.ranks = plan.ep,
          .ranks_per_node = std::min(plan.ep, of_node),
          .slots = plan.slots_of(experts) - plan.shared_copies,
          .groups = {experts.groups, experts.active_groups},
          .always = placed_always(plan, experts),
          .expert_bytes = expert_bytes(scenario.model, expert_format(plan).stored) / cut_over,
          .cut_over = cut_over,
          .seed = scenario.seed};
}

double expert_bytes(const Model& model, DType weights) {
  const double matrices = model.gated ? 3 : 2;
  return matrices * model.hidden * model.experts.width * element_bytes(weights);
}

bool shares_experts(const ServicePool& pool) {
  return pool.job->scenario.model.experts.routed > 0 && pool.phase.plan.ep > 1;
}

PoolExperts::PoolExperts(const ServicePool& pool, const Scenario& scenario, ExpertCourse& course,
                         const Timed& timed)
    : pool_(pool),
      course_(course),
      timed_(timed),
      shape_(balancer_shape(pool)),
      even_(even_draw(pool, scenario.service.experts, course)) {
  const double active = placed_active(pool);
  const double most = 0.98 * std::min<double>(shape_.slots / active, shape_.ranks);
  LoadSurfaces::Measures measures;
  measures.even = [this](const StepPoint& point) { return timed_.even.time_at(point); };
  measures.loaded = [this](const StepPoint& point, double imbalance) {
    SlotDraw& draw = draw_with(imbalance);
    draw.draws = draws_of(point, pool_);
    return time(point, draw);
  };
  measures.moving = [this](const StepPoint& point, const PairBytesPtr& bytes) {
    return timed_.timer.seconds(point, {&even_, bytes, true});
  };
  loads_ = std::make_unique<LoadSurfaces>(std::move(measures), most);
  const ByteRate rate = send_rate(*pool.job->scenario.cluster, 1);
  const ExpertSteps::Links links{&timed_.even, loads_.get(), &course, Bytes{shape_.expert_bytes} / rate};
  for (int i = 0; i < pool.phase.instances; ++i) {
    BalancerShape shape = shape_;
    shape.seed = random_bits(shape.seed, 0x696e7374, static_cast<std::uint64_t>(pool.phase.role), i);
    steps_.push_back(std::make_unique<ExpertSteps>(links, scenario.service.experts, shape));
  }
  typical_loads_ = loads_of_middle_layer(steps_.front()->balancer());
}

// Making guesses takes as long however the experts of the model are loaded.
StepTime PoolExperts::time(const StepPoint& point, const SlotDraw& draw) {
  const double seconds = timed_.timer.seconds(point, {&draw, {}, false});
  StepTime time(seconds, timed_.timer.busy());
  if (timed_.drafter != nullptr) time.add(timed_.drafter->time(point), 1);
  return time;
}

// Made once an imbalance.
SlotDraw& PoolExperts::draw_with(double imbalance) {
  const auto [known, fresh] = drawn_.try_emplace(imbalance, even_);
  SlotDraw& draw = known->second;
  if (!fresh) return draw;
  const double active = placed_active(pool_);
  draw.weights = {
      ExpertWeights(draw_weights(loads_with_imbalance(imbalance, shape_.ranks, active, typical_loads_)))};
  draw.known = std::make_shared<DrawnRoutes>();
  return draw;
}

std::vector<StepCost*> PoolExperts::costs() {
  std::vector<StepCost*> costs;
  for (const auto& steps : steps_) costs.push_back(steps.get());
  return costs;
}

// Uneven loads speak of every slot that is placed, even ones of those that tokens choose.
SlotDraw even_draw(const ServicePool& pool, const ExpertBalancePlan& plan, const ExpertCourse& course) {
  const BalancerShape shape = balancer_shape(pool);
  const GroupedChoice choice = choice_of(plan, shape, course.experts());
  SlotDraw draw;
  draw.draws_always = shape.always > 0 && !course.even();
  draw.groups = choice.groups;
  draw.active_groups = choice.active;
  return draw;
}

// As many of the drawn iterations as their tokens allow, each with the loads that its layers had.
SurfaceError PoolExperts::error() {
  std::vector<double> errors;
  double copies = 0;
  for (const auto& steps : steps_) {
    for (const ExpertSteps::Sample& sample : steps->samples()) {
      SlotDraw draw = even_;
      draw.weights = *sample.weights;
      draw.draws = static_cast<int>(draw.weights.size());
      draw.known = std::make_shared<DrawnRoutes>();
      copies += copies_of(sample.point, pool_) * draw.draws;
      if (copies > kMostChecked && errors.size() >= 4) break;
      errors.push_back(std::abs(sample.seconds / time(sample.point, draw).seconds - 1));
    }
  }
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const auto place = [&](double share) {
    return errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))];
  };
  return {static_cast<std::int64_t>(errors.size()), place(0.5), place(0.9), errors.back()};
}

ExpertFigures PoolExperts::figures() {
  std::vector<ExpertBalancer*> balancers;
  for (const auto& steps : steps_) balancers.push_back(&steps->balancer());
  ExpertFigures figures = figures_of(course_, shape_, balancers);
  if (!figures.even) figures.error = error();
  figures.timed_iterations = loads_->measured();
  return figures;
}

}  // namespace moebius
