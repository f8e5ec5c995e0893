#include "viz/data/level_of_detail.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace moebius::viz {
namespace {

constexpr std::size_t kSpansPerBin = 8, kFewestBins = 512, kMostBins = 1 << 14;
constexpr double kBinsPerPixel = 4;  // with fewer, spans are looked at one by one
constexpr std::size_t kSpansPerRun = 256;
constexpr float kShades = 16;  // columns that differ by less are drawn in one

// What fills a column, by category. What a filter leaves out counts only where nothing else is.
class Mixture {
 public:
  void add(std::uint8_t category, double ns) {
    const int place = (category & (kMaxCategories - 1)) + (category & kFilteredOut ? kMaxCategories : 0);
    if (!seen_[place]) places_[used_++] = static_cast<std::uint8_t>(place);
    seen_[place] = true;
    ns_[place] += ns;
  }

  // The category of the largest share and the sum over what passes the filter, or of what does not; cleared.
  std::pair<std::uint8_t, double> take() {
    double sums[2] = {0, 0}, best[2] = {-1, -1};
    std::uint8_t winner[2] = {0, 0};
    for (int i = 0; i < used_; ++i) {
      const std::uint8_t place = places_[i];
      const int left_out = place >= kMaxCategories;
      sums[left_out] += ns_[place];
      if (ns_[place] > best[left_out]) best[left_out] = ns_[place], winner[left_out] = place;
      ns_[place] = 0;
      seen_[place] = false;
    }
    const int side = best[0] < 0;
    used_ = 0;
    const auto category = static_cast<std::uint8_t>(winner[side] & (kMaxCategories - 1));
    return {side == 0 ? category : static_cast<std::uint8_t>(category | kFilteredOut), sums[side]};
  }
  bool empty() const { return used_ == 0; }

 private:
  static constexpr int kPlaces = 2 * kMaxCategories;
  std::array<double, kPlaces> ns_{};
  std::array<std::uint8_t, kPlaces> places_{};
  std::array<bool, kPlaces> seen_{};
  int used_ = 0;
};

// Spans without length are seen all the same.
double seen_length(const LaneSpans& spans, std::size_t slot) {
  return std::max(static_cast<double>(spans.length(slot)), 1.0);
}

// Adds a column, or lengthens the one before when it looks the same.
void add_column(std::vector<Stroke>& strokes, std::size_t first, float x, float width, std::uint8_t category,
                double share) {
  const float coverage =
      std::max(1.0f, std::round(static_cast<float>(std::min(share, 1.0)) * kShades)) / kShades;
  if (strokes.size() > first) {
    Stroke& before = strokes.back();
    const bool same = before.slot < 0 && before.category == category && before.coverage == coverage;
    if (same && std::abs(before.x1 - x) < 0.01f) {
      before.x1 = x + width;
      return;
    }
  }
  strokes.push_back({x, x + width, coverage, category, -1});
}

}  // namespace

void LevelOfDetail::set_categories(Categories categories) {
  categories_ = std::move(categories);
  for (RowBins& bins : bins_) bins = {};
}

void LevelOfDetail::build(std::size_t index) {
  const LaneRow& row = spans_->rows()[index];
  RowBins& bins = bins_[index];
  bins.built = true;
  build_runs(index);
  const std::size_t count = std::min(row.count / kSpansPerBin, kMostBins);
  if (count < kFewestBins) return;
  bins.width = static_cast<double>(spans_->end_of_run()) / static_cast<double>(count);
  bins.busy.assign(count, 0);
  bins.category.assign(count, kFilteredOut);
  Mixture mixture;
  std::size_t bin = 0;
  const auto close = [&] {
    if (mixture.empty()) return;
    const auto [category, ns] = mixture.take();
    bins.category[bin] = category;
    bins.busy[bin] = static_cast<float>(ns);
  };
  double bin_end = bins.width;
  for (std::size_t slot = row.first; slot < row.last(); ++slot) {
    auto from = static_cast<double>(spans_->start(slot));
    const auto to = static_cast<double>(spans_->end(slot));
    const std::uint8_t category = category_of(slot);
    while (true) {
      if (from >= bin_end && bin + 1 < count) {
        close();
        bin = std::min(static_cast<std::size_t>(from / bins.width), count - 1);
        bin_end = static_cast<double>(bin + 1) * bins.width;
        if (from >= bin_end && bin + 1 < count) bin_end = static_cast<double>(++bin + 1) * bins.width;
      }
      if (to <= bin_end || bin + 1 >= count) break;
      mixture.add(category, bin_end - from);
      from = bin_end;
    }
    mixture.add(category, to - from);
  }
  close();
}

