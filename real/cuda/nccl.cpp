#include "real/cuda/nccl.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::cuda {
namespace {

int type_of(Storage storage) {
  CHECK(!is_scaled(storage), "NCCL adds no numbers with scales");
  return storage == Storage::kFp32 ? kNcclFloat32 : kNcclBfloat16;
}

}  // namespace

Nccl::~Nccl() {
  for (const auto& [group, comms] : made_) {
    for (NcclComm* comm : comms) f_.destroy(comm);
  }
}

void Nccl::check(int result, const char* call) const {
  if (result != 0) throw run_error(fmt::format("NCCL: {}: {}", call, f_.error_text(result)));
}

const Nccl::Comms& Nccl::communicators(const NcclGroup& group) {
  const auto found = made_.find(group);
  if (found != made_.end()) return found->second;
  Comms comms(group.devices.size());
  check(f_.init_all(comms.data(), static_cast<int>(comms.size()), group.devices.data()), "ncclCommInitAll");
  return made_.emplace(group, std::move(comms)).first->second;
}

void Nccl::issue(const NcclGroup& group, const std::vector<const NcclCall*>& calls) {
  CHECK(calls.size() == group.devices.size(), "one call for each member");
  std::lock_guard lock(mutex_);
  const Comms& comms = communicators(group);
  check(f_.group_start(), "ncclGroupStart");
  int result = 0;
  for (std::size_t member = 0; member < calls.size() && result == 0; ++member)
    result = give(*calls[member], comms[member]);
  const int end = f_.group_end();  // also after a refusal, which else would stay open in this thread
  check(result, "a call in a group");
  check(end, "ncclGroupEnd");
  ++issued_;
}

std::int64_t Nccl::issued() const {
  std::lock_guard lock(mutex_);
  return issued_;
}

int Nccl::give(const NcclCall& c, NcclComm* comm) const {
  const auto count = static_cast<std::size_t>(c.count);
  switch (c.kind) {
    case NcclKind::kAllReduce:
      return f_.all_reduce(c.from, c.to, count, type_of(c.storage), kNcclSum, comm, c.stream);
    case NcclKind::kReduceScatter:
      return f_.reduce_scatter(c.from, c.to, count, type_of(c.storage), kNcclSum, comm, c.stream);
    case NcclKind::kAllGather:
      return f_.all_gather(c.from, c.to, count, type_of(c.storage), comm, c.stream);
    case NcclKind::kBroadcast:
      return f_.broadcast(c.from, c.to, count, type_of(c.storage), 0, comm, c.stream);
    case NcclKind::kSwap:
      return swap(c, comm);
  }
  return 0;
}

// Both ends know a size, so that both leave out what is empty.
int Nccl::swap(const NcclCall& c, NcclComm* comm) const {
  int result = 0;
  for (std::size_t peer = 0; peer < c.give.size(); ++peer) {
    for (const NcclPiece& p : c.give[peer]) {
      if (p.bytes > 0 && result == 0)
        result = f_.send(p.data, static_cast<std::size_t>(p.bytes), kNcclUint8, static_cast<int>(peer), comm,
                         c.stream);
    }
    for (const NcclPiece& p : c.take[peer]) {
      if (p.bytes > 0 && result == 0)
        result = f_.receive(p.data, static_cast<std::size_t>(p.bytes), kNcclUint8, static_cast<int>(peer),
                            comm, c.stream);
    }
  }
  return result;
}

// Since 2.9 a version is 10000 * major + 100 * minor + patch.
std::string Nccl::description() const {
  int version = 0;
  check(f_.version(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<Nccl> open_nccl(std::string& reason) {
  try {
    return std::make_unique<Nccl>(open_nccl_functions());
  } catch (const Error& error) {
    reason = error.what();
    return nullptr;
  }
}

}  // namespace moebius::cuda
