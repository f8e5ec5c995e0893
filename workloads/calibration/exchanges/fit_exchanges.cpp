#include "workloads/calibration/exchanges/fit_exchanges.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

using Constant = double ExchangeKernel::*;
using Constants = std::vector<Constant>;
using Rows = std::vector<const ExchangeRow*>;

constexpr double kFirstStep = 0.4, kLastStep = 0.01, kLeastGain = 1e-6;

double loss(const ExchangeKernel& kernel, const Rows& rows) {
  double sum = 0;
  for (const ExchangeRow* row : rows) sum += std::abs(std::log(model_seconds(kernel, *row) / row->seconds));
  return sum / static_cast<double>(rows.size());
}

double median_error(const ExchangeKernel& kernel, const Rows& rows) {
  std::vector<double> errors;
  for (const ExchangeRow* row : rows)
    errors.push_back(std::abs(model_seconds(kernel, *row) / row->seconds - 1));
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2),
                   errors.end());
  return errors[errors.size() / 2];
}

// One constant after the other, in steps that shrink. Shares stay below the line rate.
ExchangeKernel fit(ExchangeKernel best, const Constants& constants, const Rows& rows) {
  double least = loss(best, rows);
  for (double step = kFirstStep; step > kLastStep;) {
    bool better = false;
    for (const Constant constant : constants)
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        ExchangeKernel trial = best;
        trial.*constant *= factor;
        if (trial.link_share > 1 || trial.nic_share > 1) continue;
        const double now = loss(trial, rows);
        if (now >= least - kLeastGain) continue;
        least = now;
        best = trial;
        better = true;
      }
    if (!better) step /= 2;
  }
  best.rows = static_cast<int>(rows.size());
  best.error = median_error(best, rows);
  return best;
}

// Where the search begins: the order of magnitude that the kernels' sources and the tables show.
ExchangeKernel start_throughput(bool combine) {
  ExchangeKernel kernel{.fixed = 25e-6,
                        .fixed_row = 0.3e-9,
                        .fill_tokens = 8,
                        .fill = 0.3e-6,
                        .fill_row = 0.1e-9,
                        .token = 0.3e-6,
                        .copy = 0.05e-6,
                        .copy_rate = 22e9,
                        .link_share = 0.7};
  if (combine) {
    kernel.sum = 0.9e-6;
    kernel.sum_rate = 15e9;
  }
  return kernel;
}

ExchangeKernel start_low_latency() {
  return {.fixed = 9e-6, .expert = 0.015e-6, .token = 1.5e-6, .link_share = 0.55};
}

Constants throughput_constants(bool combine) {
  using K = ExchangeKernel;
  Constants constants = {&K::fixed, &K::fixed_row, &K::fill_tokens, &K::fill,      &K::fill_row,
                         &K::token, &K::copy,      &K::copy_rate,   &K::link_share};
  if (combine) constants.insert(constants.end(), {&K::sum, &K::sum_rate});
  return constants;
}

struct Key {
  std::string chip;
  ExchangeQuestion question;
};

class Fitting {
 public:
  explicit Fitting(const std::vector<ExchangeRow>& rows) : rows_(rows) {
    for (const ExchangeRow& row : rows)
      if (std::find(chips_.begin(), chips_.end(), row.chip) == chips_.end()) chips_.push_back(row.chip);
  }

  std::vector<ExchangeKernel> run() {
    for (const ExchangeFamily family : {ExchangeFamily::kLowLatency, ExchangeFamily::kThroughput})
      for (const bool combine : {false, true}) {
        for (const std::string& chip : chips_) within_node({chip, {family, combine, false}});
        between_nodes(family, combine);
      }
    dies_alone();
    return std::move(kernels_);
  }

 private:
  std::string architecture_of(const std::string& chip) const {
    for (const ExchangeRow& row : rows_)
      if (row.chip == chip) return row.architecture;
    return {};
  }

