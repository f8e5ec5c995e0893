// How fast the device's executor is beside what the device can do: products beside the library called
// directly, exchange between virtual ranks beside the device's own copies. Figures are shown, not judged;
// that the same work was done is checked.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "real/cuda/cuda_case.h"
#include "real/cuda/cuda_run.h"
#include "real/cuda/kernels_initial.h"
#include "tests/gpu/device_tests.h"
#include "workloads/job.h"

namespace moebius {
namespace {

bool rehearsed() {
  return cuda::open_device().major == 0;  // whose times say nothing
}

// Memory of the device for a matrix, and its stream's events.
class Direct {
 public:
  Direct() : stream_(cuda::make_stream()), from_(cuda::make_event()), to_(cuda::make_event()) {}
  ~Direct() {
    cuda::synchronise(stream_);
    for (void* memory : memory_) cuda::release(memory);
    cuda::destroy(from_), cuda::destroy(to_), cuda::destroy(stream_);
  }
  Direct(const Direct&) = delete;

  void* room(std::size_t bytes) {
    memory_.push_back(cuda::allocate(bytes));
    cuda::fill(stream_, memory_.back(), 0x3c, bytes);  // BF16: about 0.01
    return memory_.back();
  }
  // Random numbers: on equal ones the device draws less power and runs faster.
  cuda::Operand matrix(std::int64_t rows, std::int64_t columns) {
    const cuda::Operand x{.data = room(static_cast<std::size_t>(2 * rows * columns)),
                          .rows = rows,
                          .columns = columns,
                          .storage = cuda::Storage::kBf16};
    const InitialValues numbers{.parameter = memory_.size(), .scale = 1e-5, .rows = rows, .columns = columns};
    cuda::initial_values(stream_, numbers, {0, x.elements()}, x);
    return x;
  }
  // Seconds of one of `times` executions, given to the stream one after the other.
  template <class Give>
  double time(int times, const Give& give) {
    give();
    cuda::record(from_, stream_);
    for (int i = 0; i < times; ++i) give();
    cuda::record(to_, stream_);
    cuda::synchronise(to_);
    return cuda::elapsed(from_, to_).seconds() / times;
  }
  cuda::Stream stream() const { return stream_; }

