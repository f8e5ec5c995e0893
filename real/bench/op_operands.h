// The operands of a compute op, told by its shape alone: what a bench makes up before it executes the op. One
// table for all devices; models/op_kind.h says what each operand is.
//
// Where the shape leaves something open, it is what a training schedule mostly has:
// - results of 8- and 4-bit operands are BF16, other formats keep theirs (models/layer_math.h); weight
//   gradients are FP32; those of 8-bit products have operands with scales by column;
// - kNorm, kActivation with an 8- or 4-bit dtype write a quantised copy beside their result;
// - kActivation and its gradient have no weights of rows;
// - kSplit and kConcat have two halves (one block where there is one column);
// - kPermute and its like: every copy is of a token of its own, as with expert groups much larger than top-k;
// - kAdam, kSumSquares: one flat tensor of m elements, its weight BF16; of an update that rounds weights to
//   8 bits those elements are a tensor of their own.
#pragma once

#include <optional>
#include <vector>

#include "real/route_plan.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

enum class Contents : std::uint8_t {
  kNumbers,   // of random sign, below 1
  kPositive,  // above 0, below 1
  kIds,       // whole numbers below `below`
};

struct OperandSpec {
  std::int64_t rows = 0, columns = 0;  // rows: of all experts
  DType dtype = DType::kBf16;
  Contents contents = Contents::kNumbers;
  std::int64_t below = 0;
  bool changed = false;          // an output that is added to: it exists before
  bool by_columns = false;       // 8 bits with one scale per column and 128 rows
  bool weight = false;           // of a product: 8 bits with one scale per 128 rows and columns
  std::int64_t expert_rows = 0;  // of one expert, where the rows are those of several
};

inline OperandSpec matrix(std::int64_t rows, std::int64_t columns, DType dtype) {
  return {.rows = rows, .columns = columns, .dtype = dtype};
}

struct OpOperands {
  Op op;
  std::vector<OperandSpec> inputs, outputs;
  bool in_place = false;           // the outputs are the inputs
  std::optional<RoutePlan> route;  // of kinds that have one
  BatchPtr batch;                  // the same
  ExpertTransferPtr transfer;      // the same
};

// Executors carry out a query as one op or as several, one after the other: attention over sequences with
// different keys is an op for each number of keys, a GEMM that quantises its own activations a kQuantise and
// the product. Parts refer to what `query` refers to, or to nothing.
std::vector<CostQuery> parts_of(const CostQuery& query);

// Of a query that is one part. Communication is a CHECK.
OpOperands operands_of(const CostQuery& query);

}  // namespace moebius
