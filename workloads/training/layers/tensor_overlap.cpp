#include "workloads/training/layers/tensor_overlap.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "workloads/training/layers/builder.h"
#include "workloads/training/layers/stated_waits.h"

namespace moebius {
namespace {

bool is_product(OpKind kind) {
  return kind == OpKind::kGemm || kind == OpKind::kGemmDgrad;
}

bool over_tensor_group(const Op& op) {
  return op.group == GroupRole::kTensor || op.group == GroupRole::kDenseTensor;
}

class OverlapWriter {
 public:
  OverlapWriter(const Fragment& whole, int chunks)
      : whole_(whole), chunks_(chunks), builder_(whole.name, whole.phase), waits_(whole) {
    for (const Tensor& tensor : whole.tensors) builder_.add(tensor);
    builder_.add_named_by_ops(whole);
    for (int i = 0; i < num_ops(); ++i) index(i);
  }

  Fragment write() {
    for (int i = 0; i < num_ops(); ++i) {
      if (!chained_.count(i)) find_chain(i);
    }
    for (const auto& [first, chain] : chains_) find_scale(chain);
    for (int i = 0; i < num_ops(); ++i) {
      if (const auto chain = chains_.find(i); chain != chains_.end()) {
        write_scale(chain->second);
        write_pieces(chain->second);
      } else if (!chained_.count(i)) {
        emit(whole_.ops[i], i);
      }
    }
    return builder_.fragment();
  }

 private:
  using Chain = std::vector<int>;  // ops that are cut alike, each reading what the one before wrote

  int num_ops() const { return static_cast<int>(whole_.ops.size()); }

  void index(int i) {
    const Op& op = whole_.ops[i];
    for (int j = 0; j < op.num_inputs; ++j) readers_[whole_.input(op, j)].push_back(i);
    for (int j = 0; j < op.num_outputs; ++j) writers_[whole_.output(op, j)].push_back(i);
  }

  // The chain is written where its first op stands.
  void find_chain(int i) {
    const Op& op = whole_.ops[i];
    if (op.kind == OpKind::kAllGather && over_tensor_group(op)) keep(chain_of_gather(i));
    if (op.kind == OpKind::kGemm) keep(chain_of_sum(i));
  }

  void keep(const Chain& chain) {
    if (chain.empty() || own_rows(chain) < 2 || waits_inside(chain)) return;
    chains_[chain.front()] = chain;
    chained_.insert(chain.begin(), chain.end());
  }

  // For an op that stands after the chain's first one, where all of the chain is written.
  bool waits_inside(const Chain& chain) const {
    for (const int i : chain)
      for (const std::int32_t before : waits_.of(i))
        if (before >= chain.front()) return true;
    return false;
  }

  Chain chain_of_gather(int gather) const {
    const std::int32_t gathered = whole_.output(whole_.ops[gather], 0);
    for (const int reader : readers_of(gathered)) {
      const Op& op = whole_.ops[reader];
      if (chained_.count(reader) || whole_.input(op, 0) != gathered) continue;
      if (is_product(op.kind) && ready_before(reader, gather)) return {gather, reader};
      if (op.kind != OpKind::kQuantise) continue;
      for (const int product : readers_of(whole_.output(op, 0))) {
        if (is_product(whole_.ops[product].kind) && ready_before(product, gather))
          return {gather, reader, product};
      }
    }
    return {};
  }

  // With the addition between them where a block's attention and MLP are one sum: behind the later product.
  Chain chain_of_sum(int product) const {
    Chain chain{product};
    for (int step = 0; step < 2; ++step) {
      const std::vector<int>& readers = readers_of(whole_.output(whole_.ops[chain.back()], 0));
      if (readers.size() != 1) return {};
      chain.push_back(readers.front());
      const Op& reader = whole_.ops[readers.front()];
      if (reader.kind == OpKind::kReduceScatter && over_tensor_group(reader)) return chain;
      if (!adds_parts(reader) || !is_written_last(product, reader)) return {};
    }
    return {};
  }

  static bool adds_parts(const Op& op) {
    return op.kind == OpKind::kAdd && op.role == Role::kResidual && op.num_inputs == 2 && op.shape.k == 0;
  }

  // Of what an op reads, what `writer` writes.
  bool is_written_last(int writer, const Op& op) const {
    for (int i = 0; i < op.num_inputs; ++i) {
      const auto writers = writers_.find(whole_.input(op, i));
      if (writers != writers_.end() && writers->second.back() > writer) return false;
    }
    return true;
  }

  // Nothing that the product reads beside its first operand is written after op `index`.
  bool ready_before(int product, int index) const {
    const Op& op = whole_.ops[product];
    for (int i = 1; i < op.num_inputs; ++i) {
      const auto writers = writers_.find(whole_.input(op, i));
      if (writers != writers_.end() && writers->second.front() > index) return false;
    }
    return true;
  }

  const std::vector<int>& readers_of(std::int32_t tensor) const {
    static const std::vector<int> kNone;
    const auto found = readers_.find(tensor);
    return found == readers_.end() ? kNone : found->second;
  }

