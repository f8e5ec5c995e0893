// The picture of a fabric as SVG: pods side by side in frames, cores over them, regions joined on top.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/fabric/drawing.h"

namespace moebius {
namespace {

constexpr double kWidth = 1120, kMargin = 40, kBox = 34, kBoxHeight = 22;
constexpr int kPodsShown = 3, kShown = 5;  // pods; boxes of a row in a pod

struct Point {
  double x = 0, y = 0;
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

class Canvas {
 public:
  void line(Point a, Point b, const char* colour, double width = 0.7) {
    lines_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{}\"/>\n",
        a.x, a.y, b.x, b.y, colour, width);
  }
  void frame(Point at, double width, double height) {
    frames_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" "
        "fill=\"#f6f7f9\" stroke=\"#c9ced6\"/>\n",
        at.x, at.y, width, height);
  }
  void box(Point middle, const std::string& label, const char* fill) {
    boxes_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{}\"/>\n",
                    middle.x - kBox / 2, middle.y - kBoxHeight / 2, kBox, kBoxHeight, fill);
    text({middle.x, middle.y + 4}, label, "middle", 11, "#ffffff");
  }
  void text(Point at, const std::string& words, const char* anchor, int size, const char* colour) {
    boxes_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}"
        "</text>\n",
        at.x, at.y, anchor, size, colour, escaped(words));
  }
  std::string document(double height) const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               kWidth, height) +
           frames_ + lines_ + boxes_ + "</svg>\n";
  }

 private:
  std::string frames_, lines_, boxes_;  // drawn in this order
};

// The numbers of the boxes that are shown of `count`; -1: a gap.
std::vector<int> shown(int count, int most) {
  std::vector<int> numbers;
  for (int i = 0; i < std::min(count, count > most ? most - 1 : most); ++i) numbers.push_back(i);
  if (count > most) numbers.insert(numbers.end(), {-1, count - 1});
  return numbers;
}

struct Row {
  double y = 0;
  const char* fill = "";
};

// Draws a row of boxes between two x and returns where they stand.
std::vector<Point> add_row(Canvas& canvas, int count, std::pair<double, double> span, Row row, int most) {
  std::vector<Point> places;
  const std::vector<int> numbers = shown(count, most);
  const double step = (span.second - span.first) / static_cast<double>(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Point at{span.first + step * (static_cast<double>(i) + 0.5), row.y};
    if (numbers[i] < 0) {
      canvas.text({at.x, at.y + 4}, "...", "middle", 14, "#5a6472");
      continue;
    }
    canvas.box(at, std::to_string(numbers[i]), row.fill);
    places.push_back(at);
  }
  return places;
}

void join(Canvas& canvas, const std::vector<Point>& above, const std::vector<Point>& below,
          const char* colour) {
  for (const Point& a : above) {
    for (const Point& b : below)
      canvas.line({a.x, a.y + kBoxHeight / 2}, {b.x, b.y - kBoxHeight / 2}, colour);
  }
}

struct Rows {
  double border = 0, core = 0, spine = 0, leaf = 0, node = 0, end = 0;
};

Rows rows_of(const Sketch& sketch) {
  Rows rows;
  double y = 132;  // below the title, its line of figures and the labels of the first row
  const auto next = [&](bool used) { return used ? std::exchange(y, y + 110) : y; };
  rows.border = next(sketch.regions > 1);
  rows.core = next(sketch.cores > 0);
  rows.spine = next(sketch.tiers >= 2);
  rows.leaf = next(true);
  rows.node = std::exchange(y, y + 40);
  rows.end = y + 40;
  return rows;
}

struct LowerRows {
  const Sketch::Pod& pod;
  const std::vector<Point>&leaves, &nodes;
};

// The numbers of the boxes that stand in a row, as add_row() places them.
std::vector<int> boxed(int count) {
  std::vector<int> numbers = shown(count, kShown);
  std::erase(numbers, -1);
  return numbers;
}

void hang_nodes(Canvas& canvas, const Sketch& sketch, const LowerRows& rows) {
  const std::vector<int> leaves = boxed(rows.pod.leaves), nodes = boxed(rows.pod.nodes);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      if (leaves[i] / sketch.leaves_of_group == nodes[j] / sketch.nodes_of_group)
        join(canvas, {rows.leaves[i]}, {rows.nodes[j]}, "#aab2bd");
    }
  }
}