  ExchangeKernel named(ExchangeKernel kernel, const Key& key, const std::string& source) const {
    kernel.family = key.question.family;
    kernel.combine = key.question.combine;
    kernel.between_nodes = key.question.between_nodes;
    kernel.chip = key.chip;
    kernel.architecture = architecture_of(key.chip);
    kernel.source = source;
    return kernel;
  }

  const ExchangeKernel* find(const Key& key) const {
    for (const ExchangeKernel& kernel : kernels_)
      if (kernel.chip == key.chip && kernel.family == key.question.family &&
          kernel.combine == key.question.combine && kernel.between_nodes == key.question.between_nodes)
        return &kernel;
    return nullptr;
  }

  // The kernel with most rows behind it of the ones that were fitted freely.
  const ExchangeKernel* best_known(const ExchangeQuestion& question) const {
    const ExchangeKernel* best = nullptr;
    for (const std::string& chip : chips_) {
      const ExchangeKernel* kernel = find({chip, question});
      if (kernel && (!best || kernel->rows > best->rows)) best = kernel;
    }
    return best;
  }

  // A table of many shapes tells all constants. A published summary of one shape tells one: between cores
  // that are alike, the share of its own link; of a super-node, the time of a message or of a row that
  // crosses its link.
  void within_node(const Key& key) {
    const Rows rows = fitted_rows(rows_, key.chip, key.question);
    if (rows.empty()) return;
    const bool throughput = key.question.family == ExchangeFamily::kThroughput;
    const std::string source = "fitted to " + rows.front()->table;
    using K = ExchangeKernel;
    if (rows.size() > 10) {
      const ExchangeKernel start =
          named(throughput ? start_throughput(key.question.combine) : start_low_latency(), key, source);
      const Constants low_latency = {&K::fixed, &K::expert, &K::token, &K::link_share};
      kernels_.push_back(
          fit(start, throughput ? throughput_constants(key.question.combine) : low_latency, rows));
    } else if (rows.front()->table == "deepep" && find({"h100-sxm", key.question})) {
      ExchangeKernel start =
          named(*find({"h100-sxm", key.question}), key, "link_share fitted to deepep, the rest as h100-sxm");
      start.link_share = 0.7;
      kernels_.push_back(fit(start, {&K::link_share}, rows));
    } else {
      kernels_.push_back(throughput ? of_dies(key, rows, source)
                                    : fit(named({.message = 0.1e-6, .dies = kAscendDies}, key, source),
                                          {&K::message}, rows));
    }
  }

  // How a super-node's kernels deal out their work is read in them; see exchange_model.h.
  ExchangeKernel of_dies(const Key& key, const Rows& rows, const std::string& source) const {
    ExchangeKernel start = named({.crossing = 0.1e-6, .dies = kAscendDies, .each_expert = true}, key, source);
    start.in_turn = !key.question.combine;
    return fit(start, {&ExchangeKernel::crossing}, rows);
  }

  void between_nodes(ExchangeFamily family, bool combine) {
    const ExchangeQuestion question{family, combine, true};
    for (const std::string& chip : chips_) measured_between({chip, question});
    const ExchangeKernel* known = best_known(question);
    if (!known) return;
    const ExchangeKernel model = *known;
    for (const std::string& chip : chips_) {
      const ExchangeKernel* node = find({chip, {family, combine, false}});
      if (node && !find({chip, question})) kernels_.push_back(estimated_between(*node, model));
    }
  }

