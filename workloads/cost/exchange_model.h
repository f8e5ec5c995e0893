// How long dispatch and combine take on an idle machine: kernels in which the cores copy tokens, one kernel
// for high throughput and one for low latency. Pure functions of what a rank moves and of constants that
// `moebius calibrate --fit exchanges` fits to published tables of these kernels (hw/catalog/exchanges.json).
//
// The law. A kernel starts, tells its peers the sizes, and then is a pipeline whose slowest stage decides:
//   seconds = fixed + row * fixed_row + experts * expert + remote experts * remote_expert
//             + (nodes - 1) * 2 * round trip       where sizes and a barrier go to one node after the other
//             + the first tokens of each channel, until the pipeline is full
//             + the longest of: copying by the cores, summing up by the cores, messages, scale-up link, NIC.
// High throughput (published as DeepEP "normal"): a token goes once to every node that has one of its
// experts, and there once to every rank that has one; every such copy costs a core time. Low latency: a token
// goes to every one of its experts by itself, a message each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"

namespace moebius {

enum class ExchangeFamily : std::uint8_t { kThroughput, kLowLatency };
inline constexpr int kThroughputCores = 24;  // that the kernel holds where nobody says: DeepEP's own tests

// Constants of one kernel on one chip. Seconds, bytes, bytes per second; a rate of 0 is no limit.
struct ExchangeKernel {
  ExchangeFamily family = ExchangeFamily::kThroughput;
  std::string chip = {};          // catalog id
  std::string architecture = {};  // of the chip
  bool combine = false;
  bool between_nodes = false;  // the kernel for more than one node
  double fixed = 0, fixed_row = 0, expert = 0, remote_expert = 0;
  double fill_tokens = 0, fill = 0,
         fill_row = 0;                        // of a channel (two cores); of each such token, of its bytes
  double token = 0, copy = 0, copy_rate = 0;  // of a core: for a token, for a copy of it, bytes
  double sum = 0, sum_rate = 0;               // of a core that adds up what came back: for a token, bytes
  double message = 0;                         // for a copy to another rank
  double crossing = 0;                        // for a row that leaves the package
  int dies = 1;              // of the chip, each a rank of the kernel with its share of cores and rates
  int package = 1;           // neighbouring devices that are one package
  bool each_expert = false;  // high throughput: a row for each expert of a token, straight to its rank
  bool in_turn = false;      // cores of the same number read the same source at the same time
  double link_share = 0, nic_share = 0;  // of the line rates
  double error = 0;                      // median relative error on the rows that it was fitted to
  int rows = 0;                          // that it was fitted to; 0: taken from another chip, an estimate
  std::string source = {};
};

// Whether a token goes to each of its experts by itself.
inline bool goes_to_experts(const ExchangeKernel& kernel) {
  return kernel.family == ExchangeFamily::kLowLatency || kernel.each_expert;
}

// What the busiest rank moves, in rows, and of what kind.
struct ExchangeLoad {
  int ranks = 1;
  double tokens = 0;        // of the rank
  double copies = 0;        // of its tokens to ranks, itself included, and to nodes where there are several
  double inside = 0;        // rows over its scale-up link, one direction
  double across = 0;        // rows over its NIC, one direction
  double remote_ranks = 0;  // copies that go to another rank, wherever that is
  double linked = 0;        // copies that leave the package of the rank
  double row_bytes = 0;     // payload and scales
  int nodes = 1;
  int experts = 0;  // of all ranks
};

struct ExchangeMachine {
  int cores = 0;    // of the chip
  int general = 0;  // its vector cores, where it has some beside these
  int held = 0;     // cores that the kernel holds (high throughput)
  double link_line = 0,
         link_rate = 0;  // scale-up, bytes per second: line rate, and what transfers achieve at most
  double nic_line = 0, nic_rate = 0;
  double latency = 0;  // s, of an empty message between nodes
};

struct ExchangeTime {
  double latency = 0;  // s, before the pipeline runs full
  double flow = 0;     // s, of its slowest stage
  // s, that low-latency kernels hold every core: all but the time in which the NIC alone is at work. Within a
  // node the cores copy, to the end; between nodes they post messages, and are free until these have come.
  // Kernels for high throughput hold the cores that they were given instead.
  double held = 0;
  double seconds() const { return latency + flow; }
};

// `load` is a rank's, a die where chips have several (see load_of_die()); `machine` a chip's.
ExchangeTime exchange_time(const ExchangeKernel& kernel, const ExchangeLoad& load,
                           const ExchangeMachine& machine);

// Bytes of device memory that the busiest rank reads and writes for one dispatch or combine. High throughput
// (DeepEP's normal kernels, csrc/kernels/internode.cu and intranode.cu): a token's row is read (combine:
// written) once; a row on the NIC passes a buffer at both ends, each written and read; a row that a rank
// takes passes a buffer of the scale-up link, written by the peer's cores, read, and written where it stays.
// Low latency, and kernels that send to experts by themselves: a row is read, posted from a buffer, which is
// written and read, and written at its end, read there and written where it stays.
double exchange_memory(const ExchangeKernel& kernel, const ExchangeLoad& load);

// Of each of a chip's dies, where `load` is the chip's: tokens and rows are shared alike.
ExchangeLoad load_of_die(ExchangeLoad load, int dies);

// Cores that the kernel runs on: those it holds, 24 where it was not told; for low latency as many as there
// are groups of experts, each core taking as many experts as make that fit the chip.
int exchange_cores(const ExchangeKernel& kernel, const ExchangeLoad& load, const ExchangeMachine& machine);

// Expected load where every token draws `active` of `experts` distinct experts alike, of at most
// `nodes_per_token` nodes (0: any). `row_bytes` is the caller's.
struct EvenExchange {
  double tokens = 0;
  int active = 0, experts = 0, ranks = 1, nodes = 1, nodes_per_token = 0;
  int dies = 1;  // ranks of a package
};
ExchangeLoad even_load(const EvenExchange& exchange, bool to_experts);

}  // namespace moebius
