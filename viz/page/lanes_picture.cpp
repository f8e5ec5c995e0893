#include "viz/page/lanes_picture.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "viz/data/op_names.h"
#include "viz/page/charts.h"
#include "viz/page/html.h"
#include "workloads/report/number_text.h"

namespace moebius::viz {

namespace {

constexpr int kColumns = 900, kRow = 12, kGap = 3, kLeft = 150, kFoot = 26;
constexpr std::size_t kMostLetters = 25;  // of a row's name, left of the strokes
constexpr int kLevels = 3;                // of how busy a column is
constexpr int kCommunication = kNumPhases, kWaiting = kNumPhases + 1, kNumKinds = kNumPhases + 2;
constexpr std::array<const char*, kNumKinds> kFill{"#0072b2", "#009e73", "#e69f00", "#8a6fdf",
                                                   "#56b4e9", "#d55e00", "#b9b9b9"};

std::string kind_name(int kind) {
  if (kind == kCommunication) return "communication";
  if (kind == kWaiting) return "waiting for members";
  return std::string(to_string(static_cast<Phase>(kind)));
}

// The busy time of one lane by column and kind.
struct Row {
  std::int32_t rank_class = 0;
  Lane lane = Lane::kCompute;
  std::vector<std::array<float, kNumKinds>> columns =
      std::vector<std::array<float, kNumKinds>>(kColumns, std::array<float, kNumKinds>{});

  // A share of each column that lies between two moments, given in columns.
  void add(double from, double to, int kind) {
    const int first = std::clamp(static_cast<int>(from), 0, kColumns - 1);
    const int last = std::clamp(static_cast<int>(to), 0, kColumns - 1);
    for (int i = first; i <= last; ++i)
      columns[i][kind] += static_cast<float>(std::min(to, i + 1.0) - std::max(from, static_cast<double>(i)));
  }
};

using Rows = std::map<std::pair<std::int32_t, Lane>, Row>;

std::vector<bool> chosen_classes(std::size_t classes, int most) {
  std::vector<bool> chosen(classes, classes <= static_cast<std::size_t>(most));
  for (int i = 0; i < most && classes > 0; ++i) chosen[i * (classes - 1) / std::max(1, most - 1)] = true;
  return chosen;
}

std::int64_t end_of(const SpanColumns& spans) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) end = std::max(end, spans.end(i));
  return end;
}

Rows rows_of(const SpanColumns& spans, std::int64_t until, const std::vector<bool>& chosen) {
  Rows rows;
  const double scale = static_cast<double>(kColumns) / static_cast<double>(until);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const OpRow& op = spans.tables().ops[spans.checked_row(i)];
    const std::int32_t rank_class = spans.rank_class(i);
    if (!chosen[rank_class]) continue;
    Row& row = rows[{rank_class, spans.lane(i)}];
    row.rank_class = rank_class;
    row.lane = spans.lane(i);
    const double from = scale * static_cast<double>(spans.start(i)),
                 to = scale * static_cast<double>(spans.end(i));
    if (row.lane == Lane::kCompute) {
      row.add(from, to, static_cast<int>(op.phase));
      continue;
    }
    const double begun = scale * static_cast<double>(spans.span(i).transfer_start().ns);
    row.add(from, begun, kWaiting);
    row.add(begun, to, kCommunication);
  }
  return rows;
}

struct Cell {
  int kind = -1, level = 0;  // kind -1: nothing
  bool operator==(const Cell&) const = default;
};

// What a column mostly did, and how much of it.
Cell cell_of(const std::array<float, kNumKinds>& column) {
  const auto most = std::max_element(column.begin(), column.end());
  float busy = 0;
  for (const float share : column) busy += share;
  if (busy < 0.02f) return {};
  const int level = std::min(kLevels - 1, static_cast<int>(busy * kLevels));
  return {static_cast<int>(most - column.begin()), level};
}

// Equal neighbours are one stroke; strokes of one colour are one path.
void draw(const Row& row, int y, std::map<std::pair<int, int>, std::string>& paths) {
  for (int x = 0; x < kColumns;) {
    const Cell cell = cell_of(row.columns[x]);
    int end = x + 1;
    while (end < kColumns && cell_of(row.columns[end]) == cell) ++end;
    if (cell.kind >= 0)
      paths[{cell.kind, cell.level}] += fmt::format("M{} {}h{}", x + kLeft, y + kRow / 2, end - x);
    x = end;
  }
}

std::string row_name(const std::string& name, int y, bool strong) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\"{}>{}</text>\n", kLeft - 6, y + kRow - 2,
                     strong ? "" : " opacity=\".6\"", escaped(name));
}

std::string time_axis(std::int64_t until, int y) {
  std::string text;
  for (int i = 0; i <= 4; ++i) {
    const double share = i / 4.0;
    text += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                        kLeft + share * kColumns, y + 16,
                        i == 0   ? "start"
                        : i == 4 ? "end"
                                 : "middle",
                        seconds_text(share * static_cast<double>(until) * 1e-9));
  }
  return text;
}

}  // namespace

LanesPicture lanes_picture(const SpanColumns& spans, std::optional<Time> until, int most_classes) {
  LanesPicture picture;
  const std::int64_t end = until ? until->ns : end_of(spans);
  if (spans.size() == 0 || end <= 0) return picture;
  const std::size_t classes = spans.tables().class_ranks.size();
  const Rows rows = rows_of(spans, end, chosen_classes(classes, most_classes));
  std::map<std::pair<int, int>, std::string> paths;
  std::string names;
  int y = 0;
  std::int32_t before = -1;
  std::array<bool, kNumKinds> drawn{};
  for (const auto& [key, row] : rows) {
    const bool next_class = row.rank_class != before;
    if (next_class && before >= 0) y += kGap;
    before = row.rank_class;
    const std::string ranks = class_name(spans.tables(), row.rank_class), lane(to_string(row.lane));
    if (row.lane == Lane::kCompute) {
      names += row_name(ranks, y, true);
    } else if (!next_class) {
      names += row_name(lane, y, false);
    } else if (ranks.size() + lane.size() + 1 <= kMostLetters) {
      names += row_name(ranks + " " + lane, y, true);
    } else {  // a row without strokes for the name of the class, which computes nothing
      names += row_name(ranks, y, true);
      y += kRow + 1;
      names += row_name(lane, y, false);
    }
    draw(row, y, paths);
    y += kRow + 1;
  }
  const int height = y + kFoot;
  picture.svg = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-size=\"10\" fill=\"currentColor\" "
      "role=\"img\" aria-label=\"lanes over time\">\n",
      kLeft + kColumns + 4, height);
  for (const auto& [cell, path] : paths) {
    drawn[cell.first] = true;
    picture.svg +=
        fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{:.2f}\"/>\n", path,
                    kFill[cell.first], kRow, (cell.second + 1.0) / kLevels);
  }
  picture.svg += names + time_axis(end, y) + "</svg>\n";
  for (int kind = 0; kind < kNumKinds; ++kind) {
    if (drawn[kind])
      picture.caption +=
          fmt::format("<span><i style=\"background:{}\"></i>{}</span>", kFill[kind], kind_name(kind));
  }
  if (classes > static_cast<std::size_t>(most_classes))
    picture.caption +=
        fmt::format("<span class=\"soft\">{} of {} classes of ranks</span>", most_classes, classes);
  return picture;
}

}  // namespace moebius::viz
