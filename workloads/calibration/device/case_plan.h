// What is measured on a device: families of cases, each one table of the profile to be. Every compute kind of
// a training schedule has a family, so that none is left to the roofline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/profile.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// One op to be timed.
struct DeviceCase {
  int family = 0;
  std::vector<double> site = {}, at = {};  // as the table's site_keys and axes
  Shape shape = {};
  std::vector<std::int32_t> rows = {};  // of each expert, where uneven: such cases only test the table
  // What is left out first when time runs short: the higher. The ends of every axis and the outer sites are
  // 0.
  int rank = 0;
  std::string text = {};  // "gemm fp8 m 64 n 512 k 512": names the case, and decides whether it is kept out
};

struct CasePlan {
  std::vector<ProfileTable> families;  // keys, kind, type and ranges; no points, no values
  std::vector<DeviceCase> cases;

  CostQuery query(const DeviceCase& one, int cores) const;
  std::uint64_t hash() const;  // of all cases: another plan has another one
};

struct MatrixSize {
  std::int64_t n = 0, k = 0;
};
struct HeadSizes {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, v_dim = 0;
};
struct ExpertSize {
  std::int64_t groups = 0, n = 0, k = 0;
};

// How large a device's cases are. Of lists every other element, from the first one on, is measured first;
// so that what is measured first spans everything, the number of rows is odd, and matrices alternate between
// the outside and the inside.
struct CaseSizes {
  std::vector<MatrixSize> matrices;
  std::vector<double> rows;  // m of GEMMs
  std::vector<ExpertSize> experts;
  std::vector<double> expert_rows;  // of one expert
  std::vector<HeadSizes> heads;
  std::vector<double> sequences, queries;  // of prefill: as many, each of so many tokens
  std::vector<double> decodes, keys;       // of decode: sequences, and keys of each
  std::vector<HeadSizes> latent;           // decode over latent rows; may be empty
  std::vector<double> widths;              // columns of what runs at memory speed
  std::vector<double> vocabularies;
  std::vector<double> stream_rows;
  std::vector<double> parameters;  // of Adam
};

CaseSizes host_case_sizes();  // small: a core computes some ten GFLOP/s
CaseSizes gpu_case_sizes();   // matrices, experts and heads of the catalog's models

CasePlan make_case_plan(const CaseSizes& sizes);

}  // namespace moebius
