// Collectives between devices by NCCL, opened at run time. The ranks of one process are its users: one thread
// gives the work of all members of a group to their streams at once, so that no member's kernel waits for one
// that has not been launched, and every device gets the kernels of NCCL in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"

namespace moebius::cuda {

struct NcclComm;

// NCCL's functions in use and the values of its enumerations (nccl.h of NCCL 2: its binary interface has kept
// them). A communicator is an NcclComm*, a result is 0 or an error, a stream is CUDA's.
struct NcclFunctions {
  int (*version)(int* version) = nullptr;
  const char* (*error_text)(int result) = nullptr;
  int (*init_all)(NcclComm** comms, int count, const int* devices) = nullptr;
  int (*destroy)(NcclComm* comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, NcclComm*, Stream) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, NcclComm*, Stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int type, NcclComm*, Stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclComm*, Stream) = nullptr;
  int (*send)(const void*, std::size_t, int type, int peer, NcclComm*, Stream) = nullptr;
  int (*receive)(void*, std::size_t, int type, int peer, NcclComm*, Stream) = nullptr;
};
inline constexpr int kNcclSum = 0, kNcclUint8 = 1, kNcclFloat32 = 7, kNcclBfloat16 = 9;

// Those of the library that is linked in or found at run time. run_error when there is none.
NcclFunctions open_nccl_functions();

enum class NcclKind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSwap };

struct NcclPiece {
  void* data;
  std::int64_t bytes;
};

// What one member asks for. Its operands stand on its device, where the stream is too.
struct NcclCall {
  NcclKind kind = NcclKind::kSwap;
  Stream stream = nullptr;
  Storage storage = Storage::kFp32;  // FP32 or BF16
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t count = 0;  // elements: all; of a reduce-scatter or an all-gather those of a shard
  // Of a swap, by member: pieces that go there, pieces that come from there, the same number and sizes at
  // both ends. What stays with the member is not NCCL's.
  std::vector<std::vector<NcclPiece>> give = {}, take = {};
};

// Members of a group: one device each, in group order. `lane` keeps groups on the same devices apart, whose
// work one communicator would put in a row.
struct NcclGroup {
  int lane = 0;
  std::vector<int> devices;
  auto operator<=>(const NcclGroup&) const = default;
};

class Nccl {
 public:
  explicit Nccl(const NcclFunctions& functions) : f_(functions) {}
  ~Nccl();  // waits for what the devices still do
  Nccl(const Nccl&) = delete;

  // Gives one call for each member to the members' streams. The first one of a group makes its communicators,
  // which takes seconds. run_error with the call and NCCL's words. Any thread.
  void issue(const NcclGroup& group, const std::vector<const NcclCall*>& calls);
  std::string description() const;  // "NCCL 2.28.9"
  std::int64_t issued() const;      // calls of issue() that succeeded

 private:
  using Comms = std::vector<NcclComm*>;  // by member
  const Comms& communicators(const NcclGroup& group);
  int give(const NcclCall& call, NcclComm* comm) const;
  int swap(const NcclCall& call, NcclComm* comm) const;
  void check(int result, const char* call) const;

  const NcclFunctions f_;
  mutable std::mutex mutex_;
  std::map<NcclGroup, Comms> made_;
  std::int64_t issued_ = 0;
};

// Null, with the reason, when the library is not there.
std::unique_ptr<Nccl> open_nccl(std::string& reason);

}  // namespace moebius::cuda
