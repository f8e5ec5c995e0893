// CUPTI's activity records. Its callbacks have no argument of ours, so that the trace that is open is known
// to this file; record types carry the version of their layout in their names and are seen here only.
#include <cuda_runtime.h>

#include "hw/error.h"
#include "real/cuda/kernel_trace.h"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "real/cuda/shared_library.h"

namespace moebius::cuda {
namespace {

#if CUDART_VERSION >= 13000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using FillRecord = CUpti_ActivityMemset4;
using OwnerRecord = CUpti_ActivityExternalCorrelation;

constexpr std::size_t kBuffer = 4 << 20;
constexpr auto kOwners = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// Owners are told of calls, and calls only when they are recorded.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET};

struct Functions {
  decltype(::cuptiActivityRegisterCallbacks)* register_callbacks;
  decltype(::cuptiActivityEnable)* enable;
  decltype(::cuptiActivityDisable)* disable;
  decltype(::cuptiActivityFlushAll)* flush;
  decltype(::cuptiActivityGetNextRecord)* next_record;
  decltype(::cuptiActivityPushExternalCorrelationId)* push;
  decltype(::cuptiActivityPopExternalCorrelationId)* pop;
  decltype(::cuptiGetTimestamp)* timestamp;
  decltype(::cuptiGetResultString)* result_text;

  explicit Functions(const SharedLibrary& library) {
    library.find("cuptiActivityRegisterCallbacks", register_callbacks);
    library.find("cuptiActivityEnable", enable);
    library.find("cuptiActivityDisable", disable);
    library.find("cuptiActivityFlushAll", flush);
    library.find("cuptiActivityGetNextRecord", next_record);
    library.find("cuptiActivityPushExternalCorrelationId", push);
    library.find("cuptiActivityPopExternalCorrelationId", pop);
    library.find("cuptiGetTimestamp", timestamp);
    library.find("cuptiGetResultString", result_text);
  }
};

std::string readable(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

class CuptiTrace : public KernelTrace {
 public:
  explicit CuptiTrace(HostClock::time_point start);
  ~CuptiTrace() override;
  void enter(std::int64_t owner) override {
    check(cupti_.push(kOwners, static_cast<std::uint64_t>(owner)), "cuptiActivityPushExternalCorrelationId");
  }
  void leave() override {
    std::uint64_t owner = 0;
    check(cupti_.pop(kOwners, &owner), "cuptiActivityPopExternalCorrelationId");
  }
  std::vector<DeviceActivity> take() override;
  void read(std::uint8_t* buffer, std::size_t bytes);  // in CUPTI's thread

 private:
  // CUPTI's clock and the host's at one moment.
  struct Moment {
    double cupti = 0, run = 0;  // ns
  };
  struct Found {
    DeviceActivity activity;  // times on CUPTI's clock
    std::uint32_t call = 0;
  };

  void check(CUptiResult result, const char* call) const;
  Moment moment() const;
  void read(const CUpti_Activity* record);
  void keep(std::string name, std::uint64_t from, std::uint64_t to, std::uint32_t stream, std::uint32_t call);

  SharedLibrary library_;
  Functions cupti_;
  HostClock::time_point start_;
  Moment first_;
  std::mutex mutex_;
  std::vector<Found> found_;
  std::map<std::uint32_t, std::int64_t> owners_;  // by call
};

std::mutex open_mutex;
CuptiTrace* open_trace = nullptr;

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBuffer));
  *size = *buffer == nullptr ? 0 : kBuffer;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                               std::size_t valid) {
  {
    std::lock_guard lock(open_mutex);
    if (open_trace != nullptr) open_trace->read(buffer, valid);
  }
  std::free(buffer);
}