 private:
  cuda::Stream stream_;
  cuda::Event from_, to_;
  std::vector<void*> memory_;
};

double time_directly(const Shape& shape, cuda::GemmLibrary& library, int times) {
  Direct direct;
  const cuda::Gemm product{.a = direct.matrix(shape.m, shape.k),
                           .b = direct.matrix(shape.n, shape.k),
                           .c = direct.matrix(shape.m, shape.n),
                           .b_transposed = true};
  void* workspace = direct.room(library.workspace_bytes());
  bool taken = true;
  const double seconds =
      direct.time(times, [&] { taken = library.multiply(direct.stream(), product, workspace) && taken; });
  CHECK((taken || rehearsed()));  // the library of the rehearsal reads 8 bits alone
  return seconds;
}

double time_executed(const Shape& shape, cuda::GemmLibrary& library, int times) {
  cuda::CudaCase one(operands_of({.kind = OpKind::kGemm, .shape = shape}), {}, &library);
  const cuda::IssuedOp first = one.issue();
  cuda::IssuedOp last = first;
  for (int i = 0; i < times; ++i) last = one.issue();
  cuda::synchronise(last.end.get());
  CHECK(one.output(0).size() == static_cast<std::size_t>(shape.m * shape.n));
  return cuda::elapsed(first.end.get(), last.end.get()).seconds() / times;
}

double copy_rate(std::size_t bytes) {
  Direct direct;
  void* from = direct.room(bytes);
  void* to = direct.room(bytes);
  return static_cast<double>(bytes) /
         direct.time(5, [&] { cuda::copy_on_device(direct.stream(), to, from, bytes); });
}

struct Meeting {
  Time start = kForever, end;
  double bytes = 0;
};

// Bytes a second of all ranks together, from the moment that all are there to the last one's end.
double exchange_rate(OpKind kind, const Timeline& timeline, const std::vector<Transfer>& transfers) {
  using Key = std::tuple<std::int32_t, std::int32_t, Phase, std::int32_t>;  // step, microbatch, phase, op
  std::map<Key, Meeting> meetings;
  std::map<std::pair<std::int32_t, std::int32_t>, double> sent;
  for (const Transfer& t : transfers) sent[{t.sequence, t.op}] = t.sent_bytes;
  std::map<std::pair<std::int32_t, std::int32_t>, OpRow> ops;
  for (const OpRow& row : timeline.ops) ops[{row.fragment, row.index}] = row;
  for (const Span& span : timeline.spans) {
    const SubmissionRow& from = timeline.submissions[static_cast<std::size_t>(span.sequence)];
    const OpRow& op = ops.at({from.fragment, span.op});
    if (op.kind != kind) continue;
    Meeting& meeting = meetings[{from.step, from.microbatch, op.phase, span.op}];
    meeting.start = std::min(meeting.start, span.transfer_start());
    meeting.end = std::max(meeting.end, span.end);
    meeting.bytes += sent.at({span.sequence, span.op});
  }
  double bytes = 0, seconds = 0;
  for (const auto& [key, meeting] : meetings) {
    bytes += meeting.bytes;
    seconds += (meeting.end - meeting.start).seconds();
  }
  REQUIRE(bytes > 0);
  return bytes / seconds;
}

}  // namespace

TEST_CASE("a BF16 product beside the library called directly") {
  NEEDS_DEVICE();
  std::string reason;
  const std::unique_ptr<cuda::GemmLibrary> library = cuda::open_gemm_library(reason);
  if (!library) {
    WARN("skipped: " << reason);
    return;
  }
  const std::vector<Shape> shapes = rehearsed() ? std::vector<Shape>{{.m = 16, .n = 32, .k = 48}}
                                                : std::vector<Shape>{{.m = 128, .n = 7168, .k = 2048},
                                                                     {.m = 4096, .n = 7168, .k = 2048},
                                                                     {.m = 8192, .n = 8192, .k = 8192}};
  for (const Shape& shape : shapes) {
    // The second of each: a board that has worked for a while runs at its power limit, not at full clock.
    double direct = 0, executed = 0;
    for (int i = 0; i < 2; ++i) {
      direct = time_directly(shape, *library, 50);
      executed = time_executed(shape, *library, 50);
    }
    CHECK(direct > 0);
    CHECK(executed > 0);
    if (!rehearsed())
      WARN(fmt::format("m {} n {} k {}: directly {:.1f} us, executed {:.1f} us, {:+.1f}%", shape.m, shape.n,
                       shape.k, direct * 1e6, executed * 1e6, 100 * (executed / direct - 1)));
  }
}

TEST_CASE("dispatch and combine beside the device's own copies") {
  NEEDS_DEVICE();
  Changes changes;
  changes.unfold = true;
  if (rehearsed())
    changes.sets = {"/model/hidden=64",        "/model/heads=4",           "/model/kv_heads=2",
                    "/model/head_dim=16",      "/model/experts/routed=16", "/model/experts/active=2",
                    "/model/experts/width=32", "/model/vocabulary=128",    "/workload/sequence_length=32"};
  changes.sets.emplace_back("/workload/steps=3");  // the first one makes room
  Job job = read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/ep-8.json", changes, Library(""));
  Recorder recorder(job.layout(), {.detail = Detail::kOps});
  const auto device = make_cuda_executor(job.layout(), recorder, {});
  execute(job.workload(), *device, recorder);
  const double copies = copy_rate(rehearsed() ? 4096 : std::size_t{256} << 20);
  for (const OpKind kind : {OpKind::kDispatch, OpKind::kCombine}) {
    const double rate = exchange_rate(kind, recorder.timeline(), device->transfers());
    CHECK(rate > 0);
    if (!rehearsed())
      WARN(fmt::format("{}: {:.0f} GB/s between 8 virtual ranks, {:.0f}% of a copy's {:.0f} GB/s",
                       to_string(kind), rate * 1e-9, 100 * rate / copies, copies * 1e-9));
  }
}

}  // namespace moebius
