#include "real/cuda/communication_member.h"

#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/near_copy.h"

namespace moebius::cuda {
namespace {

std::int64_t bytes_of(const std::vector<NcclPiece>& pieces) {
  std::int64_t bytes = 0;
  for (const NcclPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

}  // namespace

CommunicationMember::CommunicationMember(DeviceOp& op, DeviceExchange& exchange, Nccl* nccl)
    : c_(op),
      exchange_(exchange),
      me_(op.index_in(op.op().group)),
      size_(op.size_of(op.op().group)),
      element_(element_bytes(op.op().dtype)),
      nccl_(nccl) {
  key_.ranks = op.group(op.op().group).ranks;
  if (key_.ranks.empty()) key_.ranks = {op.rank().rank};
  key_.group = static_cast<int>(op.op().group);
  key_.step = op.submission().step;
  key_.microbatch = op.submission().meeting_microbatch(op.op());
  key_.match = op.op().match;
  group_.lane = key_.group;
  for (const std::int32_t rank : key_.ranks) group_.devices.push_back(op.rank().device_of(rank));
  const std::set<int> distinct(group_.devices.begin(), group_.devices.end());
  if (size_ == 1 || static_cast<int>(distinct.size()) < size_) nccl_ = nullptr;
}

std::string CommunicationMember::describe_op() const {
  return fmt::format("{} of {} (step {}, microbatch {}, layer {}, {} group)", to_string(c_.op().kind),
                     c_.submission().fragment->name, c_.submission().step,
                     c_.submission().microbatch_of(c_.op()), c_.op().layer, to_string(c_.op().group));
}

Caller CommunicationMember::caller() const {
  return {c_.rank().rank, me_, fmt::format("rank {} in {}", c_.rank().rank, describe_op())};
}

void CommunicationMember::expect(std::int64_t found, std::int64_t expected) const {
  if (found == expected) return;
  throw run_error(fmt::format("{}: another member brings {} elements where {} are expected", describe_op(),
                              found, expected));
}

void CommunicationMember::expect_few_members() const {
  if (size_ <= kMostMembers) return;
  throw run_error(
      fmt::format("{}: {} members; cuda sums over {} at most", describe_op(), size_, kMostMembers));
}

void CommunicationMember::begin(const All& all) {
  for (int member = 0; member < size_; ++member) {
    if (member != me_) wait(c_.stream(), all[member]->ready);
  }
  if (key_.round == 0) c_.issued().met = c_.mark();
}

void CommunicationMember::collect(NcclKind kind, const void* from, const Operand& to, std::int64_t first,
                                  std::int64_t count) {
  NcclCall call;
  call.kind = kind;
  call.storage = to.storage;
  call.from = from;
  call.to = byte_at(to, first);
  call.count = count;
  meet_by_nccl(std::move(call));
}

void CommunicationMember::swap_pieces(PiecesByMember give, PiecesByMember take) {
  NcclCall call;
  call.give = std::move(give);
  call.take = std::move(take);
  meet_by_nccl(std::move(call));
}

// Every member's operands are touched on its own stream alone: nobody waits for readers afterwards. Sizes
// that differ would hang NCCL's kernels, so that they are compared before.
void CommunicationMember::meet_by_nccl(NcclCall call) {
  call.stream = c_.stream();
  Brought mine;
  mine.ready = c_.mark();
  mine.device = here();
  mine.nccl = &call;
  const auto agree = [&](const All& all) {
    begin(all);
    for (int member = 0; member < size_; ++member) {
      const NcclCall* other = all[member]->nccl;
      if (other == nullptr || other->kind != call.kind || other->storage != call.storage)
        throw run_error(fmt::format("{}: another member exchanges in another way", describe_op()));
      expect(other->count, call.count);
      if (call.kind != NcclKind::kSwap || member == me_) continue;
      if (other->give[me_].size() != call.take[member].size() ||
          bytes_of(other->give[me_]) != bytes_of(call.take[member]))
        throw run_error(fmt::format("{}: another member brings {} bytes where {} are expected", describe_op(),
                                    bytes_of(other->give[me_]), bytes_of(call.take[member])));
    }
    return EventRef();
  };
  exchange_.meet(key_, caller(), mine, agree, [this](const All& all) {
    std::vector<const NcclCall*> calls;
    for (const Brought* brought : all) calls.push_back(brought->nccl);
    nccl_->issue(group_, calls);
  });
  ++key_.round;
}

Operand CommunicationMember::on_the_wire(const Operand& x) {
  const Storage storage = storage_of(c_.op().dtype);
  if (x.storage == storage) return x;
  const Operand wire = c_.scratch(x.rows, x.columns, storage);
  is_scaled(storage) ? quantise(c_.stream(), c_.plain(x), wire) : convert(c_.stream(), x, wire);
  return wire;
}

std::vector<Operand> CommunicationMember::parts() {
  std::vector<Operand> all{on_the_wire(c_.in(0))};
  for (int part = 1; part < c_.op().num_inputs; ++part) all.push_back(c_.plain_in(part));
  return all;
}

double CommunicationMember::bytes_of_part(int part) const {
  return part == 0 ? element_ : element_bytes(c_.output_tensor(part).dtype);
}

std::vector<NcclPiece> pieces_of_rows(const Operand& x, std::int64_t first, std::int64_t rows) {
  CHECK(!is_scaled(x.storage) || x.storage == Storage::kFp8Rows, "rows of a matrix whose scales span rows");
  std::vector<NcclPiece> pieces{{byte_at(x, first * x.columns), rows * x.columns * element_size(x.storage)}};
  if (x.storage != Storage::kFp8Rows) return pieces;
  const std::int64_t width = blocks_of(x.columns);
  pieces.push_back(
      {x.scales + (x.first_row + first) * width, rows * width * static_cast<std::int64_t>(sizeof(float))});
  return pieces;
}

}  // namespace moebius::cuda