  // Low latency: one kernel for both, to which the NIC adds its rate and the counts of remote experts. High
  // throughput: a kernel of its own, measured at one width only, so that rows and bytes are not told apart.
  void measured_between(const Key& key) {
    const Rows rows = fitted_rows(rows_, key.chip, key.question);
    const ExchangeKernel* node = find({key.chip, {key.question.family, key.question.combine, false}});
    if (rows.size() <= 10 || !node) return;
    using K = ExchangeKernel;
    const std::string source = "fitted to " + rows.front()->table;
    if (key.question.family == ExchangeFamily::kLowLatency) {
      ExchangeKernel start = named(*node, key, source);
      start.remote_expert = 0.03e-6;
      start.nic_share = 0.95;
      kernels_.push_back(fit(start, {&K::remote_expert, &K::nic_share}, rows));
      return;
    }
    // A NIC has one rate; the low-latency kernel tells it, which does nothing but fill it.
    const ExchangeKernel* filling = find({key.chip, {ExchangeFamily::kLowLatency, false, true}});
    const double nic_share = filling ? filling->nic_share : 0.95;
    const ExchangeKernel start = named({.fixed = 40e-6,
                                        .fill_tokens = 8,
                                        .fill = 1e-6,
                                        .copy_rate = 16e9,
                                        .link_share = node->link_share,
                                        .nic_share = nic_share},
                                       key, source);
    kernels_.push_back(fit(start, {&K::fixed, &K::fill_tokens, &K::fill, &K::copy_rate}, rows));
  }

  static ExchangeKernel estimated_between(const ExchangeKernel& node, const ExchangeKernel& model) {
    const bool whole = node.family == ExchangeFamily::kThroughput && !node.each_expert;
    ExchangeKernel kernel = whole ? model : node;
    kernel.chip = node.chip;
    kernel.architecture = node.architecture;
    kernel.between_nodes = true;
    kernel.link_share = node.link_share;
    kernel.nic_share = model.nic_share;
    kernel.remote_expert = model.remote_expert;
    kernel.source = "network as " + model.chip + ", node as its own";
    kernel.rows = 0;
    kernel.error = 0;
    return kernel;
  }

  // Where each die of a package is a device of its own, as the package's kernels see them anyway.
  void dies_alone() {
    for (std::size_t i = 0, packages = kernels_.size(); i < packages; ++i) {
      if (kernels_[i].dies == 1) continue;
      ExchangeKernel die = kernels_[i];
      die.chip += "-die";
      die.package = std::exchange(die.dies, 1);
      die.source = "as " + kernels_[i].chip;
      kernels_.push_back(die);
    }
  }

  const std::vector<ExchangeRow>& rows_;
  std::vector<std::string> chips_;
  std::vector<ExchangeKernel> kernels_;
};

}  // namespace

double model_seconds(const ExchangeKernel& kernel, const ExchangeRow& row) {
  return exchange_time(kernel, row.load, row.machine).seconds();
}

std::vector<const ExchangeRow*> fitted_rows(const std::vector<ExchangeRow>& rows, const std::string& chip,
                                            const ExchangeQuestion& question) {
  const auto is_one = [&](const ExchangeRow& row) {
    return row.chip == chip && row.question.family == question.family &&
           row.question.combine == question.combine && row.question.between_nodes == question.between_nodes;
  };
  int fewest = 0;
  for (const ExchangeRow& row : rows)
    if (is_one(row) && (fewest == 0 || row.ranks < fewest)) fewest = row.ranks;
  std::vector<const ExchangeRow*> found;
  for (const ExchangeRow& row : rows)
    if (is_one(row) && row.ranks == fewest) found.push_back(&row);
  return found;
}

std::vector<ExchangeKernel> fit_exchanges(const std::vector<ExchangeRow>& rows) {
  return Fitting(rows).run();
}

int fit_exchange_file(const std::string& from, const Catalog& catalog, const std::string& out) {
  const std::vector<ExchangeRow> rows = read_exchange_rows(from, catalog);
  if (rows.empty()) throw input_error(fmt::format("{}: no table of dispatch and combine kernels", from));
  const std::vector<ExchangeKernel> kernels = fit_exchanges(rows);
  write_file(out, exchanges_text(kernels));
  return static_cast<int>(kernels.size());
}

}  // namespace moebius
