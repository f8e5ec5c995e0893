// Low-rank adapters in numbers: their gradients are the derivative of the loss, what is frozen stays, and
// spreading the work changes nothing.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

using Numbers = std::vector<double>;
using Target = AdapterTarget;

const std::vector<Target> kAll{Target::kQkv,     Target::kAttentionOut, Target::kMlpUp,
                               Target::kMlpDown, Target::kExpertUp,     Target::kExpertDown};
const std::vector<Target> kDense{Target::kQkv, Target::kAttentionOut, Target::kMlpUp, Target::kMlpDown};

TrainingJob adapted(TrainingJob job, const std::vector<Target>& targets) {
  job.workload.adapters = {.rank = 3, .targets = targets};
  return job;
}

struct Matrix {
  Role role;
  int layer;
  AdapterSide side;
  std::uint32_t key(Part part) const { return adapter_key(role, layer, side, part); }
};

std::vector<Matrix> adapters_of(const HostExecutor<double>& executor, int layers) {
  std::vector<Matrix> found;
  for (int layer = 0; layer < layers; ++layer)
    for (int role = 1; role < kNumRoles; ++role)
      for (const AdapterSide side : {AdapterSide::kA, AdapterSide::kB}) {
        const Matrix matrix{static_cast<Role>(role), layer, side};
        if (!executor.tensor(0, matrix.key(Part::kWeight)).empty()) found.push_back(matrix);
      }
  return found;
}

// B starts at zero, where A has no gradient: instead somewhere else.
Numbers somewhere(const Numbers& like) {
  Numbers values(like.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.3 * std::sin(1.0 + 2.7 * static_cast<double>(i));
  return values;
}

// With these settings an update leaves the weights alone and the first moment is the gradient.
HostOptions observing() {
  HostOptions options;
  options.exact = true;
  options.adam = {.learning_rate = 0, .beta1 = 0, .beta2 = 0};
  return options;
}

using Start = std::vector<std::pair<std::uint32_t, Numbers>>;

double loss_from(const TrainingJob& job, const Start& start, std::uint32_t key, const Numbers& values) {
  SmallRun<double> run(job, observing());
  for (const auto& [of, numbers] : start) run.executor().set_parameter(0, of, numbers);
  run.executor().set_parameter(0, key, values);
  return run.run().loss(0);
}

void require_gradients(const TrainingJob& job, std::size_t matrices) {
  SmallRun<double> blank(job, observing());
  const std::vector<Matrix> all = adapters_of(blank.run(), job.model.layers);
  REQUIRE(all.size() == matrices);
  Start start;
  for (const Matrix& matrix : all) {
    const std::uint32_t key = matrix.key(Part::kWeight);
    if (matrix.side == AdapterSide::kB) start.emplace_back(key, somewhere(blank.executor().tensor(0, key)));
  }
  SmallRun<double> base(job, observing());
  for (const auto& [key, numbers] : start) base.executor().set_parameter(0, key, numbers);
  base.run();
  for (const Matrix& matrix : all) {
    const Numbers gradient = base.executor().tensor(0, matrix.key(Part::kFirstMoment));
    const std::uint32_t key = matrix.key(Part::kWeight);
    Numbers values = base.executor().tensor(0, key);
    REQUIRE(gradient.size() == values.size());
    for (const std::size_t i : {std::size_t{0}, gradient.size() / 3, gradient.size() - 1}) {
      constexpr double kStep = 1e-4;
      const double at = values[i];
      values[i] = at + kStep;
      const double above = loss_from(job, start, key, values);
      values[i] = at - kStep;
      const double below = loss_from(job, start, key, values);
      values[i] = at;
      INFO(fmt::format("{} of {}, layer {}, element {}", matrix.side == AdapterSide::kA ? "A" : "B",
                       to_string(matrix.role), matrix.layer, i));
      CHECK(gradient[i] == Approx((above - below) / (2 * kStep)).epsilon(1e-3).margin(1e-8));
    }
  }
}

}  // namespace

TEST_CASE("gradients of adapters beside every matrix agree with finite differences") {
  // Of both layers the map of queries, keys and values and that of results; a dense MLP; shared and routed
  // experts.
  require_gradients(adapted(small_job(small_model(AttentionKind::kGqa)), kAll), 2 * (2 * 2 + 2 + 2 + 2));
  require_gradients(adapted(small_job(small_model(AttentionKind::kMla)), kAll), 2 * (2 * 5 + 2 + 2 + 2));
}

TEST_CASE("frozen norms of queries and keys hand gradients on to adapters") {
  for (const QkNorm norm : {QkNorm::kPerHead, QkNorm::kPerLayer}) {
    Model model = small_model(AttentionKind::kGqa);
    model.qk_norm = norm;
    require_gradients(adapted(small_job(model), {Target::kQkv}), 2 * 2);
  }
}

TEST_CASE("the same where layers or their parts are computed again, and passes are split") {
  TrainingJob job = adapted(small_job(small_model(AttentionKind::kGqa)), kAll);
  job.plan.recompute = RecomputePolicy::kFull;
  require_gradients(job, 20);
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kQkv, RecomputeOp::kMlpUp,
                            RecomputeOp::kExpertUp, RecomputeOp::kAttentionOut};
  require_gradients(job, 20);
  job.plan.recompute = RecomputePolicy::kNone;
  job.plan.recompute_ops.clear();
  job.plan.schedule = PipelineKind::kZbH1;
  require_gradients(job, 20);
}

