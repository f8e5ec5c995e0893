// Single kernel figures that were published, beside what the cost model says of the same kernels.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/profile.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// How a figure is given. best_tflops: the best of many shapes, which are not said; ours is the best of cubes
// of 2048 to 16384.
enum class FigureUnit : std::uint8_t { kMicroseconds, kTflops, kBestTflops, kGigabytes };

struct PublishedKernel {
  std::string accelerator;  // catalog id
  std::string op;           // "gemm", "gemm+quantise"
  CostQuery query;          // on all cores of the chip
  std::string stack = {};   // of the profile's tables that were run so; empty: the profile's first
  FigureUnit unit = FigureUnit::kMicroseconds;
  double value = 0;
  bool fitted = false;  // a constant of the model was set by it: shown, not judged
  std::string source;
};

// Reads a table as hw/profiles/published.csv. input_error for what the catalog, the op kinds and the units do
// not know.
std::vector<PublishedKernel> read_published_kernels(const std::string& path, const Catalog& catalog);

// The same figure as the profiles (of any chips) and the model tell it.
struct ToldKernel {
  double value = 0;
  double time_error = 0;  // ours over theirs, as times: above zero, ours is slower
  bool by_profile = false;
};
ToldKernel told_kernel(const PublishedKernel& kernel, const Catalog& catalog,
                       const std::vector<Profile>& profiles);

// Markdown: one line a figure, and the medians of the errors with and without a profile against the goals (8
// and 20%), of figures that no constant was set by.
std::string published_table(const std::vector<PublishedKernel>& kernels, const Catalog& catalog,
                            const std::vector<Profile>& profiles);

}  // namespace moebius
