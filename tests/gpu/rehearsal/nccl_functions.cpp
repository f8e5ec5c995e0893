// NCCL for rehearsed devices, as its documentation states it: what a group of calls asks for becomes one
// piece of work on the stream of each rank, which waits there until those of all ranks run, as NCCL's kernels
// do. Sums begin at another member for each shard and round every partial sum to the format that travels.
// Where NCCL would hang or write wrong numbers, calls of members that do not fit together, the rehearsal
// ends.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "hw/error.h"
#include "real/cuda/nccl.h"
#include "tests/gpu/rehearsal/between_devices.h"

namespace moebius::cuda {

struct Clique {
  std::vector<int> devices;
};
struct NcclComm {
  std::shared_ptr<Clique> clique;
  int rank;
};

namespace {

constexpr int kInvalidUsage = 5, kInvalidArgument = 4;

void demand(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "rehearsed NCCL: %s\n", rule);
  std::abort();
}

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

struct Call {
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;
  int type, peer;
};

// The calls of a group in one communicator, by rank.
struct Batch {
  std::shared_ptr<Clique> clique;
  std::vector<std::vector<Call>> calls;
  std::vector<Stream> streams;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t arrived = 0;
  bool done = false;
};

thread_local int depth = 0;
thread_local std::map<Clique*, std::shared_ptr<Batch>> open_batches;

std::size_t size_of(int type) {
  return type == kNcclFloat32 ? 4 : type == kNcclBfloat16 ? 2 : 1;
}

float load_at(const void* from, std::size_t i, int type) {
  if (type == kNcclFloat32) return static_cast<const float*>(from)[i];
  return from_bf16(static_cast<const std::uint16_t*>(from)[i]);
}
void store_at(void* to, std::size_t i, int type, float value) {
  if (type == kNcclFloat32) {
    static_cast<float*>(to)[i] = value;
  } else {
    static_cast<std::uint16_t*>(to)[i] = to_bf16(value);
  }
}
float rounded(float value, int type) {
  return type == kNcclFloat32 ? value : from_bf16(to_bf16(value));
}

void* at(void* to, std::size_t i, int type) {
  return static_cast<char*>(to) + i * size_of(type);
}

using Calls = std::vector<Call>;  // of one collective, by rank

// Element i of the sum, begun at the member behind the one whose shard it is in.
float sum_at(const Calls& calls, std::size_t i, std::size_t shard) {
  const std::size_t members = calls.size(), first = i / std::max<std::size_t>(1, shard) + 1;
  float sum = 0;
  for (std::size_t k = 0; k < members; ++k) {
    const Call& c = calls[(first + k) % members];
    sum = k == 0 ? load_at(c.from, i, c.type) : rounded(sum + load_at(c.from, i, c.type), c.type);
  }
  return sum;
}

std::vector<float> sums(const Calls& calls, std::size_t count, std::size_t shard) {
  std::vector<float> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(sum_at(calls, i, shard));
  return all;
}

void collect(const Calls& calls) {
  const Call& c = calls[0];
  const std::size_t members = calls.size(), bytes = c.count * size_of(c.type);
  for (const Call& other : calls)
    demand(other.kind == c.kind && other.count == c.count && other.type == c.type, "members differ");
  if (c.kind == Kind::kAllReduce || c.kind == Kind::kReduceScatter) {
    const bool scatters = c.kind == Kind::kReduceScatter;
    const std::size_t count = scatters ? c.count * members : c.count;
    const std::vector<float> all = sums(calls, count, count / members);
    for (std::size_t rank = 0; rank < members; ++rank) {
      for (std::size_t i = 0; i < c.count; ++i)
        store_at(calls[rank].to, i, c.type, all[scatters ? rank * c.count + i : i]);
    }
  } else if (c.kind == Kind::kAllGather) {
    for (std::size_t from = 0; from < members; ++from) {
      for (const Call& other : calls)
        std::memmove(at(other.to, from * c.count, c.type), calls[from].from, bytes);
    }
  } else {
    for (const Call& other : calls) std::memmove(other.to, calls[c.peer].from, bytes);
  }
}

// Sends and receives of a pair meet in the order of the calls.
void exchange(const std::vector<Calls>& by_rank) {
  std::map<std::pair<int, int>, std::deque<Call>> sent;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const Call& c : by_rank[rank]) {
      if (c.kind == Kind::kSend) sent[{static_cast<int>(rank), c.peer}].push_back(c);
    }
  }
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const Call& c : by_rank[rank]) {
      if (c.kind != Kind::kReceive) continue;
      std::deque<Call>& waiting = sent[{c.peer, static_cast<int>(rank)}];
      demand(!waiting.empty() && waiting.front().count == c.count && waiting.front().type == c.type,
             "a receive without its send");
      std::memcpy(c.to, waiting.front().from, c.count * size_of(c.type));
      waiting.pop_front();
    }
  }
  for (const auto& [pair, waiting] : sent) demand(waiting.empty(), "a send without its receive");
}

