// What an op costs on a chip standing alone. Three sources answer, best first: measured tables of this chip
// and stack, an analytic model with tiles and waves, the plain roofline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/profile.h"
#include "hw/units.h"
#include "models/op_kind.h"
#include "workloads/schedule/op.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// What shares a scale in the operands of FP8 products.
enum class ProductScales : std::uint8_t {
  kBlock,  // 128 of k: partial sums are scaled and added in FP32 each 128 of k
  kWhole,  // a row, a column or all of a tensor: the finished sum is scaled once
  kMicro,  // 32 of k (OCP Microscaling Formats 1.0)
};

struct CostQuery {
  OpKind kind = OpKind::kGemm;
  Shape shape;
  DType dtype = DType::kBf16;
  int cores = 0;  // that the op holds; at most those of the chip
  // Grouped kinds: rows of each expert; empty: shape.m spread evenly. Attention: keys of each sequence, of
  // which there are as many; every one has m / groups queries; empty: shape.kv each.
  std::span<const std::int32_t> rows = {};
  // Format of the operand that is kept (weights of GEMM kinds, the cache of attention: op_bytes) where it is
  // not `dtype`, which then is that of the arithmetic: int8 under bf16.
  std::optional<DType> stored = {};
  // GEMM kinds in 8 and 4 bits: the op quantises its own BF16 activations, and the time contains it.
  // Otherwise they come quantised, by a kQuantise or by the op before.
  bool fused_quantise = false;
  // Attention: what fits in the cache (L2) of the chip stands there already, as when a kernel is measured
  // again and again. A step finds it in memory.
  bool hot = false;
  // Weight gradients that add to what is kept: in this format it is read and written.
  DType summed = DType::kFp32;
  // GEMM kinds: chosen for all cores of the chip, as by a library that is not told that others hold some of
  // them. Otherwise for those that it holds.
  bool for_whole_chip = false;
  // FP8 products: partial sums leave the tensor unit for FP32 (Architecture::promoted_sums). Tables are of
  // kernels that keep them there; who measures the op anew has what it takes.
  bool promoted_sums = false;
  // FP8 products, as the model prices them (Architecture::scaling_lanes). Tables are of kernels with the
  // scales that they were measured with.
  ProductScales scales = ProductScales::kBlock;
};

// What the op's kept operand is stored in.
inline DType stored_dtype(const CostQuery& query) {
  return query.stored.value_or(query.dtype);
}

struct Cost {
  double seconds = 0;
  Origin origin = Origin::kRoofline;
  float error = 0;          // expected relative error
  double memory_bytes = 0;  // device-memory traffic, for sharing the memory rate with neighbours
  double watts = 0;         // of the board while the op runs; 0: not known
};

class CostSource {
 public:
  virtual ~CostSource() = default;
  // Defined for every compute kind and every shape with positive sizes; never negative, never below the
  // roofline of the peak.
  virtual Cost cost(const CostQuery& query) const = 0;
  // "profile h800-sxm (deepgemm-2025-02) over analytic (hopper)"; of a chip that none of the tables is of,
  // "profile h100-sxm, carried to h100-pcie (...) over ..."
  virtual std::string description() const = 0;
};

// The layered source for a chip, whose FP8 products have blocks of 128: embedded (and DIR/profiles) profiles
// that name it, over the analytic model, over the roofline for architectures that the model does not know.
// `stack` ("deepgemm-2025-02-25") restricts the tables to one software stack; empty: all, the profile's first
// ones preferred. input_error for a wrong profile or an unknown stack.
std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator, const std::string& data_dir = "",
                                             std::string_view stack = "");

// The same from profiles that are at hand. Of FP8 products that no table knows, the model prices these
// scales.
std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator,
                                             const std::vector<Profile>& profiles,
                                             std::string_view stack = "",
                                             ProductScales scales = ProductScales::kBlock);

}  // namespace moebius
