// The rules of a sound fragment, in the order in which fragment.h states them.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/key_table.h"

namespace moebius {

namespace {

// What is known to have happened before an op starts: per lane, the number of its ops that have ended.
using Clock = std::array<std::int32_t, kNumLanes>;

// Keys of what has been met so far.
class Seen {
 public:
  template <class Of>
  bool is_new(Of of, bool second, std::uint32_t key) {
    const std::uint64_t all = std::uint64_t(of) << 33 | std::uint64_t{second} << 32 | key;
    return known_.find_or_add(all, 0) == KeyTable::kNone;
  }

 private:
  KeyTable known_;
};

class Rules {
 public:
  explicit Rules(const Fragment& fragment)
      : fragment_(fragment), last_writer_(fragment.tensors.size(), -1), positions_(fragment.ops.size()) {
    clocks_.reserve(fragment.ops.size());
  }

  std::string first_fault() {
    for (std::size_t i = 0; i < fragment_.routes.size(); ++i) {
      if (!fragment_.routes[i]) return fmt::format("route {} is empty", i);
    }
    for (std::size_t i = 0; i < fragment_.batches.size(); ++i) {
      const std::string fault = fragment_.batches[i] ? find_fault(*fragment_.batches[i]) : "empty";
      if (!fault.empty()) return fmt::format("batch {}: {}", i, fault);
    }
    for (std::size_t i = 0; i < fragment_.tensors.size(); ++i) {
      if (std::string fault = tensor_fault(fragment_.tensors[i]); !fault.empty()) {
        return fmt::format("tensor {}: {}", i, fault);
      }
    }
    for (std::size_t i = 0; i < fragment_.ops.size(); ++i) {
      if (std::string fault = op_fault(static_cast<std::int32_t>(i)); !fault.empty()) {
        return fmt::format("op {} ({}): {}", i, to_string(fragment_.ops[i].kind), fault);
      }
    }
    return capture_fault();
  }

 private:
  std::string capture_fault() const {
    const std::vector<Captured>& ops = fragment_.captured;
    if (!ops.empty() && ops.size() != fragment_.ops.size())
      return fmt::format("{} of {} ops are said to be captured or not", ops.size(), fragment_.ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::int32_t first = ops[i].first;
      if (first < 0) continue;
      if (first > static_cast<std::int32_t>(i) || ops[first].first != first)
        return fmt::format("op {} is of a graph that begins with op {}", i, first);
    }
    return {};
  }

  std::string tensor_fault(const Tensor& t) {
    if (t.rows <= 0 || t.columns <= 0) return fmt::format("{} rows, {} columns", t.rows, t.columns);
    if (t.experts < 0 || t.first_expert < 0 || t.first_row < 0 || t.first_column < 0) {
      return fmt::format("negative place: experts {} from {}, row {}, column {}", t.experts, t.first_expert,
                         t.first_row, t.first_column);
    }
    if (t.scaling != Scaling::kBlock && t.dtype != DType::kFp8)
      return fmt::format("{}, but of {}",
                         has_one_scale(t.scaling) ? "one scale for the tensor" : "scales of 32",
                         to_string(t.dtype));
    if (t.scope != Scope::kFragment && !keys_.is_new(t.scope, t.second, t.key)) {
      return fmt::format("key {} names another tensor of scope {}", t.key, to_string(t.scope));
    }
    return {};
  }

  std::string op_fault(std::int32_t index) {
    const Op& op = fragment_.ops[index];
    std::string fault = reference_fault(op, index);
    if (fault.empty()) fault = size_fault(op);
    if (fault.empty()) fault = is_communication(op.kind) ? communication_fault(op) : compute_fault(op);
    if (fault.empty()) fault = order_fault(op, index);
    return fault;
  }

  std::string reference_fault(const Op& op, std::int32_t index) const {
    const auto outside = [](std::int64_t first, std::int64_t count, std::size_t size) {
      return first < 0 || count < 0 || first + count > static_cast<std::int64_t>(size);
    };
    const std::vector<std::int32_t>& dependencies = fragment_.dependencies;
    if (outside(op.first_dependency, op.num_dependencies, dependencies.size())) {
      return fmt::format("dependencies {}+{} of {}", op.first_dependency, op.num_dependencies,
                         dependencies.size());
    }
    for (int i = 0; i < op.num_dependencies; ++i) {
      const std::int32_t before = dependencies[op.first_dependency + i];
      if (before < 0 || before >= index) return fmt::format("depends on op {}", before);
    }
    const int operands = op.num_inputs + op.num_outputs;
    if (outside(op.first_tensor, operands, fragment_.operands.size())) {
      return fmt::format("operands {}+{} of {}", op.first_tensor, operands, fragment_.operands.size());
    }
    for (int i = 0; i < operands; ++i) {
      const std::int32_t tensor = fragment_.operands[op.first_tensor + i];
      if (outside(tensor, 1, fragment_.tensors.size())) {
        return fmt::format("operand {} is tensor {} of {}", i, tensor, fragment_.tensors.size());
      }
    }
    if (op.route < -1 || op.route >= static_cast<std::int32_t>(fragment_.routes.size())) {
      return fmt::format("route {} of {}", op.route, fragment_.routes.size());
    }
    if (op.batch < -1 || op.batch >= static_cast<std::int32_t>(fragment_.batches.size())) {
      return fmt::format("batch {} of {}", op.batch, fragment_.batches.size());
    }
    return {};
  }

