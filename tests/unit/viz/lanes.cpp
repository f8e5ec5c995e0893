// Rows, windows, levels of detail and counters: what is drawn adds up to what there is.
#include "hw/error.h"

#include "tests/catch.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/process.h"
#include "viz/data/counter_track.h"
#include "viz/data/lane_spans.h"
#include "viz/data/level_of_detail.h"
#include "viz/data/time_window.h"

namespace {

using namespace moebius;
using namespace moebius::viz;

// One submission of `spans` ops on the compute lane of one class.
Timeline one_lane(const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  Timeline t;
  t.fragments = {"f"};
  t.class_ranks = {0};
  t.class_sizes = {1};
  t.submissions = {{0, 0, 0, 0, 0}};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto op = static_cast<std::int32_t>(i);
    t.ops.push_back({.kind = OpKind::kGemm, .index = op});
    t.spans.push_back({.op = op, .start = {spans[i].first}, .end = {spans[i].second}});
  }
  return t;
}

struct OpenedLanes {
  test::Scratch scratch;
  SpanColumns columns;
  LaneSpans lanes;
  explicit OpenedLanes(const Timeline& t)
      : columns((save_timeline(t, scratch.path("t.mtl")), scratch.path("t.mtl"))), lanes(columns) {}
};

// What strokes fill, in pixels.
double filled(const std::vector<Stroke>& strokes) {
  double sum = 0;
  for (const Stroke& s : strokes) sum += static_cast<double>(s.x1 - s.x0) * static_cast<double>(s.coverage);
  return sum;
}

std::vector<std::pair<std::int64_t, std::int64_t>> half_busy(int count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < count; ++i) spans.emplace_back(i * 100, i * 100 + 50);
  return spans;
}

}  // namespace

TEST_CASE("spans that do not overlap stand in one row by time") {
  const OpenedLanes run(one_lane({{0, 10}, {10, 30}, {40, 50}}));
  REQUIRE(run.lanes.rows().size() == 1);
  CHECK(run.lanes.end_of_run() == 50);
  CHECK(run.lanes.start(2) == 40);
  CHECK(run.lanes.length(1) == 20);
}

TEST_CASE("spans that overlap are dealt out to as few rows as hold them apart") {
  // 0-30 and 40-60 in the first row; 10-20 and 20-50 beside them, as each is free again.
  const OpenedLanes run(one_lane({{0, 30}, {10, 20}, {20, 50}, {40, 60}}));
  REQUIRE(run.lanes.rows().size() == 2);
  CHECK(run.lanes.rows()[0].count == 2);
  CHECK(run.lanes.rows()[1].count == 2);
  for (const LaneRow& row : run.lanes.rows())
    CHECK(run.lanes.end(row.first) <= run.lanes.start(row.first + 1));
  std::size_t row = 0, slot = 0;
  REQUIRE(run.lanes.find(run.columns, 2, row, slot));
  CHECK(run.lanes.start(slot) == 20);
  CHECK(row == 1);
}

TEST_CASE("a span longer than 32 bits of nanoseconds keeps its length") {
  const std::int64_t hour = 3'600'000'000'000;
  const OpenedLanes run(one_lane({{0, hour}, {hour, hour + 5}, {hour + 5, 3 * hour}}));
  CHECK(run.lanes.length(0) == hour);
  CHECK(run.lanes.length(1) == 5);
  CHECK(run.lanes.length(2) == 2 * hour - 5);
}

TEST_CASE("the first span that ends after a time is found among many") {
  const OpenedLanes run(one_lane(half_busy(1000)));
  const LaneRow& row = run.lanes.rows()[0];
  CHECK(run.lanes.first_ending_after(row, 0) == 0);
  CHECK(run.lanes.first_ending_after(row, 49) == 0);
  CHECK(run.lanes.first_ending_after(row, 50) == 1);     // it has ended
  CHECK(run.lanes.first_ending_after(row, 6425) == 64);  // 6,400 to 6,450
  CHECK(run.lanes.first_ending_after(row, 6460) == 65);
  CHECK(run.lanes.first_ending_after(row, 1'000'000) == row.last());
}

