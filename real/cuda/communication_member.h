// What every communication op on a device is made of: its group, its meetings, what it has sent, and whether
// NCCL does the work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "real/cuda/device_exchange.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {

class CommunicationMember {
 public:
  // `nccl` may be null.
  CommunicationMember(DeviceOp& op, DeviceExchange& exchange, Nccl* nccl);

 protected:
  using All = DeviceExchange::All;

  std::string describe_op() const;
  Caller caller() const;
  void expect(std::int64_t found, std::int64_t expected) const;
  void expect_few_members() const;  // as many as a sum takes
  void count_sent(std::int64_t elements, double bytes_each) {
    c_.issued().sent_bytes += static_cast<double>(elements) * bytes_each;
  }

  int here() const { return c_.rank().device; }
  bool is_near(int member) const { return c_.rank().device_of(key_.ranks[member]) == here(); }

  // Meets the others: `take` reads what they brought, after which the own operands may change again.
  template <class Take>
  void meet(std::vector<Operand> operands, const DeviceRoute* route, const Take& take) {
    meet_with({std::move(operands), route, {}, here()}, take);
  }
  template <class Take>
  void meet_with(Brought mine, const Take& take) {
    mine.ready = c_.mark();
    const auto events = exchange_.meet(key_, caller(), mine, [&](const All& all) {
      begin(all);
      take(all);
      return c_.mark();
    });
    for (int member = 0; member < size_; ++member) {
      if (member != me_ && events[member]) wait(c_.stream(), events[member].get());
    }
    ++key_.round;
  }

  // Whether NCCL is there and has a device for each member of the group. The same for all members.
  bool by_nccl() const { return nccl_ != nullptr; }
  // A collective of `kind`: count as NcclCall has it, `from` and `to` the first elements of one format.
  void collect(NcclKind kind, const void* from, const Operand& to, std::int64_t first, std::int64_t count);
  // Pieces to and from the others; what is at home stays to the caller. By member.
  using PiecesByMember = std::vector<std::vector<NcclPiece>>;
  void swap_pieces(PiecesByMember give, PiecesByMember take);
  PiecesByMember no_pieces() const { return PiecesByMember(size_); }

  // Gradients and weights are reduced and gathered where they stand.
  bool in_place() const { return c_.op().num_outputs > 0 && c_.input_id(0) == c_.output_id(0); }

  // x in the format of the payload; itself when it is.
  Operand on_the_wire(const Operand& x);
  // What a routed exchange carries: the rows, and the weights that may travel with them in a format of their
  // own.
  std::vector<Operand> parts();
  double bytes_of_part(int part) const;

  DeviceOp& c_;
  DeviceExchange& exchange_;
  MeetingKey key_;
  int me_, size_;
  double element_;  // bytes on the wire

 private:
  void begin(const All& all);
  void meet_by_nccl(NcclCall call);

  Nccl* nccl_;  // null: own copies
  NcclGroup group_;
};

// Codes and scales of `rows` rows of a matrix from row `first` on, which scales by row or not at all.
std::vector<NcclPiece> pieces_of_rows(const Operand& x, std::int64_t first, std::int64_t rows);

}  // namespace moebius::cuda
