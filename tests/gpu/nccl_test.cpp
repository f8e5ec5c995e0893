// NCCL's collectives on all devices that are there (a real machine with one GPU: one rank), against sums on
// the host.
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "real/cuda/kernels.h"
#include "real/cuda/tolerances.h"
#include "tests/gpu/device_tests.h"
#include "tests/gpu/rehearsed_devices.h"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kShard = 100;

// One value, from `member`: neither whole nor equal in any two places, of both signs.
float value_of(int member, std::int64_t i) {
  const float value = std::sin(static_cast<float>(37 * member + i + 1));
  return from_bf16(to_bf16(value));  // exact in both formats
}

// A stream and two arrays for each device.
class Ranks {
 public:
  Ranks(int count, Storage storage) : storage_(storage), size_(count * kShard) {
    for (int device = 0; device < count; ++device) {
      use_device(device);
      const auto bytes = static_cast<std::size_t>(size_ * element_size(storage));
      calls.push_back(
          {.stream = make_stream(), .storage = storage, .from = allocate(bytes), .to = allocate(bytes)});
      group.devices.push_back(device);
      upload(device);
    }
  }
  ~Ranks() {
    for (int device = 0; device < count(); ++device) {
      use_device(device);
      destroy(calls[device].stream);
      release(const_cast<void*>(calls[device].from));
      release(calls[device].to);
    }
    use_device(0);
  }
  Ranks(const Ranks&) = delete;

  int count() const { return static_cast<int>(calls.size()); }
  void run(Nccl& nccl, NcclKind kind, std::int64_t elements) {
    std::vector<const NcclCall*> all;
    for (NcclCall& call : calls) {
      call.kind = kind;
      call.count = elements;
      all.push_back(&call);
    }
    nccl.issue(group, all);
  }
  std::vector<float> result(int device, std::int64_t elements) {
    use_device(device);
    std::vector<char> bytes(static_cast<std::size_t>(elements * element_size(storage_)));
    copy_to_host(calls[device].stream, bytes.data(), calls[device].to, bytes.size());
    synchronise(calls[device].stream);
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements; ++i) values.push_back(read(bytes.data(), i));
    return values;
  }

  std::vector<NcclCall> calls;
  NcclGroup group;

 private:
  void upload(int device) {
    std::vector<float> values;
    std::vector<std::uint16_t> halves;
    for (std::int64_t i = 0; i < size_; ++i) values.push_back(value_of(device, i));
    for (const float value : values) halves.push_back(to_bf16(value));
    const void* from = storage_ == Storage::kFp32 ? static_cast<void*>(values.data()) : halves.data();
    copy_to_device(calls[device].stream, const_cast<void*>(calls[device].from), from,
                   static_cast<std::size_t>(size_ * element_size(storage_)));
    synchronise(calls[device].stream);
  }
  float read(const char* bytes, std::int64_t i) const {
    if (storage_ == Storage::kFp32) return reinterpret_cast<const float*>(bytes)[i];
    return from_bf16(reinterpret_cast<const std::uint16_t*>(bytes)[i]);
  }

  Storage storage_;
  std::int64_t size_;
};

void check_sum(float found, int members, std::int64_t i, Storage storage) {
  double sum = 0, magnitudes = 0;
  for (int member = 0; member < members; ++member) {
    sum += value_of(member, i);
    magnitudes += std::abs(value_of(member, i));
  }
  CHECK(std::abs(found - sum) <= nccl_sum_error(storage, members) * magnitudes);
}

#define NEEDS_NCCL(library, reason)       \
  NEEDS_DEVICE();                         \
  std::string reason;                     \
  const auto library = open_nccl(reason); \
  if (library == nullptr) {               \
    WARN("skipped: " << reason);          \
    return;                               \
  }                                       \
  static_cast<void>(0)

}  // namespace

TEST_CASE("NCCL sums to all, and to shards, as the host within its tolerance") {
  const Devices rehearsed(3);
  NEEDS_NCCL(nccl, reason);
  CHECK(nccl->description().find("NCCL 2.") == 0);
  const int count = static_cast<int>(open_devices().size());
  for (const Storage storage : {Storage::kFp32, Storage::kBf16}) {
    Ranks ranks(count, storage);
    ranks.run(*nccl, NcclKind::kAllReduce, count * kShard);
    for (int member = 0; member < count; ++member) {
      const std::vector<float> found = ranks.result(member, count * kShard);
      for (std::int64_t i = 0; i < count * kShard; ++i) check_sum(found[i], count, i, storage);
    }
    ranks.run(*nccl, NcclKind::kReduceScatter, kShard);
    for (int member = 0; member < count; ++member) {
      const std::vector<float> found = ranks.result(member, kShard);
      for (std::int64_t i = 0; i < kShard; ++i) check_sum(found[i], count, member * kShard + i, storage);
    }
  }
}

TEST_CASE("NCCL gathers shards and broadcasts the first member's") {
  const Devices rehearsed(3);
  NEEDS_NCCL(nccl, reason);
  const int count = static_cast<int>(open_devices().size());
  Ranks ranks(count, Storage::kBf16);
  ranks.run(*nccl, NcclKind::kAllGather, kShard);
  for (int member = 0; member < count; ++member) {
    const std::vector<float> found = ranks.result(member, count * kShard);
    for (std::int64_t i = 0; i < count * kShard; ++i)
      CHECK(found[i] == value_of(static_cast<int>(i / kShard), i % kShard));
  }
  ranks.run(*nccl, NcclKind::kBroadcast, kShard);
  for (int member = 0; member < count; ++member) CHECK(ranks.result(member, kShard)[7] == value_of(0, 7));
}

TEST_CASE("NCCL swaps pieces of different sizes, and none where a piece is empty") {
  const Devices rehearsed(3);
  NEEDS_NCCL(nccl, reason);
  const int count = static_cast<int>(open_devices().size());
  Ranks ranks(count, Storage::kFp32);
  const auto size = [](int from, int to) { return 20 * from + 10 * to - 10; };  // none from 0 to 1
  for (int me = 0; me < count; ++me) {
    NcclCall& call = ranks.calls[me];
    call.give.resize(count), call.take.resize(count);
    for (int peer = 0; peer < count; ++peer) {
      if (peer == me) continue;
      call.give[peer] = {
          {static_cast<float*>(const_cast<void*>(call.from)) + peer * kShard, 4 * size(me, peer)}};
      call.take[peer] = {{static_cast<float*>(call.to) + peer * kShard, 4 * size(peer, me)}};
    }
  }
  ranks.run(*nccl, NcclKind::kSwap, 0);
  for (int me = 0; me < count; ++me) {
    const std::vector<float> found = ranks.result(me, count * kShard);
    for (int peer = 0; peer < count; ++peer) {
      for (int i = 0; peer != me && i < size(peer, me); ++i)
        CHECK(found[peer * kShard + i] == value_of(peer, me * kShard + i));
    }
  }
}

TEST_CASE("a group with two members on one device is refused in a sentence") {
  const Devices rehearsed(1);
  NEEDS_NCCL(nccl, reason);
  Ranks ranks(1, Storage::kFp32);
  ranks.group.devices = {0, 0};
  const std::vector<const NcclCall*> calls = {&ranks.calls[0], &ranks.calls[0]};
  CHECK_THROWS_WITH(nccl->issue(ranks.group, calls), Catch::Contains("NCCL: ncclCommInitAll: "));
}

}  // namespace moebius::cuda