TEST_CASE("spans a pixel wide are drawn as they are, narrower ones as columns of their share") {
  const OpenedLanes run(one_lane(half_busy(1000)));
  LevelOfDetail lod(run.lanes);
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 1000}, 1000, strokes);  // 1 ns a pixel
  CHECK(strokes.size() == 10);
  CHECK(strokes[3].slot == 3);
  CHECK(strokes[3].x0 == 300);
  CHECK(strokes[3].x1 == 350);
  strokes.clear();
  lod.draw(0, {0, 100'000}, 100, strokes);  // ten spans a pixel, half of each busy: one stroke
  REQUIRE(strokes.size() == 1);
  CHECK(strokes[0].slot == -1);
  CHECK(strokes[0].coverage == 0.5f);
  CHECK(strokes[0].x1 - strokes[0].x0 == 100);
}

TEST_CASE("what is drawn fills as much as the spans do at every zoom") {
  // 100,000 spans, of 10, 20, ... 70 of each 100 ns in turn: 40% on average.
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < 100'000; ++i) spans.emplace_back(i * 100, i * 100 + 10 * (1 + i % 7));
  const OpenedLanes run(one_lane(spans));
  LevelOfDetail lod(run.lanes);
  for (const double share : {1.0, 0.3, 0.03, 0.003, 0.0003}) {
    const TimeWindow window{0, share * 1e7};
    std::vector<Stroke> strokes;
    lod.draw(0, window, 1600, strokes);
    const double busy = static_cast<double>(lod.busy(0, 0, static_cast<std::int64_t>(window.end)));
    INFO("share " << share << ", " << strokes.size() << " strokes");
    // Shades are sixteenths, rounded to the nearest.
    CHECK(filled(strokes) / 1600 == Approx(busy / window.end).margin(0.03));
    CHECK(strokes.size() <= 1600);
  }
}

TEST_CASE("many spans in one pixel cost no more than a few hundred") {
  // A million spans in the first hundredth of the run, and one at its end.
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < 1'000'000; ++i) spans.emplace_back(i * 10, i * 10 + 10);
  spans.emplace_back(1'000'000'000, 1'000'000'010);
  const OpenedLanes run(one_lane(spans));
  LevelOfDetail lod(run.lanes);
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 1e9}, 1600, strokes);
  CHECK(strokes.size() <= 4);
  CHECK(filled(strokes) == Approx(17).margin(2));  // 16 pixels of the cluster and a column for the last
}

TEST_CASE(
    "a column shows the category that fills most of it and what a filter leaves only where nothing passes") {
  const OpenedLanes run(one_lane({{0, 10}, {10, 40}, {40, 45}}));
  LevelOfDetail lod(run.lanes);
  lod.set_categories({3, 5, 5});
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 100}, 1, strokes);
  REQUIRE(strokes.size() == 1);
  CHECK(strokes[0].category == 5);
  lod.set_categories({3, 5 | kFilteredOut, 5 | kFilteredOut});
  strokes.clear();
  lod.draw(0, {0, 100}, 1, strokes);
  CHECK(strokes[0].category == 3);
  lod.set_categories({3 | kFilteredOut, 5 | kFilteredOut, 5 | kFilteredOut});
  strokes.clear();
  lod.draw(0, {0, 100}, 1, strokes);
  CHECK(strokes[0].category == (5 | kFilteredOut));
}

