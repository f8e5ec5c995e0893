#include "workloads/report/queue_picture.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "hw/svg.h"
#include "workloads/cluster/queue/queue_figures.h"
#include "workloads/report/number_text.h"

namespace moebius {

namespace {

constexpr SvgPage kQueuePage{.left = 110, .top = 60, .width = 1024, .row = 3, .gap = 50, .right = 30};
constexpr double kStack = 240, kPower = 80;
constexpr int kTimeColumns = 512, kMostRows = 600;
constexpr std::array kColours{"#3b6fb6", "#e08b3a", "#4f9d69", "#b0508c", "#8a8f3c", "#6b6b6b"};

std::string_view colour_of(int queue) {
  return kColours[static_cast<std::size_t>(queue) % kColours.size()];
}

class QueuePicture {
 public:
  QueuePicture(const QueueFigures& figures, const QueuePlan& plan)
      : figures_(figures),
        plan_(plan),
        rows_(std::min<int>(kMostRows, static_cast<int>(figures.course.jobs.size()))),
        svg_(kQueuePage.left + kQueuePage.width + kQueuePage.right, kQueuePage.top + kStack + kQueuePage.gap +
                                                                        kPower + kQueuePage.gap +
                                                                        rows_ * kQueuePage.row + 30) {}

  std::string draw(const std::string& name) {
    svg_.text(kQueuePage.left, 24, name, SvgAnchor::kStart, 14);
    legend();
    stack();
    power();
    jobs();
    return svg_.finish();
  }

 private:
  double x_of(double seconds) const {
    return kQueuePage.left + kQueuePage.width * seconds / figures_.duration_s;
  }
  int queue_of(int job) const { return plan_.shapes[figures_.course.jobs[job].shape].queue; }

  void legend() {
    for (std::size_t q = 0; q < plan_.queues.size(); ++q) {
      const double x = kQueuePage.left + 170 * static_cast<double>(q);
      svg_.box({x, 36, 12, 12}, colour_of(static_cast<int>(q)));
      svg_.text(x + 16, 46, plan_.queues[q].name, SvgAnchor::kStart, 11);
    }
  }

  // Cards held by each queue, mean over a column.
  void stack() {
    std::vector<double> held(plan_.queues.size() * kTimeColumns, 0);
    const double column = figures_.duration_s / kTimeColumns;
    for (const CardSpan& span : figures_.course.spans) {
      const double begin = span.begin.seconds(), end = span.end.seconds();
      for (int c = static_cast<int>(begin / column); c < kTimeColumns && c * column < end; ++c) {
        const double part = std::min(end, (c + 1) * column) - std::max(begin, c * column);
        held[queue_of(span.job) * kTimeColumns + c] += static_cast<double>(span.cards) * part / column;
      }
    }
    const double all = static_cast<double>(figures_.cards), width = kQueuePage.width / kTimeColumns;
    for (int c = 0; c < kTimeColumns; ++c) {
      double y = kQueuePage.top + kStack;
      for (std::size_t q = 0; q < plan_.queues.size(); ++q) {
        const double cards = held[q * kTimeColumns + c], height = kStack * cards / all;
        y -= height;
        svg_.box({kQueuePage.left + c * width, y, width + 0.2, height}, colour_of(static_cast<int>(q)),
                 fmt::format("{}: {:.0f} cards", plan_.queues[q].name, cards));
      }
    }
    svg_.line(kQueuePage.left, kQueuePage.top, kQueuePage.left + kQueuePage.width, kQueuePage.top, "#999999");
    svg_.text(kQueuePage.left - 6, kQueuePage.top + 4, fmt::format("{} cards", grouped(figures_.cards)),
              SvgAnchor::kEnd, 11);
    svg_.text(kQueuePage.left - 6, kQueuePage.top + kStack, "0", SvgAnchor::kEnd, 11);
    for (int day = 0; day * 86400.0 <= figures_.duration_s; ++day)
      if (day % std::max(1, static_cast<int>(figures_.duration_s / 86400 / 15)) == 0)
        svg_.text(x_of(day * 86400.0), kQueuePage.top + kStack + 14, fmt::format("{} d", day),
                  SvgAnchor::kMiddle, 10);
  }

  void power() {
    const double y = kQueuePage.top + kStack + kQueuePage.gap + kPower;
    double most = 1;
    for (const PowerSample& sample : figures_.course.power) most = std::max(most, sample.watts);
    double before = -1, height = 0;
    for (const PowerSample& sample : figures_.course.power) {
      const double x = x_of(sample.time.seconds()), next = kPower * sample.watts / most;
      if (before >= 0 && x - before < 1) {  // of changes within a pixel the last one stays
        height = next;
        continue;
      }
      if (before >= 0) svg_.box({before, y - height, x - before + 0.2, height}, "#c9a227");
      before = x;
      height = next;
    }
    if (before >= 0) svg_.box({before, y - height, x_of(figures_.duration_s) - before, height}, "#c9a227");
    svg_.text(kQueuePage.left - 6, y - kPower + 8, fmt::format("{:.3g} MW", most / 1e6), SvgAnchor::kEnd, 11);
  }

  // The first jobs by arrival, a row each; lighter while it holds fewer cards than at most.
  void jobs() {
    const double top = kQueuePage.top + kStack + kQueuePage.gap + kPower + kQueuePage.gap;
    svg_.text(kQueuePage.left - 6, top + 8, "jobs", SvgAnchor::kEnd, 11);
    for (const CardSpan& span : figures_.course.spans) {
      if (span.job >= rows_) continue;
      const double x = x_of(span.begin.seconds());
      svg_.box({x, top + span.job * kQueuePage.row, std::max(0.5, x_of(span.end.seconds()) - x),
                kQueuePage.row - 0.6},
               colour_of(queue_of(span.job)),
               fmt::format("{} on {}: {} cards", plan_.shapes[figures_.course.jobs[span.job].shape].name,
                           plan_.pools[span.pool].name, span.cards));
    }
  }

  const QueueFigures& figures_;
  const QueuePlan& plan_;
  int rows_;
  Svg svg_;
};

}  // namespace

std::string queues_svg(const Report& report) {
  if (!report.queues || report.queues->course.spans.empty()) return {};
  return QueuePicture(*report.queues, *report.scenario->operations->queueing).draw(report.scenario->name);
}

}  // namespace moebius
