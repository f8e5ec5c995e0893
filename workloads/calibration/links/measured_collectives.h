// Timings of collectives inside one node, as tables publish them: kernels/nccl.csv.gz and
// kernels/custom_allreduce.csv.gz (README beside them).
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/cost/collective_model.h"

namespace moebius {

struct MeasuredCollective {
  std::string accelerator;  // catalog id
  std::string family;       // "nccl", "oneccl", or the framework: "sglang", "trtllm", "vllm"
  bool eager = false;       // launched by the host one by one; else in a CUDA graph or back to back
  std::string dtype;
  CollectiveCall call;
  double seconds = 0;
  bool stands_off = false;  // by a fifth from its neighbours in size: another kernel, or a disturbance
};

// Of both files, those that are there; sorted. input_error for files that are no such tables.
std::vector<MeasuredCollective> read_measured_collectives(const std::string& directory,
                                                          const Catalog& catalog);

// What the constants say to a row.
CollectiveFigures predicted(const MeasuredCollective& row, const CollectiveConstants& constants);

// Fitted to it: all-reduce between 2 and 8 devices, half precision, in graphs.
bool is_fitted_to(const MeasuredCollective& row, const CollectiveConstants& constants);

}  // namespace moebius
