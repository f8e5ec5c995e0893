// What is measured on a device: families of cases, each one table of the profile to be. Every compute kind of
// a training schedule has a family, so that none is left to the roofline. A table is a grid; beside its
// points, shapes drawn between them are measured that only test it.
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
  std::vector<std::int32_t> rows = {};  // of each expert, where uneven
  bool is_test = false;                 // not part of the table
  std::string part = {};                // of the tests: "uneven loads"; empty: shapes between the points
  // What is left out first when time runs short: the higher. Of 0 are the ends of every axis and every other
  // point between.
  int rank = 0;
  std::string text = {};  // "gemm fp8 m 64 n 512 k 512": names the case
};

struct CasePlan {
  std::vector<ProfileTable> families;  // keys, kind, type and ranges; no points, no values
  std::vector<DeviceCase> cases;

  CostQuery query(const DeviceCase& one, int cores) const;
  std::uint64_t hash() const;  // of all cases: another plan has another one
};

struct HeadSizes {
  int heads = 0, kv_heads = 0, head_dim = 0, v_dim = 0;
};

// How large a device's cases are. Lists of numbers ascend and have an odd number of elements: of every other
// one, both ends among them, a coarse grid is measured first.
struct CaseSizes {
  std::vector<double> m, n, k;  // of GEMMs
  std::vector<double> experts, expert_rows, expert_n, expert_k;
  std::vector<HeadSizes> heads;
  std::vector<HeadSizes> other_heads;       // that only test
  std::vector<double> sequences, queries;   // of prefill: as many, each of so many tokens
  std::vector<double> decodes, keys;        // of decode: sequences, and keys of each
  std::vector<HeadSizes> latent;            // decode over latent rows; may be empty
  std::vector<double> stream_rows, widths;  // of what runs at memory speed
  std::vector<double> vocabularies, parameters;
  double most_elements = 0;  // of one operand: larger cases are no part of the plan
};

CaseSizes host_case_sizes();  // small: a core computes some ten GFLOP/s
CaseSizes gpu_case_sizes();   // the sizes of the catalog's models

CasePlan make_case_plan(const CaseSizes& sizes);

}  // namespace moebius