// A changed start of A changes nothing while B is zero.
TEST_CASE("adapters begin as nothing, and later losses go another way") {
  TrainingJob full = dense_job();
  const std::vector<double> expected = exact_losses(full), found = exact_losses(adapted(full, kDense));
  CHECK(found[0] == expected[0]);
  CHECK(found[1] < found[0]);
  CHECK(found[1] != Approx(expected[1]).epsilon(1e-6));
}

TEST_CASE("a step leaves frozen weights as they were, and keeps neither gradients nor states of them") {
  const TrainingJob job = adapted(dense_job(), {Target::kQkv});
  HostOptions options;
  options.exact = true;
  SmallRun<double> run(job, options), other(dense_job(), observing());
  const HostExecutor<double>&after = run.run(), &start = other.run();
  for (const Role role : {Role::kQkv, Role::kO, Role::kGateUp, Role::kAttentionNorm}) {
    CHECK(after.tensor(0, parameter_key(role, 1, Part::kWeight)) ==
          start.tensor(0, parameter_key(role, 1, Part::kWeight)));
    for (const Part part : {Part::kGradient, Part::kMaster, Part::kFirstMoment})
      CHECK(after.tensor(0, parameter_key(role, 1, part)).empty());
  }
  const Numbers b = after.tensor(0, adapter_key(Role::kQkv, 1, AdapterSide::kB, Part::kWeight));
  CHECK(std::any_of(b.begin(), b.end(), [](double value) { return value != 0; }));
}

TEST_CASE("adapters on ranks that share heads, rows or sequences have the losses of one rank") {
  const TrainingJob job = adapted(dense_job(), kDense);
  require_losses_of_one_rank(job, [](TrainingPlan& plan) { plan.tp = 2; });
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.tp = 2;
    plan.sequence_parallel = true;
  });
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.tp = 2;
    plan.sequence_parallel = true;
    plan.tp_chunks = 2;
  });
  TrainingJob two = job;
  two.workload.micro_batch = 2;
  require_losses_of_one_rank(two, [](TrainingPlan& plan) { plan.cp = 2; });
}

TEST_CASE("adapters beside latent maps and experts have them on tensor- and expert-parallel ranks") {
  const TrainingJob job = adapted(all_experts_job(AttentionKind::kMla), kAll);
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.tp = plan.dp = 2;
    plan.ep = 4;
    plan.sequence_parallel = true;
  });
}

// Those beside the latent of keys stand whole on every rank, as it does; those beside queries are cut.
TEST_CASE("adapters beside queries without a latent have the losses of one rank") {
  TrainingJob job = adapted(small_job(small_model(AttentionKind::kMla)), kDense);
  job.model.mla.q_rank = 0;
  job.model.experts = {};
  job.workload.steps = 3;
  for (const bool by_rows : {false, true}) {
    require_losses_of_one_rank(job, [&](TrainingPlan& plan) {
      plan.tp = 2;
      plan.sequence_parallel = by_rows;
    });
    require_losses_of_one_rank(job, [&](TrainingPlan& plan) {
      plan.tp = 2;
      plan.sequence_parallel = by_rows;
      plan.recompute = RecomputePolicy::kFull;
    });
  }
}

TEST_CASE("adapters that are cut over replicas with what they stand beside have them") {
  const TrainingJob job = adapted(all_experts_job(AttentionKind::kGqa), kAll);
  for (const int zero : {0, 1, 2, 3}) {
    for (const double clip : {0.0, 1e-3}) {
      TrainingJob clipped = job;
      clipped.plan.clip = clip;
      require_losses_of_one_rank(clipped, [&](TrainingPlan& plan) {
        plan.dp = 4;
        plan.ep = 2;
        plan.zero = zero;
        plan.overlap_gradients = true;
        plan.overlap_weights = zero == 1 || zero == 2;
      });
    }
  }
}

TEST_CASE("adapters whose weights and states stand in host memory have them") {
  const TrainingJob job = adapted(all_experts_job(AttentionKind::kGqa), kAll);
  for (const int zero : {0, 1, 3}) {
    require_losses_of_one_rank(job, [&](TrainingPlan& plan) {
      plan.dp = plan.ep = 2;
      plan.zero = zero;
      plan.offload.parameters = plan.offload.optimizer = true;
    });
  }
}

// With adapters beside experts alone, the first stage of four, a dense layer, is frozen as a whole.
TEST_CASE("adapters in stages of every schedule have them") {
  TrainingJob job = adapted(deep_job(), kAll);
  job.model.mtp_layers = 0;
  for (const PipelineKind kind : {PipelineKind::kGpipe, PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    require_losses_of_one_rank(job, [&](TrainingPlan& plan) {
      plan.pp = 2;
      plan.schedule = kind;
    });
    TrainingJob experts = job;
    experts.workload.adapters.targets = {Target::kExpertUp};
    experts.plan.clip = 1e-3;
    require_losses_of_one_rank(experts, [&](TrainingPlan& plan) {
      plan.pp = 4;
      plan.layers = {1, 1, 1, 1};
      plan.schedule = kind;
    });
  }
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.pp = 2;
    plan.schedule = PipelineKind::kDualPipe;
  });
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.pp = plan.chunks = 2;
    plan.schedule = PipelineKind::kInterleaved;
  });
  require_losses_of_one_rank(job, [](TrainingPlan& plan) {
    plan.pp = 2;
    plan.schedule = PipelineKind::kZbV;
  });
}

}  // namespace moebius
