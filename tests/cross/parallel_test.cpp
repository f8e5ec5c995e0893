// Spreading a training step over ranks, or computing activations again, changes nothing but the order of
// sums.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
TEST_CASE("one, two and four expert-parallel ranks have the same loss") {
  for (const int ep : {1, 2, 4}) {
    require_same_losses(all_experts_job(AttentionKind::kMla),
                        [&](TrainingJob& job) { job.plan.dp = 4, job.plan.ep = ep; });
  }
}

// Every token uses all experts, so that each expert takes the first half of each rank's tokens.
TEST_CASE(
    "experts that take half of the tokens have the same loss on one and two and four ranks, and another") {
  const auto halve = [](TrainingJob& job) { job.plan.dp = 4, job.plan.capacity = 0.5; };
  TrainingJob job = all_experts_job(AttentionKind::kMla);
  const std::vector<double> whole = exact_losses(job);
  halve(job);
  const std::vector<double> half = exact_losses(job);
  CHECK(half[0] != Approx(whole[0]).epsilon(1e-4));
  for (const int ep : {2, 4}) {
    require_same_losses(job, [&](TrainingJob& changed) { changed.plan.ep = ep; });
  }
  require_same_losses(all_experts_job(AttentionKind::kMla),
                      [&](TrainingJob& changed) { changed.plan.dp = 4, changed.plan.capacity = 1; });
}

// Two sequences stand on one rank, or each on its own: either way each expert takes their first halves. Of
// both together it would take the first one whole.
TEST_CASE("a capacity of each sequence drops the same tokens wherever sequences stand") {
  TrainingJob job = all_experts_job(AttentionKind::kMla);
  job.plan.dp = 4, job.plan.capacity = 0.5;
  const auto pairs = [](bool of_sequence) {
    return [of_sequence](TrainingJob& changed) {
      changed.plan.dp = 2, changed.workload.micro_batch = 2;
      changed.plan.capacity_of_sequence = of_sequence;
    };
  };
  require_same_losses(job, pairs(true));
  require_same_losses(job, [&](TrainingJob& changed) { pairs(true)(changed), changed.plan.ep = 2; });
  TrainingJob together = job;
  pairs(false)(together);
  CHECK(exact_losses(together)[0] != Approx(exact_losses(job)[0]).epsilon(1e-4));
}

// One group of expert-parallel ranks in all, so that the same sequences stand in the same order on one rank
// as on two or four: the draw deals the same two of eight experts to the same token.
TEST_CASE("one, two and four expert-parallel ranks train alike in single precision, step by step") {
  const auto train = [](int ranks) {
    TrainingJob job = small_job(full_model());
    job.plan.dp = job.plan.ep = ranks;
    job.workload.micro_batch = 4 / ranks;
    job.workload.global_batch = 8;
    job.workload.steps = 20;
    HostOptions options;
    options.exact = true;
    SmallRun<float> run(job, options);
    const HostExecutor<float>& executor = run.run();
    std::vector<double> all;
    for (int step = 0; step < executor.num_steps(); ++step) all.push_back(executor.loss(step));
    return all;
  };
  const std::vector<double> expected = train(1);
  REQUIRE(expected.size() == 20);
  CHECK(expected[19] < expected[0] - 0.1);  // it learns
  for (const int ranks : {2, 4}) {
    const std::vector<double> found = train(ranks);
    for (int step = 0; step < 20; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-5));
  }
}

TEST_CASE("shared experts with a gate have the same loss on any ranks, and another without it") {
  TrainingJob job = all_experts_job(AttentionKind::kMla);
  const double without = exact_losses(job)[0];
  job.model = with_shared_gate(job.model);
  CHECK(exact_losses(job)[0] != Approx(without).epsilon(1e-4));
  for (const int ep : {1, 4})
    require_same_losses(job, [&](TrainingJob& changed) { changed.plan.dp = 4, changed.plan.ep = ep; });
  require_same_losses(job, [](TrainingJob& changed) { changed.plan.pp = 2; });
  require_same_losses(job, [](TrainingJob& changed) {
    changed.plan.pp = 2;
    changed.plan.schedule = PipelineKind::kZbH1;
  });
  require_same_losses(job, [](TrainingJob& changed) {
    changed.plan.recompute = RecomputePolicy::kSelective;
    changed.plan.recompute_ops = {RecomputeOp::kActivation, RecomputeOp::kMlpUp, RecomputeOp::kGate};
  });
  job.model.first_dense = 0;
  job.model.gated = false;  // how columns of gate and up fall on ranks is a property of the degree
  require_same_losses(job, [](TrainingJob& changed) {
    changed.plan.tp = 2;
    changed.plan.ep = 2;
    changed.plan.sequence_parallel = true;
    changed.plan.recompute = RecomputePolicy::kFull;
  });
}

TEST_CASE("biases of queries, keys and values have the same loss on any ranks, and another without them") {
  TrainingJob job = all_experts_job(AttentionKind::kGqa);
  const double without = exact_losses(job)[0];
  job.model = with_biases(job.model);
  CHECK(exact_losses(job)[0] != Approx(without).epsilon(1e-5));
  job.plan.clip = 1e-3;  // by a norm that has them in it
  for (const int zero : {0, 1, 2, 3}) {
    require_same_losses(job, [&](TrainingJob& changed) {
      changed.plan.dp = changed.plan.ep = 4;
      changed.plan.zero = zero;
    });
  }
  require_same_losses(job, [](TrainingJob& changed) { changed.plan.pp = 2; });
  require_same_losses(job, [](TrainingJob& changed) {
    changed.plan.pp = 2;
    changed.plan.schedule = PipelineKind::kZbH1;
  });
  require_same_losses(job, [](TrainingJob& changed) { changed.plan.cp = 2; });
  require_same_losses(job, [](TrainingJob& changed) {
    changed.plan.recompute = RecomputePolicy::kSelective;
    changed.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kQkv};
  });
}

