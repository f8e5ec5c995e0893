// A small model learns on the host, in every precision that a plan can ask for.
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "real/token_stream.h"
#include "tests/cross/learning_curve.h"

namespace moebius {
namespace {

TrainingJob learning_job(int steps) {
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.workload.sequence_length = 32;
  job.workload.global_batch = 8;
  job.workload.micro_batch = 2;
  job.workload.steps = steps;
  return job;
}

}  // namespace

// Guessing costs ln 64 = 4.16 a token; the best that knows the chain pays 1.50, a little over a third.
TEST_CASE("a hundred steps lower the loss by more than half, and not below what the data allow") {
  const std::vector<double> curve = learning_curve(learning_job(100));
  REQUIRE(curve.size() == 100);
  INFO("loss of the first step " << curve[0] << ", of the last ten " << mean_of_last(curve, 10));
  CHECK(curve[0] > std::log(64.0) - 0.5);
  CHECK(mean_of_last(curve, 10) < curve[0] / 2);
  CHECK(mean_of_last(curve, 10) > token_entropy(64));
}

TEST_CASE("storage formats show in the loss, a little: exact, BF16 and FP8") {
  TrainingJob job = learning_job(30);
  const std::vector<double> exact = learning_curve(job, true), bf16 = learning_curve(job);
  job.plan.gemm = job.plan.dispatch = DType::kFp8;
  const std::vector<double> fp8 = learning_curve(job);
  CHECK(bf16[0] != exact[0]);
  CHECK(fp8[0] != bf16[0]);
  // BF16 keeps 8 bits, FP8 4: errors of some 2^-9 and 2^-5 an element, averaged over many.
  CHECK(bf16[0] == Approx(exact[0]).epsilon(0.01));
  CHECK(fp8[0] == Approx(exact[0]).epsilon(0.05));
  CHECK(mean_of_last(bf16, 5) == Approx(mean_of_last(exact, 5)).epsilon(0.1));
  CHECK(mean_of_last(fp8, 5) == Approx(mean_of_last(exact, 5)).epsilon(0.1));
}

TEST_CASE("the same job gives the same bits, however its threads run") {
  const TrainingJob job = learning_job(3);
  CHECK(learning_curve(job) == learning_curve(job));
}

}  // namespace moebius
