// The lower bound of an op's time on the cores it holds: arithmetic at the peak, or device memory at the full
// rate. Nothing that this project predicts may be below it.
#pragma once

#include "hw/accelerator.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// The arithmetic type that the chip really uses: the asked one, or the next wider one that it has (FP8
// operands on a chip without FP8 units are multiplied in BF16). input_error when the chip has no peak at all.
DType executed_dtype(const Accelerator& accelerator, DType dtype);

// The type that an op's products are in: that of its operands, but of absorbed latent attention over a cache
// of 8 bits the cache's, where tensor units scale operands themselves. 1,024 sequences of 8,192 keys: 2,570
// TFLOP/s on B200, which has 2,250 in BF16; Hopper's kernels widen the cache first (710 of 989).
DType product_dtype(const Accelerator& accelerator, const CostQuery& query);

// True for the kinds that run on tensor (cube) units; the others run at memory speed.
bool uses_tensor_cores(OpKind kind);

// Cores that a kind is spread over when it holds the whole chip: vector kinds of a chip whose general cores
// work beside its tensor cores use those.
int cores_of_chip(const Accelerator& accelerator, OpKind kind);

// The query's shape with m (k for weight gradients) replaced by the sum of `rows`, when there are any; of
// attention with the mean of them as kv, rounded, and as many sequences.
Shape loaded_shape(const CostQuery& query);

// Whether all that the op reads and writes is hot (CostQuery::hot) and fits in the chip's L2.
bool is_found_in_l2(const Accelerator& accelerator, const CostQuery& query);

// Absorbed latent attention (DeepSeek-V2, section 2.1.2): the one KV head is wider than its values, and those
// are its first columns, read once for both. No other attention has values of over 256 columns.
bool is_absorbed_latent(const Shape& attention);

// Device-memory bytes of the op, each input read once and each output written once; experts without rows cost
// nothing.
double least_bytes(const CostQuery& query);

struct Roofline {
  double arithmetic = 0;  // seconds at the peak of the cores held
  double memory = 0;      // seconds at the full memory rate; none of what is found in L2
  double seconds() const { return arithmetic > memory ? arithmetic : memory; }
};
Roofline roofline(const Accelerator& accelerator, const CostQuery& query);

}  // namespace moebius