std::vector<Point> draw_pod(Canvas& canvas, const Sketch& sketch, int index, std::pair<double, double> span,
                            const Rows& rows) {
  const Sketch::Pod& pod = sketch.pods[index];
  const double top = (sketch.tiers >= 2 ? rows.spine : rows.leaf) - 40;
  canvas.frame({span.first, top}, span.second - span.first, rows.node + 35 - top);
  if (sketch.pods.size() > 1) {
    const char* what = sketch.tiers == 3 ? "pod" : "region";
    canvas.text({span.first + 10, top + 18}, fmt::format("{} {}", what, index), "start", 12, "#5a6472");
  }
  auto leaves = add_row(canvas, pod.leaves, span, {rows.leaf, "#2f6db5"}, kShown);
  const auto nodes = add_row(canvas, pod.nodes, span, {rows.node, "#5a6472"}, kShown);
  hang_nodes(canvas, sketch, {pod, leaves, nodes});
  if (sketch.tiers < 2) return leaves;
  auto spines = add_row(canvas, pod.spines, span, {rows.spine, "#27856a"}, kShown);
  join(canvas, spines, leaves, "#8fb7a9");
  return spines;
}

void label(Canvas& canvas, double y, const char* name, const std::string& words) {
  canvas.text({kMargin, y - 28}, name, "start", 13, "#1d2530");
  canvas.text({kWidth - kMargin, y - 28}, words, "end", 12, "#5a6472");
}

std::string links(const std::string& rate) {
  return rate.empty() ? "" : "links of " + rate;
}

void draw_labels(Canvas& canvas, const Sketch& sketch, const Rows& rows) {
  canvas.text({kMargin, 34}, sketch.title, "start", 20, "#1d2530");
  const std::string planes =
      sketch.planes > 1 ? fmt::format("{} planes alike, one is drawn; ", sketch.planes) : "";
  canvas.text({kMargin, 54},
              fmt::format("{} x {} of {}; {}NIC ports of {}", sketch.nodes, sketch.node,
                          sketch.devices_per_node, planes, sketch.nic),
              "start", 12, "#5a6472");
  if (sketch.cores > 0) label(canvas, rows.core, "core", links(sketch.core_link));
  const double pods = sketch.tiers >= 2 ? rows.spine : rows.leaf;
  label(canvas, pods - 18, sketch.tiers >= 2 ? "spine, leaf, node" : "leaf, node", links(sketch.leaf_link));
}

}  // namespace

std::string svg_drawing(const Sketch& sketch) {
  Canvas canvas;
  const Rows rows = rows_of(sketch);
  const double inner = kWidth - 2 * kMargin;
  if (sketch.pods.empty()) {
    add_row(canvas, sketch.nodes, {kMargin, kWidth - kMargin}, {rows.node, "#5a6472"}, 1);
    return canvas.document(rows.end);
  }
  draw_labels(canvas, sketch, rows);
  const std::vector<int> pods = shown(static_cast<int>(sketch.pods.size()), kPodsShown);
  const double step = inner / static_cast<double>(pods.size());
  std::vector<std::vector<Point>> tops(sketch.regions), cores(sketch.regions);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const double left = kMargin + step * static_cast<double>(i);
    if (pods[i] < 0) {
      canvas.text({left + step / 2, rows.leaf}, "...", "middle", 20, "#5a6472");
      continue;
    }
    const auto top = draw_pod(canvas, sketch, pods[i], {left + 6, left + step - 6}, rows);
    auto& of_region = tops[sketch.pods[pods[i]].region];
    of_region.insert(of_region.end(), top.begin(), top.end());
  }
  const double share = inner / sketch.regions;
  std::vector<Point> borders;
  for (int region = 0; region < sketch.regions; ++region) {
    const double left = kMargin + share * region;
    if (sketch.cores > 0) {
      cores[region] = add_row(canvas, sketch.cores, {left, left + share}, {rows.core, "#8a4fa3"}, 8);
      join(canvas, cores[region], tops[region], "#c3a6d1");
    }
    if (sketch.regions == 1) continue;
    borders.push_back({left + share / 2, rows.border});
    canvas.box(borders.back(), std::to_string(region), "#b5562f");
    join(canvas, {borders.back()}, sketch.cores > 0 ? cores[region] : tops[region], "#d9b29f");
  }
  for (std::size_t i = 1; i < borders.size(); ++i) canvas.line(borders[i - 1], borders[i], "#b5562f", 3);
  if (sketch.regions > 1)
    canvas.text({kWidth / 2, rows.border - 16}, sketch.region_link, "middle", 12, "#b5562f");
  return canvas.document(rows.end);
}

}  // namespace moebius
