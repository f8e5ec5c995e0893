// What a device does beside its kernels, measured; in the rehearsal on CPU threads, where order and indices show.
#include "real/cuda/cuda_figures.h"

#include <numeric>

#include "hw/catalog.h"
#include "real/cuda/cuda_neighbours.h"
#include "real/cuda/cuda_under_test.h"
#include "tests/gpu/device_tests.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using namespace cuda;

TEST_CASE("a copy on few cores moves what it says, each byte to its place") {
  NEEDS_DEVICE();
  std::vector<float> numbers(1000), found(1000, -1);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const std::size_t bytes = numbers.size() * sizeof(float);
  const DeviceBuffer from(bytes), to(bytes);
  const Stream stream = make_stream();
  copy_to_device(stream, from.data(), numbers.data(), bytes);
  fill(stream, to.data(), 0, bytes);
  // 4000 bytes over 3 blocks: 20 times 64 bytes each.
  CHECK(copy_on_cores(stream, from.data(), to.data(), bytes, {3, 2}) == 3 * 1280);
  copy_to_host(stream, found.data(), to.data(), bytes);
  synchronise(stream);
  destroy(stream);
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == (i < 960 ? numbers[i] : 0));
}

TEST_CASE("launches, all transfers and neighbours of a device are measured") {
  NEEDS_DEVICE();
  const DeviceFigures figures = measure_device_figures(
      {.bytes = {4096, 65536}, .gemm = 64, .neighbour_cores = {2}, .seconds = 0.2}, nullptr);
  CHECK(figures.launch > 0);
  CHECK(figures.launch_latency > 0);
  for (const std::string_view name : {kHostToDevice, kDeviceToHost, kOnDevice, kExchange}) {
    INFO(name);
    REQUIRE(figures.transfer(name) != nullptr);
    CHECK(figures.transfer(name)->bytes == std::vector<double>{4096, 65536});
    CHECK(figures.transfer(name)->rate > 0);
  }
  REQUIRE(figures.interference.size() == 2);
  CHECK(figures.interference[0].beside == "h2d pinned");
  CHECK(figures.interference[1].beside == "exchange on 2 cores");
  CHECK(figures.interference[1].cores == 2);
  for (const Interference& found : figures.interference) {
    CHECK(found.kernel == "gemm bf16 64 x 64 x 64");
    CHECK(found.alone > 0);
    CHECK(found.together > 0);
    CHECK(found.neighbour_together > 0);
  }
}

TEST_CASE("a device is the catalog's chip of its name, and else what it says of itself") {
  const Catalog catalog;
  const auto id_of = [&](const char* name) { return cuda_reference({.name = name}, catalog).id; };
  CHECK(id_of("NVIDIA H200") == "h200-sxm");
  CHECK(id_of("NVIDIA H100 80GB HBM3") == "h100-sxm");
  CHECK(id_of("NVIDIA A100-SXM4-80GB") == "a100-sxm");
  CHECK(id_of("NVIDIA L40S") == "l40s");
  CHECK(id_of("NVIDIA RTX PRO 6000 Blackwell Server Edition") == "rtx-pro-6000");
  CHECK(id_of("NVIDIA H100 PCIe") == "h100-pcie");
  CHECK(id_of("NVIDIA H100 NVL") == "h100-nvl");
  CHECK(id_of("NVIDIA GH200 480GB") == "gh200-96gb");
  CHECK(id_of("NVIDIA GH200 144G HBM3e") == "gh200-144gb");
  CHECK(id_of("NVIDIA A100 80GB PCIe") == "a100-pcie-80gb");
  CHECK(id_of("NVIDIA A100-PCIE-40GB") == "a100-pcie-40gb");
  CHECK(id_of("NVIDIA A40") == "a40");
  CHECK(id_of("NVIDIA L4") == "l4");
  CHECK(id_of("NVIDIA GeForce RTX 4090") == "rtx-4090");
  CHECK(id_of("NVIDIA GeForce RTX 5090") == "rtx-5090");
  const Accelerator other = cuda_reference(
      {.name = "NVIDIA GeForce RTX 4060", .major = 8, .minor = 9, .multiprocessors = 24}, catalog);
  CHECK(other.id == "cuda-geforce-rtx-4060");
  CHECK(other.architecture == "ada");
  CHECK(other.cores == 24);
  CHECK(other.peak_of(DType::kBf16).value == 0);
  const Accelerator older = cuda_reference(
      {.name = "NVIDIA GeForce RTX 3090", .major = 8, .minor = 6, .multiprocessors = 82}, catalog);
  CHECK(older.architecture == "ampere-geforce");
}

}  // namespace
}  // namespace moebius
