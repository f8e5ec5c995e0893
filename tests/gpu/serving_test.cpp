// Requests are answered on the device as on the host.
#include <catch2/catch.hpp>

#include "tests/cross/small_serving.h"
#include "tests/gpu/device_tests.h"

namespace moebius {
namespace {

Tokens answers_of_device(const ServingJob& job, const Constants& constants = {}) {
  Serving serving(job);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  cuda::CudaOptions options{.seed = job.workload.seed, .library_gemm = false, .poison = true};
  options.constants = constants;
  const auto device = make_cuda_executor(serving.layout(), recorder, options);
  execute(serving, *device, recorder);
  return serving.generated([&](int rank, std::uint32_t key) { return device->tensor(rank, key); });
}

// Both round at the same places; a token differs only where two logits are nearly equal and a sum's order
// decides, and everything after it then does too. These seeds have no such pair.
void check_same(const ServingJob& job, const Constants& constants = {}) {
  HostOptions options;
  options.seed = job.workload.seed;
  options.constants = constants;
  CHECK(answers_of_device(job, constants) == answers<float>(job, options));
}

}  // namespace

TEST_CASE("the device answers requests with the tokens of the host") {
  NEEDS_DEVICE();
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    ServingJob job = small_service(small_model(attention));
    check_same(job);
    job.plan.dp = job.plan.ep = 2;
    check_same(job);
  }
}

TEST_CASE("the device answers with a gate of the shared experts") {
  NEEDS_DEVICE();
  check_same(small_service(with_shared_gate(small_model(AttentionKind::kGqa))));
}

TEST_CASE("the device answers with biases of queries, keys and values") {
  NEEDS_DEVICE();
  check_same(small_service(with_biases(small_model(AttentionKind::kGqa))));
}

TEST_CASE("the device answers with heads over two ranks") {
  NEEDS_DEVICE();
  Model model = small_model(AttentionKind::kMla);
  model.experts = {};
  ServingJob job = small_service(model);
  job.plan.tp = 2;
  check_same(job);
}

TEST_CASE("the device answers from FP8 products") {
  NEEDS_DEVICE();
  ServingJob job = small_service(small_model(AttentionKind::kMla));
  job.plan.gemm = DType::kFp8;
  HostOptions options;
  options.seed = job.workload.seed;
  CHECK(share_of_equal(answers_of_device(job), answers<float>(job, options)) >= 0.5);
}

TEST_CASE("the device norms heads and turns positions as the host does when it serves") {
  NEEDS_DEVICE();
  Model qwen = small_model(AttentionKind::kGqa);
  qwen.qk_norm = QkNorm::kPerHead;
  check_same(small_service(qwen), {.rotary = {.base = 1e6}, .norm_epsilon = 1e-2});
  qwen.qk_norm = QkNorm::kPerLayer;
  ServingJob of_two = small_service(qwen);
  of_two.plan.tp = 2;
  check_same(of_two, {.rotary = {.base = 1e6}, .norm_epsilon = 1e-2});
  check_same(
      small_service(small_model(AttentionKind::kMla)),
      {.rotary = {.base = 100, .factor = 4, .low = 0, .high = 2, .magnitude = 1.2}, .score_scale = 1.5});
}

TEST_CASE("a cache in FP8 is refused by name") {
  NEEDS_DEVICE();
  ServingJob job = small_service(small_model(AttentionKind::kMla));
  job.plan.kv = DType::kFp8;
  CHECK_THROWS_WITH(answers_of_device(job), Catch::Contains("cuda does not keep a cache in fp8 yet"));
}

}  // namespace moebius
