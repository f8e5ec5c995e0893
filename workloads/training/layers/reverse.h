// The walk behind lower_backward: forward ops in reverse order, one rule for each kind.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "workloads/training/layers/backward.h"
#include "workloads/training/layers/stated_waits.h"

namespace moebius {

class Reverse {
 public:
  Reverse(const LoweringInput& input, const StageSpec& stage, ForwardPass& forward, BackwardPass& pass,
          const BackwardOptions& options);
  void run();

 private:
  // The weight gradient of a matrix, written after the input gradients of its block.
  struct DeferredWeight {
    Op op;                    // the forward GEMM
    TensorId dy;              // of the reverse fragment
    TensorId x;               // of the forward fragment: the unquantised operand where there is one
    TensorId weight;          // of the forward fragment
    int block;                // of the forward op
    bool by_columns = false;  // x is quantised, with scales along the tokens
  };

  struct ReversedNorm {
    Op op;
    TensorId dy;  // of the reverse fragment
  };

  // Gradients of forward tensors, as they gather; `whole`: not this rank's part of a sum, of a tensor that
  // others give parts of.
  void add_gradient(TensorId forward_tensor, TensorId gradient, bool whole = false);
  TensorId gradient(TensorId forward_tensor);        // the sum; kNoTensor when nobody asked for one
  TensorId fresh_gradient(TensorId forward_tensor);  // a new tensor of its shape
  TensorId add_up(const std::vector<TensorId>& contributions, Role role);
  TensorId sum_over_tensor(TensorId partial, TensorId forward_tensor);

  // A forward value inside the reverse fragment: kept from the forward pass or computed again.
  TensorId value(TensorId forward_tensor);
  TensorId kept(TensorId forward_tensor);
  void compute_again(std::int32_t op_index);
  void compute_group_again(std::int32_t op_index);
  std::int32_t end_again(std::int32_t first, std::int32_t last) const;

  void reverse(const Op& op);
  void reverse_gemm(const Op& op);
  void reverse_add(const Op& op);
  void reverse_norm(const Op& op);
  void write_norm_gradient(const ReversedNorm& norm, const std::vector<TensorId>& means,
                           bool sum_over_tensor);
  void reverse_row_means(const Op& op);
  void reverse_attention(const Op& op);
  void reverse_activation(const Op& op);
  void reverse_gate(const Op& op);
  void reverse_permute(const Op& op);
  void reverse_unpermute(const Op& op);
  void reverse_masked(const Op& op);
  void reverse_masks(const Op& op);
  void reverse_embedding(const Op& op);
  void reverse_mla_keys(const Op& op);
  void reverse_split(const Op& op);
  void reverse_concat(const Op& op);
  void reverse_rotary(const Op& op);
  void reverse_routed_exchange(const Op& op);
  void travels_like(TensorId x, TensorId original);  // in its format, with its scales
  void reverse_collective(const Op& op);
  void reverse_exchange(const Op& op);
  void reverse_ring(const Op& merged);
  std::vector<TensorId> shift(const Op& like_op, const std::vector<TensorId>& x);
  void send_on(const Op& like_op, bool with_block, std::vector<TensorId>& block, std::vector<TensorId>& sums);
  std::vector<TensorId> sums(const std::vector<TensorId>& a, const std::vector<TensorId>& b);
  void receive_gradient(const Op& op);
  void gather_message(TensorId part, TensorId whole);
  void send_gradient(const Op& op);

  void flush_weights();
  void write_weights();
  TensorId left(TensorId backward_tensor);
  void take_handed_gradient();
  void hand_gradient_on();
  void write_weight_gradient(const DeferredWeight& deferred);
  TensorId gradient_buffer(TensorId forward_weight, bool sum_over_tensor);
  TensorId quantised(TensorId x, OpKind how, std::int32_t route, bool for_product = true);
  TensorId by_columns(TensorId dy, std::int32_t route);
  void find_wanted();
  bool is_trained(TensorId forward_weight) const;
  bool is_whole(TensorId forward_weight) const;
  bool needs_gradient(TensorId forward_tensor) const;
  bool leads_to_trained(const Op& op) const;
  bool trains_before() const;
  bool sees_share_of_tokens(TensorId forward_operand) const;
  // Maps whose results go on with their biases: trained ones of a dense layer's.
  bool trains_biases() const;

  std::int32_t emit(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
                    const std::vector<std::int32_t>& after = {});
  Op like(const Op& op, OpKind kind);  // the same shape, role, dtype and route
  TensorId in(const Op& op, int i) const { return fragment().input(op, i); }
  TensorId out(const Op& op, int i) const { return fragment().output(op, i); }
  const Fragment& fragment() const { return forward_.builder.fragment(); }
  FragmentBuilder& builder() { return *builder_; }
  bool in_weights() const { return builder_ != &pass_.builder; }
  const TrainingPlan& plan() const { return *input_.plan; }
  // Of sums over the tensor-parallel group: beside weight gradients, or in their way.
  Lane tensor_lane() const { return plan().overlap_tensor_gradients ? Lane::kTensorComm : Lane::kCompute; }

  const LoweringInput& input_;
  const StageSpec& stage_;
  ForwardPass& forward_;
  BackwardPass& pass_;
  const BackwardOptions& options_;
  FragmentBuilder* builder_;  // that ops go to: the backward pass, then, of a split one, its weights
  std::vector<std::int32_t> producer_;                   // forward op that writes a forward tensor, -1: none
  std::vector<bool> wanted_;                             // by forward tensor: somebody needs its gradient
  StatedWaits waits_;                                    // of forward ops, for those that are computed again
  std::map<TensorId, std::vector<TensorId>> gradients_;  // contributions, by forward tensor
  std::map<TensorId, std::vector<TensorId>>
      whole_gradients_;                            // the same of sums over the tensor-parallel group
  std::map<TensorId, TensorId> values_;            // forward tensor -> tensor here
  std::map<TensorId, TensorId> values_of_inputs_;  // the same of a split pass's first part
  std::map<std::int32_t, std::int32_t> routes_;    // forward route index -> index here
  std::map<std::pair<TensorId, OpKind>, TensorId> quantised_;
  std::map<TensorId, TensorId> columns_of_;  // of gradients that were quantised both ways at once
  std::set<std::uint32_t> known_parameters_;
  std::set<std::int32_t> done_;  // forward ops that have been reversed together with a later one
  std::vector<DeferredWeight> deferred_;
  std::vector<ReversedNorm> shared_norms_;  // of rows that ranks share, reversed where their means were taken
  int block_ = 0;                           // of the forward op that is being reversed
};

}  // namespace moebius
