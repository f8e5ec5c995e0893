#include "real/cuda/cuda_under_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>
#include <optional>

#include "hw/error.h"
#include "real/calibration/storage_figures.h"
#include "real/cuda/catalog_name.h"
#include "real/cuda/cuda_bench.h"
#include "real/cuda/cuda_figures.h"

namespace moebius {
namespace {

constexpr double kBudget = 480;

// The first line of what the driver's tool says; empty without the tool.
std::string ask_driver(const char* what) {
  struct Close {
    void operator()(std::FILE* pipe) const { pclose(pipe); }
  };
  const std::string command =
      fmt::format("nvidia-smi --query-gpu={} --format=csv,noheader 2>/dev/null", what);
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  std::array<char, 200> line{};
  if (!pipe || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  const std::string text = line.data();
  return text.substr(0, text.find('\n'));
}

std::string clocks_now() {
  return ask_driver("clocks.sm,clocks.mem");
}

// "13.0" of 13000.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string driver_text(const cuda::DeviceFacts& facts) {
  const std::string driver = ask_driver("driver_version");
  return fmt::format("{}, CUDA {}",
                     driver.empty() ? "driver for " + version_text(facts.driver_version) : driver,
                     version_text(facts.runtime_version));
}

std::optional<Accelerator> listed_chip(const std::string& id, const Catalog& catalog) {
  for (const std::string& known : catalog.accelerator_ids()) {
    const Accelerator chip = catalog.accelerator(known);
    const auto& names = chip.aliases;
    if (chip.id == id || std::find(names.begin(), names.end(), id) != names.end()) return chip;
  }
  return {};
}

// The row of the analytic model whose structure is nearest to that of a chip of this compute capability.
const char* architecture_of(const cuda::DeviceFacts& facts) {
  if (facts.major < 8) return "ampere";
  if (facts.major == 8 && facts.minor == 6) return "ampere-geforce";
  if (facts.major == 8) return facts.minor == 9 ? "ada" : "ampere";
  if (facts.major == 9) return "hopper";
  return facts.major == 10 ? "blackwell" : "blackwell-geforce";
}

cuda::FiguresPlan figures_plan(double seconds) {
  cuda::FiguresPlan plan;
  for (int bytes = 4096; bytes <= 256'000'000; bytes *= 8) plan.bytes.push_back(bytes);
  plan.seconds = seconds;
  return plan;
}

DeviceFigures measure_figures(const cuda::DeviceFacts& facts, const std::string& directory,
                              const FiguresTime& time) {
  std::string no_library;
  const auto library = cuda::open_gemm_library(no_library);
  DeviceFigures figures = cuda::measure_device_figures(figures_plan(0.8 * time.seconds), library.get());
  figures.name = facts.name;
  figures.driver = driver_text(facts);
  time.require_left();
  measure_storage(directory, time.last_part(0.2), figures);
  return figures;
}

}  // namespace

Accelerator cuda_reference(const cuda::DeviceFacts& facts, const Catalog& catalog) {
  const std::string id = cuda::catalog_name(facts);
  if (const auto listed = listed_chip(id, catalog)) return *listed;
  Accelerator chip;
  chip.id = "cuda-" + id;
  chip.architecture = architecture_of(facts);
  chip.cores = facts.multiprocessors;
  chip.memory = {facts.memory_bytes};
  chip.l2 = {facts.l2_bytes};
  return chip;
}

DeviceUnderTest cuda_under_test(int index, const Catalog& catalog, const std::string& out) {
  if (index != 0)
    throw run_error(
        fmt::format("cuda:{0}: one device is measured at a time, as cuda:0; choose it with "
                    "CUDA_VISIBLE_DEVICES={0}",
                    index));
  DeviceUnderTest device;
  device.bench = make_cuda_bench();
  const cuda::DeviceFacts facts = cuda::open_device();
  device.reference = cuda_reference(facts, catalog);
  device.sizes = gpu_case_sizes();
  device.budget = kBudget;
  device.measure_figures = [facts, directory = directory_of(out)](const FiguresTime& time) {
    return measure_figures(facts, directory, time);
  };
  device.clocks = clocks_now;
  return device;
}

}  // namespace moebius