TEST_CASE("two pipeline stages have the same loss as one") {
  require_same_losses(all_experts_job(AttentionKind::kGqa), [](TrainingJob& job) { job.plan.pp = 2; });
}

TEST_CASE("an embedding that the first and the last stage share has the same loss on one stage") {
  TrainingJob job = all_experts_job(AttentionKind::kGqa);
  job.model.tied_embeddings = true;
  job.model.mtp_layers = 1;
  require_same_losses(job, [](TrainingJob& changed) { changed.plan.pp = 2; });
}

TEST_CASE("optimizer states cut over replicas, gradients reduced early: the same loss") {
  require_same_losses(all_experts_job(AttentionKind::kMla), [](TrainingJob& job) {
    job.plan.dp = 4;
    job.plan.ep = 2;
    job.plan.zero = 1;
    job.plan.overlap_gradients = true;
  });
}

TEST_CASE("context-parallel ranks that hold half of each sequence have the same loss") {
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    require_same_losses(all_experts_job(attention), [](TrainingJob& job) {
      job.plan.cp = 2;
      job.plan.dp = 2;
      job.plan.ep = 4;
    });
  }
}

TEST_CASE("two sequences in a microbatch do not see each other") {
  require_same_losses(all_experts_job(AttentionKind::kGqa),
                      [](TrainingJob& job) { job.workload.micro_batch = 2; });
}

TEST_CASE("recomputed activations are the ones that were dropped") {
  require_same_losses(all_experts_job(AttentionKind::kMla),
                      [](TrainingJob& job) { job.plan.recompute = RecomputePolicy::kFull; });
  for (const int layers : {1, 2}) {
    require_same_losses(all_experts_job(AttentionKind::kMla), [layers](TrainingJob& job) {
      job.plan.recompute = RecomputePolicy::kFull;
      job.plan.recompute_layers = layers;
      job.plan.recompute_stops = true;
    });
  }
  require_same_losses(all_experts_job(AttentionKind::kMla), [](TrainingJob& job) {
    job.plan.recompute = RecomputePolicy::kSelective;
    job.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kMlaUp, RecomputeOp::kActivation};
  });
}

TEST_CASE("attention in kernels of their own, sums that wait and gradients added apart have the same loss") {
  require_same_losses(all_experts_job(AttentionKind::kMla),
                      [](TrainingJob& job) { job.plan.attention = AttentionKernels::kUnfused; });
  require_same_losses(all_experts_job(AttentionKind::kGqa), [](TrainingJob& job) {
    job.plan.attention = AttentionKernels::kUnfused;
    job.plan.separate_accumulation = true;
    job.plan.recompute = RecomputePolicy::kFull;
  });
  require_same_losses(all_experts_job(AttentionKind::kGqa), [](TrainingJob& job) {
    job.plan.separate_accumulation = true;
    job.plan.zero = 2;
    job.plan.dp = 2;
  });
  TrainingJob dense = small_job(small_model(AttentionKind::kGqa));
  dense.model.experts = {};
  dense.workload.steps = 3;
  dense.plan.tp = 2;
  require_same_losses(dense, [](TrainingJob& job) { job.plan.overlap_tensor_gradients = false; });
}

TEST_CASE(
    "losses and norms and updates in kernels of their own and sums that hold cores have the same loss") {
  const auto older = [](TrainingJob& job) {
    job.plan.loss = LossKernels::kSeparate;
    job.plan.separate_norm_grad = job.plan.separate_update = true;
    job.plan.separate_routing = job.plan.expert_by_expert = true;
  };
  require_same_losses(all_experts_job(AttentionKind::kGqa), [](TrainingJob& job) {
    job.plan.ep = 2;
    job.plan.dp = 2;
    job.plan.exchange = Algorithm::kLibrary;
  });
  require_same_losses(all_experts_job(AttentionKind::kMla), older);
  TrainingJob dense = small_job(small_model(AttentionKind::kGqa));
  dense.model.experts = {};
  dense.workload.steps = 3;
  dense.plan.tp = 2;
  require_same_losses(dense, [&](TrainingJob& job) {
    older(job);
    job.plan.tensor_sms = 24;
  });
}

TEST_CASE("sequence parallelism changes where rows stand between blocks, not the loss") {
  // A dense model: experts and tensor parallelism need sequence parallelism.
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    TrainingJob job = small_job(small_model(attention));
    job.model.experts = {};
    job.workload.steps = 3;
    job.plan.tp = 2;
    require_same_losses(job, [](TrainingJob& changed) { changed.plan.sequence_parallel = true; });
    for (const bool stops : {false, true}) {
      require_same_losses(job, [stops](TrainingJob& changed) {
        changed.plan.sequence_parallel = changed.plan.gather_passes = true;
        changed.plan.recompute = stops ? RecomputePolicy::kFull : RecomputePolicy::kNone;
        changed.plan.recompute_whole = changed.plan.recompute_stops = stops;
      });
    }
  }
}

}  // namespace moebius
