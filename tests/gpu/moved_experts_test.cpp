// Experts that move between ranks, and caches that go from prefill to decode, on the device: a schedule that
// the host issued by its own clock, executed again.
#include <map>
#include <memory>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/cross/placed_service.h"
#include "tests/gpu/device_tests.h"
#include "tests/gpu/rehearsed_devices.h"
#include "workloads/crosscheck/recorded_run.h"

namespace moebius {
namespace {

// By rank and key: the weights of experts at the end.
using Weights = std::map<std::pair<int, std::uint32_t>, std::vector<float>>;

struct Lived {
  std::unique_ptr<Serving> serving;
  std::shared_ptr<RecordedSchedule> schedule = std::make_shared<RecordedSchedule>();
  Tokens tokens;
  Weights weights;
  double sent = 0;  // bytes, of everything
  std::int64_t moved = 0;
};

template <class SomeExecutor>
double sent_by(const SomeExecutor& executor) {
  double sent = 0;
  for (const Transfer& transfer : executor.transfers()) sent += transfer.sent_bytes;
  return sent;
}

// `exact`: nothing is rounded.
Lived live_on_host(const CarriedService& service, bool exact = false) {
  Lived lived;
  lived.serving = std::make_unique<Serving>(service);
  lived.schedule->layout = lived.serving->layout();
  Recorder recorder(lived.serving->layout(), {.detail = Detail::kNone});
  HostOptions options;
  options.seed = service.workload.seed;
  options.exact = exact;
  options.prompts = &lived.serving->prompts();
  HostExecutor<float> host(lived.serving->layout(), recorder, options);
  SlotLedger ledger(lived.serving->layout());
  ObservedWorkload observed(*lived.serving, [&](const Submission& of) {
    lived.schedule->submissions.push_back(of);
    ledger.issued(of);
  });
  execute(observed, host, recorder);
  ledger.commit();
  lived.moved = ledger.remote_arrivals();
  lived.tokens = lived.serving->generated(reader_of(host));
  ledger.for_each_slot([&](int rank, const Tensor& weight, std::size_t, std::int32_t) {
    lived.weights.try_emplace({rank, weight.key}, host.tensor(rank, weight.key));
  });
  lived.sent = sent_by(host);
  return lived;
}

// `alike`: the least share of requests that are answered as on the host.
void check_again_on_device(const Lived& lived, std::uint64_t seed, cuda::ExchangeBy exchange,
                           double alike = 1) {
  RecordedRun again(lived.schedule);
  Recorder recorder(again.layout(), {.detail = Detail::kNone});
  cuda::CudaOptions options{.seed = seed, .library_gemm = false, .exchange = exchange, .poison = true};
  options.prompts = &lived.serving->prompts();
  const auto device = make_cuda_executor(again.layout(), recorder, options);
  execute(again, *device, recorder);
  const Tokens answers =
      lived.serving->generated([&](int rank, std::uint32_t key) { return device->tensor(rank, key); });
  CHECK(share_of_equal(answers, lived.tokens) >= alike);
  int wrong = 0;
  for (const auto& [place, values] : lived.weights)
    wrong += device->tensor(place.first, place.second) != values;
  CHECK(wrong == 0);
  CHECK(sent_by(*device) == lived.sent);
}

CarriedService moving(DType gemm = DType::kBf16) {
  CarriedService service = placed_service(moving_experts());
  service.pools.front().plan.gemm = gemm;
  place(service.pools.front(), service);
  return service;
}

// With a seed whose tokens do not hang on rounding to BF16, which a device does in an order of its own.
CarriedService settled(CarriedService service) {
  while (live_on_host(service, true).tokens != live_on_host(service).tokens) ++service.workload.seed;
  return service;
}

}  // namespace

TEST_CASE("the device moves experts between ranks as the host does") {
  NEEDS_DEVICE();
  for (const DType gemm : {DType::kBf16, DType::kFp8}) {
    const bool coded = gemm == DType::kFp8;  // which no seed settles
    const CarriedService service = coded ? moving(gemm) : settled(moving(gemm));
    const Lived lived = live_on_host(service);
    REQUIRE(lived.moved > 0);
    check_again_on_device(lived, service.workload.seed, cuda::ExchangeBy::kOwn, coded ? 0.5 : 1);
  }
}

TEST_CASE("the device serves with prefill and decode apart while experts move on both sides") {
  NEEDS_DEVICE();
  const CarriedService service = settled(in_two_pools(moving()));
  const Lived lived = live_on_host(service);
  REQUIRE(lived.moved > 0);
  REQUIRE(lived.serving->system().transferred_bytes() > 0);
  check_again_on_device(lived, service.workload.seed, cuda::ExchangeBy::kOwn);
}

TEST_CASE("experts move between devices by own copies and by NCCL") {
  NEEDS_DEVICE();
  const Devices there(4);
  const CarriedService service = settled(moving());
  const Lived lived = live_on_host(service);
  REQUIRE(lived.moved > 0);
  for (const cuda::ExchangeBy exchange : {cuda::ExchangeBy::kOwn, cuda::ExchangeBy::kNccl})
    check_again_on_device(lived, service.workload.seed, exchange);
}

}  // namespace moebius
