// The AI-efficiency matrix: how much of its peak, of its memory's rate and of its links a chip reaches, by
// class of op. What is computed is asked of the chip's cost source (measured tables where there are any, else
// the model of its architecture), collectives are run on two nodes of it.
#pragma once

#include <string>
#include <vector>

#include "hw/cluster.h"
#include "workloads/cost/cost_source.h"
#include "workloads/perform/perform.h"

namespace moebius {

enum class EfficiencyKind : std::uint8_t { kCompute, kMemory, kLink, kNic };
std::string_view to_string(EfficiencyKind kind);  // "compute": of what the share is

struct EfficiencyRow {
  std::string op;     // "gemm bf16", "all-reduce in a node"
  std::string shape;  // "4096 x 2048 x 4096", "1 GB"
  EfficiencyKind kind = EfficiencyKind::kCompute;
  double rate = 0;  // FLOP/s or bytes/s reached
  double peak = 0;  // of the same
  double seconds = 0;
  std::string source;  // "measured", "analytic", "simulated", ...
  float error = 0;     // expected, relative; 0: not known
  double width = 0;    // of a dense product: columns of the weight

  double efficiency() const { return peak > 0 ? rate / peak : 0; }
};

struct EfficiencyMatrix {
  std::string chip, node;
  std::vector<EfficiencyRow> rows;

  // Of the row of that op; of a dense product between the two widths beside `width`, by its logarithm.
  double efficiency(std::string_view op, double width = 0) const;
};

// Of compute and memory alone: every class that the chip has arithmetic for, products in BF16, FP8 and the
// format of `products`. An op is of the kind whose roofline is the longer: its share of the peak, or of the
// memory's rate.
EfficiencyMatrix chip_matrix(const Accelerator& chip, const CostSource& costs,
                             DType products = DType::kBf16);

// And collectives and messages, on two nodes of `pool` joined by NICs of its own. A row is the share of the
// links or of the NICs, whichever take longer.
// One device alone has none of them.
void add_network(const Pool& pool, const FabricSpec& fabric, const Library& library,
                 const StartExecutor& start, EfficiencyMatrix& matrix);

// The node that a chip most likely stands in: of the catalog's nodes that take it, the one that shares its
// name or has as many accelerators as its scale-up domain.
Node node_for(const Accelerator& chip, const Catalog& catalog);

std::string matrix_text(const std::vector<EfficiencyMatrix>& matrices);
std::string matrix_json(const std::vector<EfficiencyMatrix>& matrices);

}  // namespace moebius