  static std::string size_fault(const Op& op) {
    const Shape& s = op.shape;
    const std::int64_t least = std::min({s.m, s.n, s.k, s.kv, std::int64_t{s.groups}, std::int64_t{s.heads},
                                         std::int64_t{s.kv_heads}, std::int64_t{s.head_dim},
                                         std::int64_t{s.v_dim}, std::int64_t{s.window}});
    if (least < 0) return fmt::format("a size is {}", least);
    if (!std::isfinite(op.scale)) return fmt::format("scale {}", op.scale);
    return {};
  }

  static std::string compute_fault(const Op& op) {
    if (op.shape.m == 0) return "no rows";
    // Adam names the group whose shards it updates, the squares of gradients that whose shards they are of.
    const bool of_shards = op.kind == OpKind::kAdam || op.kind == OpKind::kSumSquares;
    if (op.group != GroupRole::kNone && !of_shards)
      return fmt::format("computes in group {}", to_string(op.group));
    if (op.payload.value != 0) return fmt::format("computes, but sends {} bytes", op.payload.value);
    return {};
  }

  std::string host_copy_fault(const Op& op) const {
    const bool out = op.kind == OpKind::kCopyToHost;
    if (op.group != GroupRole::kNone) return fmt::format("meets group {}", to_string(op.group));
    if (op.num_inputs != op.num_outputs || op.num_inputs == 0)
      return fmt::format("{} inputs, {} outputs", op.num_inputs, op.num_outputs);
    for (int i = 0; i < op.num_inputs; ++i) {
      const Tensor &from = fragment_.tensors[fragment_.input(op, i)],
                   &to = fragment_.tensors[fragment_.output(op, i)];
      if (from.on_host == out || to.on_host != out) return fmt::format("operand {} is on the wrong side", i);
    }
    return op.payload.value > 0 ? "" : fmt::format("payload of {} bytes", op.payload.value);
  }

  std::string communication_fault(const Op& op) {
    if (is_host_copy(op.kind)) return host_copy_fault(op);
    if (op.group == GroupRole::kNone) return "no group";
    if (!(op.payload.value > 0) || !std::isfinite(op.payload.value)) {
      return fmt::format("payload of {} bytes", op.payload.value);
    }
    for (int i = 0; i < op.num_inputs + op.num_outputs; ++i) {
      const std::int32_t tensor = fragment_.operands[op.first_tensor + i];
      if (fragment_.tensors[tensor].scaling == Scaling::kTensor)
        return fmt::format("carries tensor {}, whose scale stays with its rank", tensor);
    }
    if (op.units < kPushKernels) return fmt::format("holds {} cores", op.units);
    if ((op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine) && op.route < 0) return "no route";
    if (!matches_.is_new(op.group, op.second, op.match)) {
      return fmt::format("match {} is taken in group {}", op.match, to_string(op.group));
    }
    return {};
  }

  // Data must not race: whoever reads a tensor starts after its last writer has ended.
  std::string order_fault(const Op& op, std::int32_t index) {
    Clock& clock =
        lanes_[static_cast<int>(op.lane)];  // grows along the lane: each op knows what those before it knew
    for (int i = 0; i < op.num_dependencies; ++i)
      join(clock, fragment_.dependencies[op.first_dependency + i]);
    for (int i = 0; i < op.num_inputs; ++i) {
      const std::int32_t tensor = fragment_.input(op, i);
      const std::int32_t writer = last_writer_[tensor];
      if (writer < 0 && fragment_.tensors[tensor].scope == Scope::kFragment) {
        return fmt::format("reads tensor {} ({}), which nothing has written", tensor,
                           to_string(fragment_.tensors[tensor].role));
      }
      if (writer >= 0 && !has_ended(clock, writer)) {
        return fmt::format("reads tensor {} without waiting for op {}, which writes it", tensor, writer);
      }
    }
    for (int i = 0; i < op.num_outputs; ++i) last_writer_[fragment_.output(op, i)] = index;
    positions_[index] = ++clock[static_cast<int>(op.lane)];
    clocks_.push_back(clock);
    return {};
  }

  void join(Clock& clock, std::int32_t op) const {
    for (int lane = 0; lane < kNumLanes; ++lane) clock[lane] = std::max(clock[lane], clocks_[op][lane]);
  }

  bool has_ended(const Clock& clock, std::int32_t op) const {
    return clock[static_cast<int>(fragment_.ops[op].lane)] >= positions_[op];
  }

  const Fragment& fragment_;
  Seen keys_, matches_;
  std::vector<std::int32_t> last_writer_;  // of each tensor, -1: none yet
  std::vector<std::int32_t> positions_;    // of each op in its lane, from 1
  std::array<Clock, kNumLanes> lanes_{};
  std::vector<Clock> clocks_;  // of each op once it has ended
};

}  // namespace

std::string find_fault(const Fragment& fragment) {
  return Rules(fragment).first_fault();
}

}  // namespace moebius