// Whatever bytes come: an error, or something that can be laid out and drawn.
TEST_CASE("damaged timelines are errors and nothing worse") {
  const test::Scratch scratch;
  save_timeline(one_lane(half_busy(40)), scratch.path("t.mtl"));
  const std::string whole = test::text_of(scratch.path("t.mtl"));
  std::uint64_t state = 1;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  int refused = 0, drawn = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (std::size_t change = 0; change <= random(3); ++change)
      bytes[random(bytes.size())] = static_cast<char>(random(4) == 0 ? 0xff : random(256));
    if (random(10) == 0) bytes.resize(random(bytes.size()));
    try {
      const SpanColumns columns(scratch.write("damaged.mtl", bytes));
      const LaneSpans lanes(columns);
      LevelOfDetail lod(lanes);
      std::vector<Stroke> strokes;
      for (std::size_t row = 0; row < lanes.rows().size(); ++row)
        lod.draw(row, {0, static_cast<double>(lanes.end_of_run()) + 1}, 100, strokes);
      for (std::size_t span = 0; span < columns.size(); ++span) static_cast<void>(columns.span(span));
      ++drawn;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
  CHECK(drawn > 100);  // what a byte of a size or a name says cannot be known to be wrong
}

TEST_CASE("zooming keeps the time under the cursor where it is") {
  TimeWindow window{1000, 2000};
  const double before = window.at(0.25);
  window.zoom(0.8, 0.25);
  CHECK(window.at(0.25) == Approx(before));
  CHECK(window.length() == Approx(800));
  window.pan(0.5);
  CHECK(window.at(0.25) == Approx(before + 400));
  window.zoom(1e-9, 0.5);
  CHECK(window.length() == Approx(20));  // nothing is shorter than the clock's grain by much
  window.zoom(1e9, 0.5);
  window.clamp(5000);
  CHECK(window.begin == Approx(-250));
  CHECK(window.end == Approx(5250));
}

TEST_CASE("numbered counters are one family") {
  CHECK(family_of("wire nic-out 3") == "wire nic-out");
  CHECK(family_of("tier nic-out mean") == "tier nic-out mean");
  CHECK(family_of("memory") == "memory");
  CHECK(family_of("odd ") == "odd ");
}

TEST_CASE("the extent of a counter over a stretch is that of its samples") {
  std::vector<std::int64_t> times;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    times.push_back(10 * i);
    values.push_back((i * 37) % 101);
  }
  const CounterTrack track("queue", 0, times, values);
  for (const auto& [from, to] : {std::pair{0, 9990}, {15, 16}, {333, 4777}, {5000, 5000}, {9000, 20000}}) {
    // A counter holds its value till the next sample: the one at or before `from` counts.
    double low = 1e9, high = -1e9;
    for (int i = 0; i < 1000; ++i)
      if (times[i] <= to && (i == 999 || times[i + 1] > from))
        low = std::min(low, values[i]), high = std::max(high, values[i]);
    INFO(from << " to " << to);
    CHECK(track.between(from, to).low == low);
    CHECK(track.between(from, to).high == high);
  }
  CHECK(track.at(-1) == 0);
}

TEST_CASE("more spans in a pixel than are looked at one by one fill it as far as they do") {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < 400; ++i) spans.emplace_back(i * 200, i * 200 + 100);  // 40 of 990 us
  spans.emplace_back(980'000, 990'000);
  const OpenedLanes run(one_lane(spans));
  LevelOfDetail lod(run.lanes);
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 990'000}, 1, strokes);
  CHECK(filled(strokes) == Approx(0.05).margin(1.0 / 16));
}

TEST_CASE("what a filter keeps among many is seen") {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < 3000; ++i) spans.emplace_back(i * 10, i * 10 + 5);
  const OpenedLanes run(one_lane(spans));
  LevelOfDetail lod(run.lanes);
  Categories categories(spans.size(), kFilteredOut);
  categories[2000] = 7;
  lod.set_categories(categories);
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 1e9}, 1000, strokes);
  REQUIRE(strokes.size() == 1);
  CHECK(strokes[0].category == 7);
}

TEST_CASE("spans without length hide no others") {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < 200; ++i) spans.emplace_back(0, 0);
  for (int i = 0; i < 60'000; ++i) spans.emplace_back(1000 + i * 10'000, 1000 + i * 10'000 + 9000);
  const OpenedLanes run(one_lane(spans));
  LevelOfDetail lod(run.lanes);
  Categories categories(spans.size(), 3);
  std::fill_n(categories.begin(), 200, std::uint8_t{2});
  lod.set_categories(categories);
  std::vector<Stroke> strokes;
  lod.draw(0, {0, 6e8}, 1000, strokes);
  CHECK(filled(strokes) == Approx(900).epsilon(0.08));
}

// At four days a double has steps of 0.06 ns, and pixels may be shorter.
TEST_CASE("a window of nanoseconds after days is drawn") {
  const std::int64_t days = 310'000'000'000'000;
  const OpenedLanes run(one_lane({{0, 1}, {days, days}, {days + 10, days + 10}}));
  LevelOfDetail lod(run.lanes);
  std::vector<Stroke> strokes;
  const auto at = static_cast<double>(days);
  lod.draw(0, {at - 10, at + 10}, 4000, strokes);
  CHECK_FALSE(strokes.empty());
}
