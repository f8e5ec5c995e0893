#include "workloads/calibration/links/fit_links.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "hw/error.h"
#include "workloads/calibration/links/simplex.h"
#include "workloads/cost/collective_fields.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

constexpr double kMostLoss = 0.5;   // of a row: what is wrong by more is another algorithm
constexpr double kLossPower = 1.3;  // between the median and the mean
constexpr double kHold = 1e-4;      // what holds a constant that no row tells where it began
constexpr double kSmall = 4096;     // bytes that are all latency
constexpr double kFirstSteps[] = {0.3, 0.15, 0.1, 0.1};  // relative

using Rows = std::vector<const MeasuredCollective*>;

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

double small_call(const Rows& rows, int devices) {
  std::vector<double> seconds;
  for (const MeasuredCollective* row : rows)
    if (row->call.devices == devices && row->call.bytes <= kSmall) seconds.push_back(row->seconds);
  if (seconds.empty())
    throw input_error("calibrate --fit links: " + rows.front()->accelerator + " has no all-reduce between " +
                      std::to_string(devices) + " devices of at most 4096 bytes");
  return middle(seconds);
}

template <class Row>
using Fields = std::vector<const ConstantField<Row>*>;

// Fits `fields` of `row` in the logarithm; what is 0 stays 0.
template <class Row>
Row fitted(const Row& start, std::span<const ConstantField<Row>> all,
           const std::function<bool(double Row::*)>& varies,
           const std::function<double(const Row&)>& loss_of) {
  Fields<Row> fields;
  for (const auto& field : all)
    if (varies(field.field) && start.*field.field > 0) fields.push_back(&field);
  const auto at = [&](const std::vector<double>& logs) {
    Row row = start;
    for (std::size_t i = 0; i < fields.size(); ++i)
      row.*(fields[i]->field) = start.*(fields[i]->field) * std::exp(logs[i]);
    return row;
  };
  const auto loss = [&](const std::vector<double>& logs) {
    double held = 0;
    for (const double log : logs) held += kHold * log * log;
    return held + loss_of(at(logs));
  };
  std::vector<double> logs(fields.size(), 0);
  for (const double step : kFirstSteps) logs = least_of(loss, logs, step);
  return at(logs);
}

double loss_over(const Rows& rows, const std::function<double(const CollectiveCall&)>& seconds) {
  double sum = 0;
  for (const MeasuredCollective* row : rows)
    sum += std::pow(std::min(kMostLoss, std::abs(std::log(seconds(row->call) / row->seconds))), kLossPower);
  return sum / static_cast<double>(rows.size());
}

double median_error(const Rows& rows, const std::function<double(const CollectiveCall&)>& seconds) {
  std::vector<double> errors;
  for (const MeasuredCollective* row : rows)
    errors.push_back(std::abs(seconds(row->call) / row->seconds - 1));
  return middle(errors);
}

// Where the search begins: from facts, not from what was fitted before.
LinkConstants first_guess(LinkConstants link) {
  const double line = link.nominal > 0 ? link.nominal : link.achieved;
  link.launch_growth = 1e-6;
  link.step_ll_growth = 0.1e-6;
  link.rate_ll = link.one_protocol ? line : std::min(link.ll_most, line / 2);
  link.step_ll128 = link.has_ll128 ? 2e-6 : 0;
  link.step_simple = link.one_protocol ? 0 : 8e-6;
  link.rate_two = line;
  link.rate_eight = link.own_ports ? line : line / 3;
  link.spread = link.one_protocol ? 0 : 100 * in_si(ConstantUnit::kNanosecondsPerRootKilobyte);
  link.step_in_switch = link.in_switch_share > 0 ? 30e-6 : 0;
  link.rate_in_switch = link.in_switch_share > 0 ? 0.7 * line : 0;
  return link;
}

// What two devices cannot tell: the steps of a longer ring, and the switch. Its rate is the switch's: what
// rings between so many devices were measured to achieve says nothing of it.
void take_steps(LinkConstants& link, const LinkConstants& other) {
  link.step_ll = other.step_ll;
  if (link.in_switch_share <= 0) return;
  link.step_in_switch = other.step_in_switch;
  link.rate_in_switch = other.rate_in_switch;
}

