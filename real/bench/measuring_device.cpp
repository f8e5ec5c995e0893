#include "real/bench/measuring_device.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "real/bench/host_bench.h"

namespace moebius {
namespace {

std::unique_ptr<OpBench> gpu_or_nothing(const MakeBench& make_cuda) {
  try {
    return make_cuda();
  } catch (const Error&) {  // built without CUDA, or no device: the host measures, and the report says so
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<OpBench> open_bench(const std::string& device, const MakeBench& make_cuda) {
  if (device == "cuda:0") return make_cuda();
  if (device == "host") return make_host_bench();
  if (!device.empty())
    throw input_error(fmt::format("--device: expected host, cuda:0, found \"{}\"{}", device,
                                  suggestion(device, {"host", "cuda:0"})));
  std::unique_ptr<OpBench> gpu = gpu_or_nothing(make_cuda);
  return gpu ? std::move(gpu) : make_host_bench();
}

MeasuringDevice open_measuring_device(const std::string& device, const MakeBench& make_cuda) {
  MeasuringDevice opened{.bench = open_bench(device, make_cuda)};
  if (opened.bench->cores() > 1) return opened;
  opened.memory_bytes = free_host_memory();
  opened.bytes = host_bytes;
  return opened;
}

}  // namespace moebius