void LevelOfDetail::build_runs(std::size_t index) {
  const LaneRow& row = spans_->rows()[index];
  std::vector<SpanRun>& runs = bins_[index].runs;
  runs.reserve(row.count / kSpansPerRun);
  Mixture mixture;
  for (std::size_t first = row.first; first + kSpansPerRun <= row.last(); first += kSpansPerRun) {
    SpanRun run;
    for (std::size_t slot = first; slot < first + kSpansPerRun; ++slot) {
      run.longest = std::max(run.longest, spans_->length(slot));
      mixture.add(category_of(slot), seen_length(*spans_, slot));
    }
    const auto [category, ns] = mixture.take();
    run.category = category;
    run.busy = static_cast<float>(ns);
    runs.push_back(run);
  }
}

void LevelOfDetail::draw(std::size_t row, const TimeWindow& window, float pixels,
                         std::vector<Stroke>& strokes) {
  if (!bins_[row].built) build(row);
  const RowBins& bins = bins_[row];
  const double per_pixel = window.length() / pixels;
  if (bins.width > 0 && per_pixel >= kBinsPerPixel * bins.width)
    draw_bins(bins, window, pixels, strokes);
  else
    draw_spans(row, window, pixels, strokes);
}

// Neighbouring columns share no bin and leave none out, so that what is drawn adds up to what there is.
void LevelOfDetail::draw_bins(const RowBins& bins, const TimeWindow& window, float pixels,
                              std::vector<Stroke>& strokes) const {
  const std::size_t first = strokes.size();
  const double per_pixel = window.length() / pixels;
  const auto bin_at = [&](double time) {
    return static_cast<std::size_t>(
        std::clamp(time / bins.width, 0.0, static_cast<double>(bins.busy.size())));
  };
  Mixture mixture;
  std::size_t bin = bin_at(window.begin);
  const int columns = static_cast<int>(std::ceil(pixels));
  for (int column = 0; column < columns; ++column) {
    const std::size_t end = bin_at(window.begin + per_pixel * (column + 1));
    for (; bin < end; ++bin)
      if (bins.busy[bin] > 0) mixture.add(bins.category[bin], static_cast<double>(bins.busy[bin]));
    if (mixture.empty()) continue;
    const auto [category, ns] = mixture.take();
    add_column(strokes, first, static_cast<float>(column), 1, category, ns / per_pixel);
  }
}

void LevelOfDetail::draw_spans(std::size_t index, const TimeWindow& window, float pixels,
                               std::vector<Stroke>& strokes) const {
  const LaneRow& row = spans_->rows()[index];
  const std::vector<SpanRun>& runs = bins_[index].runs;
  const std::size_t first = strokes.size();
  const double per_pixel = window.length() / pixels;
  const auto x_of = [&](std::int64_t time) {
    return static_cast<float>((static_cast<double>(time) - window.begin) / per_pixel);
  };
  Mixture mixture;
  std::size_t slot = spans_->first_ending_after(row, static_cast<std::int64_t>(std::max(window.begin, 0.0)));
  while (slot < row.last() && static_cast<double>(spans_->start(slot)) < window.end) {
    if (static_cast<double>(spans_->length(slot)) >= per_pixel) {
      strokes.push_back({std::max(x_of(spans_->start(slot)), 0.0f), std::min(x_of(spans_->end(slot)), pixels),
                         1, category_of(slot), static_cast<std::int64_t>(slot)});
      ++slot;
      continue;
    }
    // All short spans that begin in this pixel.
    const float x = std::floor(x_of(spans_->start(slot)));
    const double column_begin = window.begin + static_cast<double>(x) * per_pixel,
                 column_end = column_begin + per_pixel;
    // The first one in any case: a pixel may be shorter than doubles tell apart.
    const auto begins_here = [&](std::size_t at) {
      return static_cast<double>(spans_->start(at)) < column_end;
    };
    const auto is_short = [&](std::int64_t length) { return static_cast<double>(length) < per_pixel; };
    do {
      const std::size_t run = (slot - row.first) / kSpansPerRun;
      const bool whole = (slot - row.first) % kSpansPerRun == 0 && run < runs.size() &&
                         begins_here(slot + kSpansPerRun - 1) && is_short(runs[run].longest);
      if (whole) {
        mixture.add(runs[run].category, static_cast<double>(runs[run].busy));
        slot += kSpansPerRun;
      } else {
        mixture.add(category_of(slot), seen_length(*spans_, slot));
        ++slot;
      }
    } while (slot < row.last() && begins_here(slot) && is_short(spans_->length(slot)));
    const auto [category, ns] = mixture.take();
    if (x >= 0) add_column(strokes, first, x, 1, category, ns / per_pixel);
  }
}

std::int64_t LevelOfDetail::busy(std::size_t index, std::int64_t from, std::int64_t to) const {
  const LaneRow& row = spans_->rows()[index];
  std::int64_t sum = 0;
  for (std::size_t slot = spans_->first_ending_after(row, from);
       slot < row.last() && spans_->start(slot) < to; ++slot)
    sum += std::min(spans_->end(slot), to) - std::max(spans_->start(slot), from);
  return sum;
}

}  // namespace moebius::viz