  // Rows that are quantised by one scale for all of them: its magnitude is found before they are gathered.
  void find_scale(const Chain& chain) {
    if (chain.size() < 3) return;
    const Op &gather = whole_.ops[chain.front()], &cast = whole_.ops[chain[1]];
    if (cast.kind != OpKind::kQuantise || cast.num_inputs < 2) return;
    for (const int largest : writers_.at(whole_.input(cast, 1))) {
      if (whole_.input(whole_.ops[largest], 0) != whole_.output(gather, 0)) continue;
      chained_.insert(largest);
      scales_[chain.front()] = largest;
    }
  }

  // The largest magnitude of each member's own rows, of which the pieces' casts read all.
  void write_scale(const Chain& chain) {
    const auto found = scales_.find(chain.front());
    if (found == scales_.end()) return;
    const Op& gather = whole_.ops[chain.front()];
    const std::int64_t members = rows(gather, true) / rows(gather, false);
    Op largest = whole_.ops[found->second];
    largest.shape.m = rows(gather, false);
    begin(largest);
    const TensorId own = builder_.transient(1, 1, DType::kFp32, largest.role);
    builder_.emit(largest, {whole_.input(gather, 0)}, {own});
    Op meet = gather;
    meet.dtype = DType::kFp32;
    meet.match += static_cast<std::uint32_t>(chunks_) << kMatchBits;
    meet.shape = {.m = 1, .n = 1};
    meet.payload = {static_cast<double>(members) * element_bytes(DType::kFp32)};
    begin(meet);
    const TensorId all = builder_.transient(members, 1, DType::kFp32, largest.role);
    waits_.written(found->second, builder_.emit(meet, {own}, {all}));
    instead_[whole_.output(whole_.ops[found->second], 0)] = all;
  }

  std::int64_t rows(const Op& op, bool out) const {
    return whole_.tensors[out ? whole_.output(op, 0) : whole_.input(op, 0)].rows;
  }

  const Op& collective_of(const Chain& chain) const {
    const Op& first = whole_.ops[chain.front()];
    return is_communication(first.kind) ? first : whole_.ops[chain.back()];
  }

  std::int64_t own_rows(const Chain& chain) const {
    const Op& op = collective_of(chain);
    return std::min(rows(op, false), rows(op, true));
  }

  void write_pieces(const Chain& chain) {
    const Op& collective = collective_of(chain);
    const std::int64_t own = own_rows(chain);
    const std::int64_t members = std::max(rows(collective, false), rows(collective, true)) / own;
    const std::int64_t pieces = std::min<std::int64_t>(chunks_, own);
    for (std::int64_t c = 0; c < pieces; ++c) {
      const std::int64_t first = own * c / pieces, last = own * (c + 1) / pieces;
      for (const int i : chain) {
        Op piece = whole_.ops[i];
        const bool gather = piece.kind == OpKind::kAllGather;
        piece.shape.m = (last - first) * (gather ? 1 : members);
        piece.shape.groups = static_cast<std::int32_t>(members);
        piece.shape.kv = first;
        if (is_communication(piece.kind)) {
          piece.match += static_cast<std::uint32_t>(c) << kMatchBits;
          piece.units = piece.kind == OpKind::kReduceScatter ? kPushKernels : kCopyEngines;
          piece.payload = piece.payload * (static_cast<double>(last - first) / static_cast<double>(own));
        }
        emit(piece, i);
      }
    }
  }

  // Op `index` or a piece of it. Who waits for the op waits for its last piece.
  void emit(const Op& op, int index) {
    const Op& original = whole_.ops[index];
    std::vector<TensorId> inputs, outputs;
    for (int i = 0; i < original.num_inputs; ++i) inputs.push_back(now(whole_.input(original, i)));
    for (int i = 0; i < original.num_outputs; ++i) outputs.push_back(whole_.output(original, i));
    begin(op);
    waits_.written(index, builder_.emit(op, inputs, outputs, waits_.places(index)));
  }

  void begin(const Op& op) {
    builder_.phase = op.phase;
    builder_.layer = op.layer;
    builder_.compute_units = op.units;
  }

  TensorId now(std::int32_t tensor) const {
    const auto found = instead_.find(tensor);
    return found == instead_.end() ? tensor : found->second;
  }

  static constexpr int kMatchBits = 23;  // of the rendezvous keys of a builder: phase and count

  const Fragment& whole_;
  int chunks_;
  FragmentBuilder builder_;
  StatedWaits waits_;
  std::map<std::int32_t, std::vector<int>> readers_, writers_;  // ops in order, by tensor
  std::map<int, Chain> chains_;                                 // by first op
  std::set<int> chained_;
  std::map<int, int> scales_;                 // by first op of a chain: what finds the magnitude
  std::map<std::int32_t, TensorId> instead_;  // of a magnitude: those of all members
};

}  // namespace

Fragment overlap_tensor_parallel(const Fragment& fragment, int chunks) {
  return OverlapWriter(fragment, chunks).write();
}

}  // namespace moebius