void execute(const Batch& batch) {
  std::vector<Calls> collectives, messages(batch.calls.size());
  for (std::size_t rank = 0; rank < batch.calls.size(); ++rank) {
    std::size_t number = 0;
    for (const Call& c : batch.calls[rank]) {
      if (c.kind == Kind::kSend || c.kind == Kind::kReceive) {
        messages[rank].push_back(c);
        continue;
      }
      if (collectives.size() == number) collectives.emplace_back();
      collectives[number++].push_back(c);
    }
  }
  for (const Calls& calls : collectives) {
    demand(calls.size() == batch.calls.size(), "a collective without all members");
    collect(calls);
  }
  exchange(messages);
}

void run_on_stream(Batch& batch) {
  std::unique_lock lock(batch.mutex);
  if (++batch.arrived == batch.calls.size()) {
    const std::vector<int>& devices = batch.clique->devices;
    touch({devices.begin(), devices.end()}, [&] { execute(batch); });
    batch.done = true;
    batch.changed.notify_all();
  }
  batch.changed.wait(lock, [&] { return batch.done; });
}

int add(NcclComm* comm, Stream stream, const Call& call) {
  if (depth == 0) return kInvalidUsage;  // one thread that called for one rank after the other would hang
  if (device_of(stream) != comm->clique->devices[comm->rank]) return kInvalidArgument;
  std::shared_ptr<Batch>& batch = open_batches[comm->clique.get()];
  if (!batch) {
    batch = std::make_shared<Batch>();
    batch->clique = comm->clique;
    batch->calls.resize(comm->clique->devices.size());
    batch->streams.resize(batch->calls.size());
  }
  Stream& known = batch->streams[comm->rank];
  demand(known == nullptr || known == stream, "two streams of a rank in one group");
  known = stream;
  batch->calls[comm->rank].push_back(call);
  return 0;
}

int init_all(NcclComm** comms, int count, const int* devices) {
  const auto clique = std::make_shared<Clique>(Clique{{devices, devices + count}});
  if (static_cast<int>(std::set<int>(devices, devices + count).size()) < count) return kInvalidUsage;
  for (int rank = 0; rank < count; ++rank) comms[rank] = new NcclComm{clique, rank};
  return 0;
}

int end_group() {
  if (--depth > 0) return 0;
  for (auto& [clique, batch] : open_batches) {
    // A rank without calls takes part in no message; execute() knows whether it should have.
    for (const Stream stream : batch->streams) batch->arrived += stream == nullptr;
    for (const Stream stream : batch->streams) {
      if (stream != nullptr) give(stream, [batch = batch] { run_on_stream(*batch); });
    }
  }
  open_batches.clear();
  return 0;
}

}  // namespace

NcclFunctions open_nccl_functions() {
  if (std::getenv("MOEBIUS_REHEARSED_WITHOUT_NCCL") != nullptr)
    throw run_error("none of libnccl.so.2 can be opened");
  NcclFunctions f;
  f.version = [](int* version) { return *version = 22809, 0; };
  f.error_text = [](int) { return "invalid usage"; };
  f.init_all = init_all;
  f.destroy = [](NcclComm* comm) { return delete comm, 0; };
  f.group_start = [] { return ++depth, 0; };
  f.group_end = end_group;
  f.all_reduce = [](const void* from, void* to, std::size_t count, int type, int, NcclComm* comm, Stream s) {
    return add(comm, s, {Kind::kAllReduce, from, to, count, type, 0});
  };
  f.reduce_scatter = [](const void* from, void* to, std::size_t count, int type, int, NcclComm* comm,
                        Stream s) {
    return add(comm, s, {Kind::kReduceScatter, from, to, count, type, 0});
  };
  f.all_gather = [](const void* from, void* to, std::size_t count, int type, NcclComm* comm, Stream s) {
    return add(comm, s, {Kind::kAllGather, from, to, count, type, 0});
  };
  f.broadcast = [](const void* from, void* to, std::size_t count, int type, int root, NcclComm* comm,
                   Stream s) {
    return add(comm, s, {Kind::kBroadcast, from, to, count, type, root});
  };
  f.send = [](const void* from, std::size_t count, int type, int peer, NcclComm* comm, Stream s) {
    return add(comm, s, {Kind::kSend, from, nullptr, count, type, peer});
  };
  f.receive = [](void* to, std::size_t count, int type, int peer, NcclComm* comm, Stream s) {
    return add(comm, s, {Kind::kReceive, nullptr, to, count, type, peer});
  };
  return f;
}

}  // namespace moebius::cuda
