#include "workloads/report/loss_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "hw/document.h"
#include "hw/reader.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

constexpr int kSmoothed = 10;  // steps
constexpr std::size_t kPlotColumns = 72;
constexpr int kRows = 14;

double number_of(const Value& value, const Place& place) {
  const bool number = value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kInteger;
  if (!number) place.fail("expected a loss, found " + value.excerpt());
  return value.number;
}

double apart(double a, double b) {
  return a == b ? 0 : std::abs(b - a) / std::max(std::abs(a), 1e-300);
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The steps of a curve that both runs have.
std::span<const double> common(const LossCurve& curve, const LossComparison& both) {
  return std::span(curve.losses)
      .subspan(static_cast<std::size_t>(both.first_step - curve.first_step),
               static_cast<std::size_t>(both.num_steps));
}

void compare_steps(std::span<const double> a, std::span<const double> b, LossComparison& result) {
  for (int i = 0; i < result.num_steps; ++i) {
    const double difference = apart(a[i], b[i]);
    const int step = result.first_step + i;
    if (a[i] != b[i] && !result.first_different) result.first_different = step;
    if (difference > kLossTolerance && !result.first_apart) result.first_apart = step;
    result.mean += difference / result.num_steps;
    if (difference <= result.largest) continue;
    result.largest = difference;
    result.largest_step = step;
  }
}

void compare_means(std::span<const double> a, std::span<const double> b, LossComparison& result) {
  const auto width = static_cast<std::size_t>(result.smoothed = std::min(kSmoothed, result.num_steps));
  for (std::size_t first = 0; first + width <= a.size(); ++first) {
    result.smooth_a = mean(a.subspan(first, width));
    result.smooth_b = mean(b.subspan(first, width));
    result.smooth_largest = std::max(result.smooth_largest, apart(result.smooth_a, result.smooth_b));
  }
}

// A curve as so many means of consecutive steps.
std::vector<double> in_columns(std::span<const double> curve, std::size_t columns) {
  std::vector<double> means;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t first = c * curve.size() / columns, last = (c + 1) * curve.size() / columns;
    means.push_back(mean(curve.subspan(first, last - first)));
  }
  return means;
}

// Rows of characters between two levels.
class Chart {
 public:
  Chart(double low, double high, std::size_t columns)
      : low_(low), high_(high > low ? high : low + 1), rows_(kRows, std::string(columns, ' ')) {}

  void draw(const std::vector<double>& curve, char mark) {
    for (std::size_t c = 0; c < curve.size(); ++c) {
      const double share = (curve[c] - low_) / (high_ - low_);
      char& cell = rows_[static_cast<std::size_t>(std::lround((1 - share) * (kRows - 1)))][c];
      cell = cell == ' ' ? mark : '*';
    }
  }

  std::string text() const {
    std::string all;
    for (int row = 0; row < kRows; ++row) {
      std::string cells = rows_[static_cast<std::size_t>(row)];
      cells.erase(cells.find_last_not_of(' ') + 1);
      all += fmt::format("{:>9.4f} |{}\n", high_ - (high_ - low_) * row / (kRows - 1), cells);
    }
    return all;
  }

 private:
  double low_, high_;
  std::vector<std::string> rows_;
};

std::string chart(const LossComparison& both, std::span<const double> a, std::span<const double> b) {
  const std::size_t columns = std::min<std::size_t>(kPlotColumns, a.size());
  const std::vector<double> of_a = in_columns(a, columns), of_b = in_columns(b, columns);
  const auto [low_a, high_a] = std::minmax_element(of_a.begin(), of_a.end());
  const auto [low_b, high_b] = std::minmax_element(of_b.begin(), of_b.end());
  Chart chart(std::min(*low_a, *low_b), std::max(*high_a, *high_b), columns);
  chart.draw(of_a, 'a');
  chart.draw(of_b, 'b');
  return fmt::format("{}{:>9}  steps {} to {}; * where a and b coincide\n", chart.text(), "", both.first_step,
                     both.first_step + both.num_steps - 1);
}

}  // namespace

LossCurve loss_curve(const std::string& run) {
  const std::filesystem::path report = report_file(run);
  std::error_code error;
  if (!std::filesystem::is_regular_file(report, error)) return {};
  const Document document = load_document(report.string());
  LossCurve curve;
  const Value* losses = document.root.kind == Value::Kind::kObject ? document.root.find("loss") : nullptr;
  if (losses == nullptr) return curve;
  const Place place{.file = document.file, .pointer = "/loss", .line = losses->line};
  if (losses->kind != Value::Kind::kArray) place.fail("expected an array, found " + losses->excerpt());
  for (const Value& loss : losses->items) curve.losses.push_back(number_of(loss, place));
  const Value* first = document.root.find("first_step");
  if (first == nullptr) return curve;
  const bool whole = first->kind == Value::Kind::kInteger && first->integer >= 0 && first->integer < 1 << 30;
  if (!whole)
    Place{.file = document.file, .pointer = "/first_step", .line = first->line}.fail(
        "expected a step, found " + first->excerpt());
  curve.first_step = static_cast<int>(first->integer);
  return curve;
}

std::optional<LossComparison> compare_losses(const LossCurve& a, const LossCurve& b) {
  const auto end = [](const LossCurve& curve) {
    return curve.first_step + static_cast<int>(curve.losses.size());
  };
  LossComparison result;
  result.first_step = std::max(a.first_step, b.first_step);
  result.num_steps = std::min(end(a), end(b)) - result.first_step;
  if (result.num_steps <= 0) return std::nullopt;
  const std::span<const double> of_a = common(a, result), of_b = common(b, result);
  result.final_a = of_a.back();
  result.final_b = of_b.back();
  compare_steps(of_a, of_b, result);
  compare_means(of_a, of_b, result);
  return result;
}

std::string to_text(const LossComparison& c, const LossCurve& a, const LossCurve& b) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "loss of steps {} to {}, b against a\n", c.first_step, c.first_step + c.num_steps - 1);
  fmt::format_to(out, "  last step          {:.6f} against {:.6f} ({:+.3f}%)\n", c.final_b, c.final_a,
                 100 * (c.final_b / c.final_a - 1));
  fmt::format_to(out, "  mean of the last {:<2} {:.6f} against {:.6f} ({:+.3f}%)\n", c.smoothed, c.smooth_b,
                 c.smooth_a, 100 * (c.smooth_b / c.smooth_a - 1));
  fmt::format_to(out, "  apart by step      {:.3f}% in the mean, {:.3f}% at most, in step {}\n", 100 * c.mean,
                 100 * c.largest, c.largest_step);
  fmt::format_to(out, "  means of {:<2} steps   {:.3f}% apart at most\n", c.smoothed, 100 * c.smooth_largest);
  const auto where = [](const std::optional<int>& step) {
    return step ? fmt::format("in step {}", *step) : std::string("nowhere");
  };
  fmt::format_to(out, "  first difference   {}, of more than {:.0f}% {}\n", where(c.first_different),
                 100 * kLossTolerance, where(c.first_apart));
  return text + "\n" + chart(c, common(a, c), common(b, c));
}

}  // namespace moebius
