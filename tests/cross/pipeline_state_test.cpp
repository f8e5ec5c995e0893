// Where state stands and what is computed again changes no loss, whatever the pipeline's schedule.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
namespace {

struct Order {
  PipelineKind kind;
  bool pairs = false;  // with two batches side by side
};

const std::vector<Order> kOrders{
    {PipelineKind::kInterleaved},      {PipelineKind::kZbH1},      {PipelineKind::kZbV},
    {PipelineKind::kDualPipe},         {PipelineKind::kDualPipeV}, {PipelineKind::k1F1B, true},
    {PipelineKind::kInterleaved, true}};

// On two pipeline ranks of two replicas each.
TrainingJob spread(const Order& order) {
  TrainingJob job = deep_job();
  job.plan.pp = job.plan.dp = job.plan.ep = 2;
  job.plan.schedule = order.kind;
  job.plan.chunks = order.kind == PipelineKind::kInterleaved ? 2 : 1;
  job.plan.overlap_two_batch = order.pairs;
  return job;
}

template <class Change>
void require_same_under(const std::vector<Order>& orders, const Change& change) {
  const std::vector<double> expected = exact_losses(deep_job());
  for (const Order& order : orders) {
    TrainingJob job = spread(order);
    change(job);
    CAPTURE(static_cast<int>(order.kind), order.pairs);
    const std::vector<double> found = exact_losses(job);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
  }
}

// The ranks that hold a stage of DualPipe run different microbatches and share no sum of one.
std::vector<Order> without_dualpipe() {
  std::vector<Order> orders;
  for (const Order& order : kOrders)
    if (order.kind != PipelineKind::kDualPipe) orders.push_back(order);
  return orders;
}

}  // namespace

TEST_CASE("sharded gradients train alike under every schedule") {
  require_same_under(without_dualpipe(), [](TrainingJob& job) { job.plan.zero = 2; });
}

TEST_CASE("gradients that gather whole train alike under every schedule") {
  require_same_under(without_dualpipe(), [](TrainingJob& job) {
    job.plan.zero = 2;
    job.plan.accumulation = Accumulation::kWhole;
  });
}

TEST_CASE("weights that are gathered once a step train alike under every schedule") {
  require_same_under(without_dualpipe(), [](TrainingJob& job) {
    job.plan.zero = 3;
    job.plan.regather = 1;
    job.plan.free_after_backward = false;
    job.plan.accumulation = Accumulation::kWhole;
  });
}

// Of passes side by side one would free what the other uses.
TEST_CASE("weights that stay until the backward pass train alike under schedules without pairs") {
  std::vector<Order> orders;
  for (const Order& order : without_dualpipe())
    if (!order.pairs && order.kind != PipelineKind::kDualPipeV) orders.push_back(order);
  orders.push_back({PipelineKind::kGpipe});
  orders.push_back({PipelineKind::k1F1B});
  require_same_under(orders, [](TrainingJob& job) {
    job.plan.zero = 3;
    job.plan.regather = 1;
  });
}

TEST_CASE("sharded parameters train alike under every schedule") {
  require_same_under(without_dualpipe(), [](TrainingJob& job) { job.plan.zero = 3; });
}

TEST_CASE("optimizer states and parameters in host memory train alike under every schedule") {
  require_same_under(kOrders, [](TrainingJob& job) {
    job.plan.zero = 1;
    job.plan.offload.optimizer = job.plan.offload.parameters = true;
  });
}

TEST_CASE("activations in host memory train alike under every schedule") {
  require_same_under(kOrders, [](TrainingJob& job) { job.plan.offload.activations = true; });
}

TEST_CASE("everything in host memory trains alike under every schedule that shards it") {
  require_same_under(without_dualpipe(), [](TrainingJob& job) {
    job.plan.zero = 3;
    job.plan.offload = {true, true, true, true};
  });
}

// A budget between what full recomputation and none fill: some op groups are kept, some computed again. Two
// stages of a rank are judged apart, each by the most that it fills, and so fill more than both together.
TEST_CASE("hybrid recomputation trains alike and stays within its budget under every schedule") {
  for (const Order& order : kOrders) {
    TrainingJob kept = spread(order), full = spread(order);
    full.plan.recompute = RecomputePolicy::kFull;
    const auto peak = [](const TrainingJob& job) { return Training(job).memory({}).peak(); };
    TrainingJob hybrid = spread(order);
    hybrid.plan.recompute = RecomputePolicy::kHybrid;
    hybrid.plan.recompute_flops = {1e12}, hybrid.plan.recompute_memory = {1e12};
    const bool one_stage = order.kind == PipelineKind::k1F1B || order.kind == PipelineKind::kGpipe ||
                           order.kind == PipelineKind::kZbH1;
    hybrid.plan.recompute_budget =
        one_stage ? peak(full) + (peak(kept) - peak(full)) * 0.8 : std::max(peak(kept), peak(full)) * 1.05;
    CAPTURE(static_cast<int>(order.kind), order.pairs);
    CHECK(peak(hybrid) <= hybrid.plan.recompute_budget);
    const std::vector<double> expected = exact_losses(deep_job()), found = exact_losses(hybrid);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
  }
}

}  // namespace moebius
