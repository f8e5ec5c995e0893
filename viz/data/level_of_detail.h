// What of a row is drawn at a given width: spans that are a pixel wide or wider each as they are, the others
// together, a column for each pixel whose strength is the exact share of it that they fill. The cost follows
// the pixels, not the spans: columns that hold many spans are summed from bins and runs prepared once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "viz/data/lane_spans.h"
#include "viz/data/time_window.h"

namespace moebius::viz {

inline constexpr int kMaxCategories = 64;  // colours that spans may have

// The category of each slot; filled by who decides on colours.
using Categories = std::vector<std::uint8_t>;
inline constexpr std::uint8_t kFilteredOut = 0x80;  // a bit beside the category

struct Stroke {
  float x0 = 0, x1 = 0;  // pixels from the left edge of the window
  float coverage = 1;    // of a column: the share of it that is busy
  std::uint8_t category =
      0;  // of a column: the one that fills most of it; kFilteredOut where nothing of it passes
  std::int64_t slot = -1;  // of a span by itself; -1: a column
};

// Of so many spans one after the other in a row.
struct SpanRun {
  float busy = 0;  // nanoseconds, spans without length as one; of what passes the filter, if any does
  std::uint8_t category = 0;  // that fills most of it
  std::int64_t longest = 0;   // ns, of a span
};

// A row's time cut into equal bins, about one for every eight spans: what fills each. Built when first drawn.
struct RowBins {
  double width = 0;                    // ns; 0: too few spans to be worth it
  std::vector<float> busy;             // nanoseconds
  std::vector<std::uint8_t> category;  // that fills most of it
  std::vector<SpanRun> runs;           // of kSpansPerRun from the row's first on, as many as are full
  bool built = false;
};

class LevelOfDetail {
 public:
  explicit LevelOfDetail(const LaneSpans& spans) : spans_(&spans), bins_(spans.rows().size()) {}

  const Categories& categories() const { return categories_; }
  void set_categories(Categories categories);  // bins are built anew

  // The strokes of a row in `window`, `pixels` wide, from left to right. They are appended.
  void draw(std::size_t row, const TimeWindow& window, float pixels, std::vector<Stroke>& strokes);
  // Nanoseconds that spans of the row fill in [from, to), exactly.
  std::int64_t busy(std::size_t row, std::int64_t from, std::int64_t to) const;

 private:
  void build(std::size_t row);
  void build_runs(std::size_t row);
  void draw_bins(const RowBins& bins, const TimeWindow& window, float pixels,
                 std::vector<Stroke>& strokes) const;
  void draw_spans(std::size_t row, const TimeWindow& window, float pixels,
                  std::vector<Stroke>& strokes) const;
  std::uint8_t category_of(std::size_t slot) const {
    return categories_.empty() ? std::uint8_t{0} : categories_[slot];
  }

  const LaneSpans* spans_;
  std::vector<RowBins> bins_;
  Categories categories_;
};

}  // namespace moebius::viz
