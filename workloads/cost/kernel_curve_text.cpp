// The curve for people: a table of its points, and below it the rate against the swept size, both axes
// logarithmic, the roofline beside it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "hw/percent.h"
#include "workloads/cost/kernel_curve.h"
#include "workloads/cost/roofline.h"

namespace moebius {

namespace {

constexpr int kWidth = 96, kHeight = 18;  // of the plot; labels stand in the margin of ten columns before it

// Sizes may be given that take longer than Time can hold.
std::string time_text(double seconds) {
  return seconds < 1e9 ? to_text(time_from_seconds(seconds)) : fmt::format("{:.3g} s", seconds);
}

// At spaces, further lines indented.
std::string wrapped(const std::string& text) {
  std::string lines, line = " ";
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (line.size() + 1 + (end - start) > kKernelCurveColumns) {
      lines += line + "\n";
      line = "   ";
    }
    line += ' ' + text.substr(start, end - start);
    start = end + 1;
  }
  return lines + line + "\n";
}

std::string peak_text(const KernelCurve& curve) {
  const Accelerator& chip = curve.chip;
  const DType used = executed_dtype(chip, curve.products);
  std::string peak = fmt::format("{} {}", to_text(chip.peak_of(used)), to_string(used));
  if (used != curve.sweep.dtype)
    peak += fmt::format(" ({} operands are multiplied in it)", to_string(curve.sweep.dtype));
  return peak;
}

std::string heading(const KernelCurve& curve) {
  const Accelerator& chip = curve.chip;
  std::string text = fmt::format("{}: {}, {}\n", chip.id, curve.sweep.name, curve.sweep.help);
  text += wrapped(curve.sweep.sizes);
  text += uses_tensor_cores(curve.sweep.op)
              ? fmt::format("  peak of the chip {}, memory {}\n", peak_text(curve), to_text(chip.memory_rate))
              : fmt::format("  runs at memory speed: {}\n", to_text(chip.memory_rate));
  return text + wrapped("costs: " + curve.costs) + "\n";
}

// Of the whole chip, whatever the cores held; kernels that run at memory speed have none.
std::string of_peak(const KernelCurve& curve, const KernelPoint& point) {
  if (!uses_tensor_cores(curve.sweep.op)) return "-";
  const DType used = executed_dtype(curve.chip, curve.products);
  return percent(point.flop_rate() / curve.chip.peak_of(used).value) + "%";
}

// A profile that knows the board's power may still not know that of a number format.
bool knows_power(const KernelCurve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const KernelPoint& point) { return point.cost.watts > 0; });
}

std::string watts_text(const KernelPoint& point) {
  return point.cost.watts > 0 ? fmt::format("{:.0f} W", point.cost.watts) : "-";
}

std::string row_text(const KernelCurve& curve, const KernelPoint& point) {
  const std::string step = point.step > 0 ? fmt::format("step +{:.0f}%", 100 * point.step) : "";
  const std::string watts = knows_power(curve) ? fmt::format("{:>7}", watts_text(point)) : "";
  const std::string text = fmt::format(
      "{:>12}{:>11}{:>10.4g}{:>11}{:>8}{:>8}{:>10}{}  {:<13}{:>6}  {}", point.x,
      time_text(point.cost.seconds), 1e-12 * point.flop_rate(), to_text(ByteRate{point.byte_rate()}),
      of_peak(curve, point), percent(point.byte_rate() / curve.chip.memory_rate.value) + "%",
      percent(point.bound / point.cost.seconds) + "%", watts, to_string(point.cost.origin),
      fmt::format("±{:.0f}%", 100 * point.cost.error), step);
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

// The times of the table are those of a kernel that comes after a pause. What draws more than the board may
// runs at a lower clock when it goes on.
std::string sustained_text(const KernelCurve& curve) {
  constexpr double kFull = 0.9995;
  std::string rows;
  for (const KernelPoint& point : curve.points)
    if (point.clock < kFull)
      rows += fmt::format("{:>12}{:>11}{:>10.4g}{:>10}%\n", point.x, time_text(point.sustained_seconds()),
                          1e-12 * point.flops / point.sustained_seconds(), percent(point.clock));
  if (rows.empty()) return {};
  return fmt::format(
             "\n  without end, at the board's limit of {:.6g} W and {:.0f}% of the clock at least; above: "
             "after a pause\n",
             curve.limit, 100 * kLeastClock) +
         fmt::format("{:>12}{:>11}{:>10}{:>11}\n", curve.sweep.axis, "time", "TFLOP/s", "of clock") + rows;
}

// ---- the plot ----

// What the plot shows: arithmetic, or bytes for kernels that run at memory speed.
struct Rates {
  double achieved = 0, roofline = 0;
};

Rates rates_of(const KernelCurve& curve, const KernelPoint& point) {
  const double work = uses_tensor_cores(curve.sweep.op) ? point.flops : point.bytes;
  return {work / point.cost.seconds, work / point.bound};
}

// A logarithmic axis of `cells` cells.
struct Axis {
  double low = 0, high = 0;
  int cells = 0;

  int cell(double value) const {
    const double share = low < high ? std::log(value / low) / std::log(high / low) : 0;
    return std::clamp(static_cast<int>(std::lround(share * (cells - 1))), 0, cells - 1);
  }
};

Axis rate_axis(const KernelCurve& curve) {
  Axis axis{std::numeric_limits<double>::max(), 0, kHeight};
  for (const KernelPoint& point : curve.columns) {
    const Rates rates = rates_of(curve, point);
    axis.low = std::min({axis.low, rates.achieved, rates.roofline});
    axis.high = std::max({axis.high, rates.achieved, rates.roofline});
  }
  return axis;
}

using Canvas = std::array<std::array<char, kWidth>, kHeight>;  // rows from below

Canvas drawn(const KernelCurve& curve, const Axis& across, const Axis& up) {
  Canvas canvas;
  for (auto& row : canvas) row.fill(' ');
  for (const KernelPoint& point : curve.columns) {
    const Rates rates = rates_of(curve, point);
    const auto column = static_cast<std::size_t>(across.cell(static_cast<double>(point.x)));
    canvas[static_cast<std::size_t>(up.cell(rates.roofline))][column] = '.';
    canvas[static_cast<std::size_t>(up.cell(rates.achieved))][column] = '#';
  }
  return canvas;
}

// Labels of rows: 1, 2 and 5 of each decade, where they fall; the first one that falls on a row stays.
std::array<std::string, kHeight> row_labels(const Axis& up, bool arithmetic) {
  std::array<std::string, kHeight> labels;
  const auto decade_of = [](double value) { return static_cast<int>(std::floor(std::log10(value))); };
  for (int decade = decade_of(up.low); decade <= decade_of(up.high); ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10, decade);
      if (value < up.low || value > up.high) continue;
      std::string& label = labels[static_cast<std::size_t>(up.cell(value))];
      if (label.empty()) label = fmt::format("{:g}", value * (arithmetic ? 1e-12 : 1e-9));
    }
  }
  return labels;
}

