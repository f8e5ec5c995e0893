// By what spans are coloured, and which of them a search leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/data/level_of_detail.h"
#include "viz/data/run_data.h"

namespace moebius::viz {

enum class ColourBy : std::uint8_t { kKind, kPhase, kLayer, kMicrobatch, kExposure, kOrigin, kFragment };
inline constexpr int kNumColourings = static_cast<int>(ColourBy::kFragment) + 1;
const char* to_string(ColourBy colouring);

// What kExposure tells apart.
enum class Shown : std::uint8_t { kCompute, kExposed, kHidden };

// The name of a category: "gemm", "layer 3", "exposed communication". Layers and microbatches beyond 63 start
// over.
std::string category_name(const RunData& run, ColourBy colouring, std::uint8_t category);

// Words that must all be met: layer:3, microbatch:5 (mb:5), step:0, rank:16, op:gemm; any other word stands
// for itself in the name of the op or of its fragment, in either case.
struct Search {
  std::string text;
  bool critical_only = false;  // only spans on the critical path, see `critical`
};

// The category of each slot; what the search leaves out has the bit kFilteredOut. `critical`: spans on the
// critical path, by span, where the search asks for it. The number that passes goes to `found`.
Categories categories_of(const RunData& run, ColourBy colouring, const Search& search,
                         const std::vector<bool>& critical, std::size_t& found);

// Which spans lie on the critical path, by span (workloads/schedule/critical_path.h). Runs of more spans than
// kMostForCriticalPath are refused with a run_error.
inline constexpr std::size_t kMostForCriticalPath = 4'000'000;
std::vector<bool> spans_on_critical_path(const RunData& run);

}  // namespace moebius::viz
