// What the host of a framework that runs op by op (PyTorch, not captured) does for an op before the device
// has its kernels, in calls: one call is what such a host takes for a plain operation of a module, forward,
// and /cluster/launch says how long that is.
//
// Measured forward of torch.nn.Linear, CPU time: 13.5 us on H100 DGX (Xeon 8480C), 33.2 us on GH200, 37.1 us
// on GB200 (NVIDIA/TransformerEngine, issue 2053, 2025-08). The table, in parts of that:
// - a module of Transformer Engine, its Linear forward 90.5 and 99.7 us on GH200 and GB200 (the same issue):
//   2.7. Its way back takes 1.75 times as long as its way forward (issue 2897), half for each product: 2.4.
//   In 8 bits 3 times that, with the casts of its operands: 3.6 times by issue 445 (1,024 x 1,024 x 1,024 on
//   H100, 2.07 and 0.57 ms, 2023-10), more than twice by issue 761 (2024-04);
// - products of experts: 64 of them in two products, 1.2 ms forward and 2.1 ms back on GB200, of sizes too
//   small to be seen (issue 2897): the module, and 0.21 and 0.18 for each expert and product; in a loop over
//   experts 37 us each on GH200, of which 17 are seen (160,000 products of experts become 5,000 grouped ones:
//   148 -> 124 ms a sequence of Nemotron-H 120B on 128 of them, geodesic-megatron, 2026-08): 1.1;
// - attention: a module, forward and back in one;
// - collectives and messages: 76 us (_allgather_base_, pytorch issue 102434; 89 to 131 us by issue 138773):
//   5.6;
// - what moves tokens or chooses experts is written in elementary operations, about 0.4 each (5 us, the
//   lower end of what eager operations take): router 17, 58 where its kernels are separate; combine 10 and
//   dispatch as many, 14 more by the library's all-to-all (72 kernels around DeepSeek-V3's router, 31 fused,
//   17 with DeepEP: Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization), which is two collectives;
//   permutations 5;
// - the delta rule in chunks: its 9 kernels (cost/delta_rule_model.cpp), a call each;
// - all else: one, as fused operations under a Python autograd.Function are: of 13 tensors it takes 17 us
//   beside the 3 us of its operation, 5 to 8 us on an H200's host (pytorch issue 189573, 2026-07).
#pragma once

#include "workloads/schedule/fragment.h"

namespace moebius {

double host_calls(const Op& op);

// Dispatch and combine of tokens that take their weights along: dispatch forward, and the way back of it.
bool travels_with_weights(const Op& op);
// The same of one of these whose preparation is captured (Captured::prepared): of its messages alone.
double prepared_calls(const Op& op);

// What the driver takes on the host for each kernel of a graph that has been launched before, beside the
// launch itself: 1 ns where kernels follow each other (NVIDIA, "Constant Time Launch for Straight-Line CUDA
// Graphs", 2024-09-11, CUDA 12.6 on a Xeon Silver 4208: 2.5 us and some 1 ns a node from ten nodes on; 11.8
// took 2 us and 200 ns a node). Graphs of whole passes leave it out: a thousandth of what their kernels take.
inline constexpr Time kKernelInGraph{1};

// Kernels that an op is on a device, which a host launches one by one: one, but for the delta rule in chunks.
inline constexpr int kChunkedDeltaKernels = 9;  // cost/delta_rule_model.cpp
int kernels_of(const Op& op);

// What the host of an engine that launches kernel by kernel takes for one, in launches of a framework's op.
// Kernels that another call launches with its own take the driver's part: some 4 of 60 to 80 us.
double kernel_calls(const Fragment& fragment, const Op& op);

// Whether the host reads what the device found before it goes on: how many tokens come to each expert, where
// tokens with their weights are dispatched (on the way back the numbers are known).
bool host_reads_counts(const Op& op);

}  // namespace moebius