CuptiTrace::CuptiTrace(HostClock::time_point start)
    : library_({"libcupti.so." + std::to_string(CUDART_VERSION / 1000),
                "/usr/local/cuda/lib64/libcupti.so." + std::to_string(CUDART_VERSION / 1000),
                "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so." + std::to_string(CUDART_VERSION / 1000)}),
      cupti_(library_),
      start_(start) {
  {
    std::lock_guard lock(open_mutex);
    CHECK(open_trace == nullptr, "two traces of kernels at a time");
    open_trace = this;
  }
  try {
    check(cupti_.register_callbacks(buffer_requested, buffer_completed), "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kKinds) check(cupti_.enable(kind), "cuptiActivityEnable");
    first_ = moment();
  } catch (...) {
    std::lock_guard lock(open_mutex);
    open_trace = nullptr;
    throw;
  }
}

CuptiTrace::~CuptiTrace() {
  for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::lock_guard lock(open_mutex);
  open_trace = nullptr;
}

void CuptiTrace::check(CUptiResult result, const char* call) const {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  if (cupti_.result_text(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "an unknown result";
  throw run_error(std::string("CUPTI: ") + call + ": " + text);
}

// Of a few readings, the one that took least.
CuptiTrace::Moment CuptiTrace::moment() const {
  Moment best;
  auto shortest = HostClock::duration::max();
  for (int i = 0; i < 9; ++i) {
    std::uint64_t stamp = 0;
    const auto before = HostClock::now();
    check(cupti_.timestamp(&stamp), "cuptiGetTimestamp");
    const auto took = HostClock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    const std::chrono::duration<double, std::nano> run = before + took / 2 - start_;
    best = {static_cast<double>(stamp), run.count()};
  }
  return best;
}

// Clocks that drift apart are laid on each other at both ends.
std::vector<DeviceActivity> CuptiTrace::take() {
  check(cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const Moment last = moment();
  const double slope = (last.run - first_.run) / (last.cupti - first_.cupti);
  const auto on_run = [&](Time stamp) {
    const double run = first_.run + (static_cast<double>(stamp.ns) - first_.cupti) * slope;
    return Time{std::max<std::int64_t>(0, static_cast<std::int64_t>(run))};
  };
  std::lock_guard lock(mutex_);
  std::vector<DeviceActivity> all;
  for (Found& found : found_) {
    const auto owner = owners_.find(found.call);
    if (owner != owners_.end()) found.activity.owner = owner->second;
    found.activity.start = on_run(found.activity.start);
    found.activity.end = on_run(found.activity.end);
    all.push_back(std::move(found.activity));
  }
  found_.clear();
  owners_.clear();
  std::sort(all.begin(), all.end(),
            [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
  return all;
}

void CuptiTrace::read(std::uint8_t* buffer, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer, bytes, &record) == CUPTI_SUCCESS) read(record);
}

void CuptiTrace::read(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
    keep(readable(kernel->name), kernel->start, kernel->end, kernel->streamId, kernel->correlationId);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CopyRecord*>(record);
    keep("copy", copy->start, copy->end, copy->streamId, copy->correlationId);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* fill = reinterpret_cast<const FillRecord*>(record);
    keep("fill", fill->start, fill->end, fill->streamId, fill->correlationId);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto* owner = reinterpret_cast<const OwnerRecord*>(record);
    if (owner->externalKind == kOwners)
      owners_[owner->correlationId] = static_cast<std::int64_t>(owner->externalId);
  }
}

void CuptiTrace::keep(std::string name, std::uint64_t from, std::uint64_t to, std::uint32_t stream,
                      std::uint32_t call) {
  if (from == 0 || to < from) return;  // CUPTI could not tell the time
  const Time start{static_cast<std::int64_t>(from)}, end{static_cast<std::int64_t>(to)};
  found_.push_back({{-1, std::move(name), start, end, stream}, call});
}

}  // namespace

std::unique_ptr<KernelTrace> open_kernel_trace(HostClock::time_point start) {
  return std::make_unique<CuptiTrace>(start);
}

}  // namespace moebius::cuda

#else

namespace moebius::cuda {

std::unique_ptr<KernelTrace> open_kernel_trace(HostClock::time_point) {
  throw run_error("CUPTI: this moebius was built without its headers");
}

}  // namespace moebius::cuda

#endif
