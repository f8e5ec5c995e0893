// Key `dispatch` of expert parallelism, in training and in both phases of serving.
#include <array>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr std::array kDispatches{
    Named<Algorithm>{"auto", Algorithm::kAuto, "low latency for up to 128 tokens of a rank"},
    Named<Algorithm>{"deepep", Algorithm::kHierarchical,
                     "high throughput: one copy a remote node, then over the scale-up link"},
    Named<Algorithm>{"deepep-low-latency", Algorithm::kDirect, "each token to each of its experts by itself"},
    Named<Algorithm>{"all-to-all", Algorithm::kLibrary,
                     "sorted by expert, then the library's all-to-all: a row for each expert of a token"},
    Named<Algorithm>{
        "all-gather", Algorithm::kRing,
        "every rank gathers the tokens of all, and their sums come back by reduce-scatter: what engines "
        "do beside data-parallel attention where nothing else is asked for"}};

}  // namespace

Algorithm read_dispatch(Section& experts, Algorithm otherwise) {
  return experts.choice<Algorithm>("dispatch", kDispatches, otherwise, "how tokens travel to experts");
}

std::string_view dispatch_name(Algorithm algorithm) {
  for (const Named<Algorithm>& row : kDispatches)
    if (row.value == algorithm) return row.name;
  return "";
}

}  // namespace moebius