// Below the axis: every fourth doubling, where there is room.
std::string column_labels(const KernelSweep& sweep, const Axis& across) {
  std::string line(kWidth, ' ');
  for (std::int64_t x = sweep.first; x <= sweep.last; x *= 4) {
    const std::string label = std::to_string(x);
    const auto at = static_cast<std::size_t>(across.cell(static_cast<double>(x)));
    const std::size_t start = std::min(at, line.size() - label.size());
    const bool free = line.find_first_not_of(' ', start > 0 ? start - 1 : 0) == std::string::npos;
    if (free) line.replace(start, label.size(), label);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string plot(const KernelCurve& curve) {
  const KernelSweep& sweep = curve.sweep;
  const bool arithmetic = uses_tensor_cores(sweep.op);
  const Axis across{static_cast<double>(sweep.first), static_cast<double>(sweep.last), kWidth};
  const Axis up = rate_axis(curve);
  const Canvas canvas = drawn(curve, across, up);
  const auto labels = row_labels(up, arithmetic);
  std::string text = fmt::format("{:>10} against {}:  █ achieved  · roofline of the cores held\n",
                                 arithmetic ? "TFLOP/s" : "GB/s", sweep.axis);
  for (std::size_t row = kHeight; row-- > 0;) {
    std::string line = fmt::format("{:>10} │", labels[row]);
    const std::string cells(canvas[row].begin(), canvas[row].end());
    for (const char cell : cells.substr(0, cells.find_last_not_of(' ') + 1))
      line += cell == '#' ? "█" : cell == '.' ? "·" : " ";
    text += line + "\n";
  }
  std::string rule;
  for (int i = 0; i < kWidth; ++i) rule += "─";
  return text + fmt::format("{:>10} └{}\n{:>12}{}\n", "", rule, "", column_labels(sweep, across));
}

}  // namespace

std::string to_text(const KernelCurve& curve) {
  std::string text = heading(curve);
  text += fmt::format("{:>12}{:>11}{:>10}{:>11}{:>8}{:>8}{:>10}{}  {:<13}{:>6}\n", curve.sweep.axis, "time",
                      "TFLOP/s", "memory", "of peak", "of mem.", "roofline",
                      knows_power(curve) ? fmt::format("{:>7}", "board") : "", "known from", "error");
  for (const KernelPoint& point : curve.points) text += row_text(curve, point);
  text += "  memory: each operand read once, each result written once\n";
  const auto is_step = [](const KernelPoint& point) { return point.step > 0; };
  if (std::any_of(curve.points.begin(), curve.points.end(), is_step))
    text += fmt::format("  step: longer than at {} - {}: a new wave or row of tiles; the first ones\n",
                        curve.sweep.axis, curve.sweep.grain);
  text += sustained_text(curve);
  return curve.points.size() > 1 ? text + "\n" + plot(curve) : text;
}

}  // namespace moebius
