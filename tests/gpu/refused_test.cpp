// What a plan may ask for and a device does not store, yet.
#include <catch2/catch.hpp>

#include "real/cuda/device_store.h"

namespace moebius::cuda {

TEST_CASE("FP8 with one scale per tensor is refused, not stored as blocks") {
  Tensor tensor{.memory = MemoryKind::kWeights, .dtype = DType::kFp8, .rows = 128, .columns = 128};
  CHECK(storage_of(tensor) == Storage::kFp8Blocks);
  tensor.scaling = Scaling::kTensor;
  CHECK_THROWS_WITH(storage_of(tensor), "cuda does not store fp8 with one scale per tensor yet");
  tensor.scaling = Scaling::kMicro;
  CHECK_THROWS_WITH(storage_of(tensor), "cuda does not store fp8 with scales of 32 elements yet");
}

}  // namespace moebius::cuda
