#include "real/cuda/cuda_executor.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/executor_state.h"

namespace moebius {

CudaExecutor::CudaExecutor(const Layout& layout, Recorder& recorder, const cuda::CudaOptions& options) {
  for (const RankClass& rank_class : layout.classes) {
    if (rank_class.size() != 1) throw run_error("cuda executes every rank: set /plan/fold to false");
  }
  state_ = std::make_unique<State>(layout, recorder, options);
}

CudaExecutor::~CudaExecutor() = default;

Time CudaExecutor::now() const {
  return state_->now();
}
void CudaExecutor::submit(const Submission& submission) {
  state_->submit(submission);
}
std::vector<Completion> CudaExecutor::wait(Time until) {
  return state_->wait(until);
}

Time CudaExecutor::finish() {
  while (!state_->wait(kForever).empty()) {
  }
  return state_->last_end;
}

double CudaExecutor::loss(int step) const {
  double sum = 0;
  for (const auto& shown : state_->results) {
    const auto found = shown.loss.find(step);
    if (found != shown.loss.end()) sum += found->second;
  }
  return sum;
}

int CudaExecutor::num_steps() const {
  int steps = 0;
  for (const auto& shown : state_->results) {
    if (!shown.loss.empty()) steps = std::max(steps, shown.loss.rbegin()->first + 1);
  }
  return steps;
}

std::vector<Transfer> CudaExecutor::transfers() const {
  std::vector<Transfer> all;
  for (const auto& shown : state_->results)
    all.insert(all.end(), shown.transfers.begin(), shown.transfers.end());
  std::sort(all.begin(), all.end(), [](const Transfer& a, const Transfer& b) {
    return std::pair(a.sequence, a.op) < std::pair(b.sequence, b.op);
  });
  return all;
}

std::vector<float> CudaExecutor::tensor(int rank, std::uint32_t key) const {
  return state_->values_of(rank, state_->ranks[rank]->store.kept(key));
}

std::vector<float> CudaExecutor::by_role(int rank, MemoryKind memory, Role role, int layer) const {
  const auto keys = state_->ranks[rank]->store.keys(memory, role, layer);
  CHECK(keys.size() == 1,
        fmt::format("{} tensors of {}, layer {} on rank {}", keys.size(), to_string(role), layer, rank));
  return tensor(rank, keys.front());
}

std::vector<float> CudaExecutor::parameter(int rank, Role role, int layer) const {
  return by_role(rank, MemoryKind::kWeights, role, layer);
}

std::vector<float> CudaExecutor::gradient(int rank, Role role, int layer) const {
  return by_role(rank, MemoryKind::kGradients, role, layer);
}

std::vector<HeldValues> CudaExecutor::held(int rank, MemoryKind memory) const {
  std::vector<HeldValues> all;
  state_->ranks[rank]->store.for_each(memory, [&](const Tensor& tensor, const cuda::TensorRef& value) {
    all.push_back({tensor, state_->values_of(rank, value)});
  });
  return all;
}

void CudaExecutor::set_parameter(int rank, std::uint32_t key, std::vector<float> values) {
  state_->ranks[rank]->store.set_initial(key, std::move(values));
}

std::size_t CudaExecutor::num_microbatch_tensors(int rank) const {
  return state_->ranks[rank]->store.num_microbatch_tensors();
}

namespace {

std::string name_of(const cuda::DeviceFacts& device) {
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors", device.name, device.major,
                     device.minor, device.multiprocessors);
}

// "ranks 4-7"
std::string ranks_on(int device, const std::vector<int>& device_of_rank) {
  const auto [first, last] = std::equal_range(device_of_rank.begin(), device_of_rank.end(), device);
  const auto from = first - device_of_rank.begin(), to = last - device_of_rank.begin() - 1;
  return from == to ? fmt::format("rank {}", from) : fmt::format("ranks {}-{}", from, to);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> CudaExecutor::description() const {
  const cuda::DeviceFacts& first = state_->devices.front();
  const std::vector<int>& place = state_->device_of_rank;
  std::vector<std::pair<std::string, std::string>> lines;
  if (place.back() == 0) lines.emplace_back("device", name_of(first));
  for (int device = 0; place.back() > 0 && device <= place.back(); ++device)
    lines.emplace_back(fmt::format("device {}", device),
                       fmt::format("{}: {}", name_of(state_->devices[device]), ranks_on(device, place)));
  const cuda::GemmLibrary* library = state_->libraries.front().get();
  lines.emplace_back("cuda",
                     fmt::format("driver {}, runtime {}", first.driver_version, first.runtime_version));
  lines.emplace_back("matrix products", library != nullptr
                                            ? library->description() + " (BF16), plain kernel otherwise"
                                            : "plain kernel: " + state_->no_library);
  return lines;
}

std::size_t CudaExecutor::reserved_bytes() const {
  std::size_t bytes = 0;
  for (const auto& rank : state_->ranks) bytes += rank->memory.reserved();
  return bytes;
}

void CudaExecutor::trace_kernels() {
  Monitor::Lock lock(state_->monitor.mutex());
  state_->trace = std::make_unique<cuda::OpTrace>(cuda::open_kernel_trace(state_->start));
}

std::vector<cuda::OpActivity> CudaExecutor::take_trace() {
  return state_->trace ? state_->trace->take() : std::vector<cuda::OpActivity>{};
}

Time CudaExecutor::clock_drift() const {
  return state_->clock_drift();
}

}  // namespace moebius
