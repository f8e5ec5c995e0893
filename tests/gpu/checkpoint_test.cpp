// Checkpoints and dumps of activations: those of the device are those of the host.
#include "real/alignment.h"
#include "real/cuda/cuda_run.h"
#include "real/host/host_run.h"
#include "tests/cross/resumed_runs.h"

#include "tests/catch.h"

#include "tests/gpu/device_tests.h"

namespace moebius::test {
namespace {

StartExecutor on_device(const std::string& dump = "") {
  return [dump](const Job& job, const Layout& layout, Recorder& recorder) {
    return start_cuda(job, layout, recorder, {dump});
  };
}

using Sets = std::vector<std::string>;

void check_resumes(const Sets& plan) {
  const SixSteps runs = six_steps(on_device(), plan);
  REQUIRE(runs.whole.losses.size() == 6);
  for (int step = 0; step < 6; ++step) {
    const TrainedRun& half = step < 3 ? runs.first : runs.second;
    REQUIRE(half.losses.size() == 3);
    CHECK(half.losses[step % 3] == runs.whole.losses[step]);
  }
  CHECK((runs.whole_files == runs.resumed_files));
}

}  // namespace

TEST_CASE("a run on the device goes on from its checkpoint to the bit") {
  NEEDS_DEVICE();
  check_resumes({});
}

TEST_CASE("a run in FP8 with sharded optimizer states goes on from its checkpoint on the device to the bit") {
  NEEDS_DEVICE();
  check_resumes({"/plan/precision/gemm=fp8", "/plan/dp/zero=1"});
}

// Two steps on one, the third on the other. Weights and states are equal to the bit then, so that the third
// losses differ by the order of sums in one forward pass.
TEST_CASE("host and device go on from each other's checkpoints") {
  NEEDS_DEVICE();
  for (const bool device_first : {true, false}) {
    const Scratch scratch;
    const StartExecutor first = device_first ? on_device() : on_host();
    const StartExecutor second = device_first ? on_host() : on_device();
    train_small(first, {"/workload/steps=2", "/plan/save=" + scratch.path("two")});
    const Sets resume{"/workload/steps=3", "/plan/weights=" + scratch.path("two"), "/plan/resume=true"};
    const TrainedRun same = train_small(first, resume), other = train_small(second, resume);
    REQUIRE(same.losses.size() == 1);
    REQUIRE(other.losses.size() == 1);
    CHECK(other.losses[0] == Approx(same.losses[0]).epsilon(1e-3));
  }
}

TEST_CASE("what layers put out on the device aligns with the host, from the same checkpoint") {
  NEEDS_DEVICE();
  const Scratch scratch;
  const std::string weights = scratch.path("weights"), host = scratch.path("host.safetensors"),
                    device = scratch.path("device.safetensors");
  train_small(on_host(), {"/workload/steps=3", "/plan/save=" + weights});
  const Sets start{"/workload/steps=1", "/plan/weights=" + weights};
  train_small(on_host(host), start);
  train_small(on_device(device), start);
  const Alignment alignment = align(device, host);
  INFO(to_text(alignment));
  CHECK(alignment.layers.size() >= 4 * 3);
  CHECK(alignment.only_in_run.empty());
  CHECK(alignment.only_in_reference.empty());
  CHECK(alignment.first_drift() == nullptr);
}

}  // namespace moebius::test
