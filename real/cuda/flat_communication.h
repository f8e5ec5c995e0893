// Collectives over flat shards: of tensors that stand whole with every member, of tensors of which each
// member holds its shard, and of sums that travel in 8 bits. And the copies between a device and its host.
#pragma once

#include <optional>
#include <vector>

#include "real/cuda/communication_member.h"
#include "real/cuda/near_copy.h"
#include "real/host/op_context.h"

namespace moebius::cuda {

class FlatCommunication : protected CommunicationMember {
 public:
  using CommunicationMember::CommunicationMember;

 protected:
  // Elements of what a member brought, where this device reads them.
  struct Flat {
    Operand of;
    std::int64_t first;
  };
  Flat flat(const Operand& x, int device, std::int64_t first, std::int64_t count);
  Operand near(const Operand& x, int device);

  FlatShard shard(std::int64_t elements, int index) const { return flat_shard(elements, size_, index); }

  // NCCL keeps to one format, and cuts into equal shards. `whole`: what is cut.
  bool nccl_takes(const Operand& whole, const Operand& other) const {
    return by_nccl() && whole.storage == other.storage && whole.elements() % size_ == 0;
  }

  // y[y_first...] = the sum over members of the own flat shard of x, whose elements take so many bytes on the
  // wire.
  struct Reduction {
    Operand x, y;
    std::int64_t y_first = 0;
    double element = 0;
  };
  // In one meeting: many small tensors would meet for longer than they are summed.
  void reduce(const std::vector<Reduction>& all);

  // Fills the other members' flat shards of y; with `brought`, a shard alone, also the own one.
  struct Gathering {
    Operand y;
    double element = 0;
    std::optional<Operand> brought = {};
    const Operand& source() const { return brought ? *brought : y; }
  };
  void gather(const std::vector<Gathering>& all);  // in one meeting

  // A run of elements as one row, which is scaled by 128 of them.
  static Operand run_of(const Operand& x, std::int64_t first, std::int64_t count) {
    Operand run = x;
    run.data = byte_at(x, first);
    run.rows = 1;
    run.columns = run.period = count;
    return run;
  }

  double element_of(int i) { return element_bytes(c_.output_tensor(i).dtype); }
  bool travels_in_8_bits(int i) {
    return c_.op().dtype == DType::kFp8 && c_.output_tensor(i).dtype != DType::kFp8;
  }

  Operand codes_of(const Operand& x, const FlatShard& run);

  // y[y_first...] = the sum over members of the own shard of x; each shard travels in 8 bits.
  void reduce_codes(const Operand& x, const Operand& y, std::int64_t y_first);

  // All members, this one included, get what the codes of a shard say.
  void gather_codes(const Operand& y);

  // Whether the op is about tensors of which each member holds a shard.
  bool sharded() {
    const Op& op = c_.op();
    return op.num_inputs > 0 && (c_.input_tensor(0).shards > 0 || c_.output_tensor(0).shards > 0);
  }

  // Input i is whole, output i the member's shard, to which the sum is added.
  void add_to_shards();

  // Input i is the member's shard, output i whole.
  void gather_shards();

  // Of what members brought as this operand.
  void sum_shards(const Reduction& one, std::size_t operand, const All& members);
  void copy_shards(const Gathering& one, std::size_t operand, const All& members);

  void all_reduce();
  void reduce_scatter();
  void all_gather();

  // Between the memories of one rank: the bytes as they are. States that no update has made yet are none: the
  // first update begins them.
  void copy_host();

 private:
  // Of what changes in place: what travels in 8 bits tensor by tensor, by reduce_coded(x); the others.
  template <class ReduceCoded>
  std::vector<Gathering> edited(const ReduceCoded& reduce_coded);
  Reduction in_its_place(const Gathering& of) const;
  void sum_by_nccl(const Operand& x, const Gathering& to);
};

}  // namespace moebius::cuda