void set_latencies(LinkConstants& link, const Rows& rows, const CollectiveConstants& constants) {
  const double two = small_call(rows, 2);
  if (link.steps_like.empty()) {
    link.step_ll = (small_call(rows, 8) - two) / 12;  // 14 steps against 2
  } else {
    for (const LinkConstants& other : constants.links)
      if (other.accelerator == link.steps_like) take_steps(link, other);
  }
  link.launch = two - 2 * link.step_ll;
}

LinkConstants fit_link(LinkConstants link, const Rows& rows, const CollectiveConstants& constants) {
  link = first_guess(link);
  set_latencies(link, rows, constants);
  const auto varies = [&](double LinkConstants::*field) {
    const bool set = field == &LinkConstants::launch || field == &LinkConstants::step_ll;
    const bool taken = !link.steps_like.empty() &&
                       (field == &LinkConstants::step_in_switch || field == &LinkConstants::rate_in_switch);
    const bool same = field == &LinkConstants::rate_eight && link.own_ports;
    const bool one = field == &LinkConstants::rate_two && link.one_protocol;
    return !set && !taken && !same && !one;
  };
  const auto level = [](LinkConstants row) {
    if (row.own_ports) row.rate_eight = row.rate_two;
    return row;
  };
  const auto loss = [&](const LinkConstants& trial) {
    const LinkConstants row = level(trial);
    return loss_over(rows, [&](const CollectiveCall& call) { return nccl_figures(row, call).seconds; });
  };
  link = level(fitted<LinkConstants>(link, link_fields(), varies, loss));
  link.error = median_error(rows, [&](const auto& call) { return nccl_figures(link, call).seconds; });
  return link;
}

FrameworkConstants fit_framework(FrameworkConstants row, const LinkConstants& link, const Rows& rows) {
  row.doubling = row.growth = 0.5e-6;
  row.launch = small_call(rows, 2) - row.doubling;
  row.second_step = 2e-6;
  row.rate = 0.9 * row.achieved;
  const auto loss = [&](const FrameworkConstants& trial) {
    return loss_over(rows, [&](const auto& call) { return framework_figures(trial, link, call).seconds; });
  };
  row = fitted<FrameworkConstants>(
      row, framework_fields(), [](auto) { return true; }, loss);
  row.error =
      median_error(rows, [&](const auto& call) { return framework_figures(row, link, call).seconds; });
  return row;
}

Rows rows_for(const std::vector<MeasuredCollective>& all, const CollectiveConstants& constants,
              const std::string& accelerator, const std::string& family) {
  Rows rows;
  for (const MeasuredCollective& row : all)
    if (row.accelerator == accelerator && row.family == family && !row.stands_off &&
        is_fitted_to(row, constants))
      rows.push_back(&row);
  return rows;
}

// Its own kernels only; what it leaves to NCCL says nothing of them.
Rows own_rows(Rows rows, const FrameworkConstants& framework, const LinkConstants& link) {
  std::erase_if(rows, [&](const MeasuredCollective* row) {
    return row->call.bytes > framework_limit(framework, link, row->call.devices);
  });
  return rows;
}

}  // namespace

CollectiveConstants fit_links(const std::vector<MeasuredCollective>& rows, const Catalog& catalog) {
  CollectiveConstants constants = shipped_collectives();
  for (LinkConstants& link : constants.links) {
    const Rows own = rows_for(rows, constants, link.accelerator, link.library);
    if (own.empty()) continue;
    link.achieved = achieved_rate(catalog.accelerator(link.accelerator));
    link = fit_link(link, own, constants);
    for (FrameworkConstants& framework : constants.frameworks) {
      if (framework.accelerator != link.accelerator) continue;
      framework.achieved = link.achieved;
      const Rows kernels =
          own_rows(rows_for(rows, constants, framework.accelerator, framework.framework), framework, link);
      if (!kernels.empty()) framework = fit_framework(framework, link, kernels);
    }
  }
  return constants;
}

CollectiveConstants fit_links_file(const std::string& from, const Catalog& catalog, const std::string& out) {
  const std::vector<MeasuredCollective> rows = read_measured_collectives(from, catalog);
  if (rows.empty())
    throw input_error(from + ": expected kernels/nccl.csv.gz or kernels/custom_allreduce.csv.gz in it");
  const CollectiveConstants constants = fit_links(rows, catalog);
  write_file(out, collective_constants_text(constants));
  return constants;
}

}  // namespace moebius
