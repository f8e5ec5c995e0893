#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/calibration/csv.h"
#include "workloads/calibration/page/published_kernels.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr std::string_view kWithQuantise = "+quantise";
constexpr std::array<std::int64_t, 4> kCubes = {2048, 4096, 8192, 16384};
constexpr double kGoalByProfile = 0.08, kGoalByModel = 0.20;

struct Unit {
  std::string_view name, text;
  FigureUnit unit;
};
constexpr Unit kUnits[] = {{"us", "us", FigureUnit::kMicroseconds},
                           {"tflops", "TFLOP/s", FigureUnit::kTflops},
                           {"best_tflops", "TFLOP/s at best", FigureUnit::kBestTflops},
                           {"gbps", "GB/s", FigureUnit::kGigabytes}};

FigureUnit unit_named(const std::string& path, int line, const std::string& name) {
  std::vector<std::string> known;
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return unit.unit;
    known.emplace_back(unit.name);
  }
  throw input_error(fmt::format("{}:{}: unit: expected one of {}, found \"{}\"{}", path, line,
                                fmt::join(known, ", "), name, suggestion(name, known)));
}

std::string_view text_of(FigureUnit unit) {
  return std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& row) { return row.unit == unit; })
      ->text;
}

bool is_fitted(const std::string& path, int line, const std::string& text) {
  if (!text.empty() && text != "yes")
    throw input_error(fmt::format("{}:{}: fitted: expected yes or nothing, found \"{}\"", path, line, text));
  return !text.empty();
}

std::string_view known_from(const PublishedKernel& kernel, bool by_profile) {
  if (kernel.fitted) return "model, fitted to it";
  return by_profile ? "profile" : "model";
}

// Of sizes that a kernel does not have: zero.
std::int64_t size_of(const Csv& csv, const CsvRow& row, const char* column) {
  return csv.empty(row, column) ? 0 : static_cast<std::int64_t>(csv.number(row, column));
}

CostQuery query_of_row(const std::string& path, const Csv& csv, const CsvRow& row, const Accelerator& chip) {
  std::string op = csv.text(row, "op");
  CostQuery query;
  query.fused_quantise = op.ends_with(kWithQuantise);
  if (query.fused_quantise) op.resize(op.size() - kWithQuantise.size());
  const std::optional<OpKind> kind = kind_of(op);
  const std::optional<DType> dtype = parse_dtype(csv.text(row, "dtype"));
  if (!kind || !dtype)
    throw input_error(fmt::format("{}:{}: expected an op kind and a number format, found \"{}\" and \"{}\"",
                                  path, row.line, op, csv.text(row, "dtype")));
  const auto size = [&](const char* column) { return size_of(csv, row, column); };
  query.kind = *kind;
  query.dtype = *dtype;
  query.shape = {.m = size("m"), .n = size("n"), .k = size("k"), .kv = size("kv")};
  query.shape.groups = static_cast<std::int32_t>(size("groups"));
  query.shape.heads = static_cast<std::int32_t>(size("heads"));
  query.shape.kv_heads = static_cast<std::int32_t>(size("kv_heads"));
  query.shape.head_dim = static_cast<std::int32_t>(size("head_dim"));
  query.shape.v_dim = static_cast<std::int32_t>(size("v_dim"));
  query.cores = cores_of_chip(chip, *kind);
  return query;
}

// The layered source of a chip, from profiles at hand, as find_profiles() takes them.
class Teller {
 public:
  Teller(const Accelerator& chip, const std::vector<Profile>& profiles, const std::string& stack)
      : model_(chip), tables_(of(chip, profiles), stack) {}

  double seconds(const CostQuery& query, bool& by_profile) const {
    const std::optional<Cost> cost = tables_.cost(model_, query, Clocks::kSustained);
    by_profile = cost.has_value();
    return cost ? cost->seconds : model_.estimate(query, Clocks::kSustained).seconds;
  }

 private:
  static std::vector<Profile> of(const Accelerator& chip, const std::vector<Profile>& profiles) {
    std::vector<std::string> ids = {chip.id};
    ids.insert(ids.end(), chip.bases.begin(), chip.bases.end());
    std::vector<Profile> own;
    for (const std::string& id : ids)
      for (const Profile& profile : profiles)
        if (profile.accelerator == id && profile.reference.architecture == chip.architecture)
          own.push_back(profile);
    return own;
  }

  AnalyticModel model_;
  MeasuredTables tables_;
};

std::string sizes_text(const CostQuery& query, FigureUnit unit) {
  const Shape& s = query.shape;
  if (unit == FigureUnit::kBestTflops) return "best shape";
  if (s.heads == 0) return fmt::format("{} x {} x {}", s.m, s.n, s.k);
  return fmt::format("{} x {} queries, {} heads on {}, {} and {} wide, {} keys", s.groups, s.m / s.groups,
                     s.heads, s.kv_heads, s.head_dim, s.v_dim, s.kv);
}

std::string median_line(std::string_view by, double goal, std::vector<double> errors) {
  if (errors.empty()) return "";
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  return fmt::format("{}: {} figures, median {:.1f}%, goal {:.0f}%: {}.\n", by, errors.size(), 100 * median,
                     100 * goal, median < goal ? "met" : "missed");
}

}  // namespace

std::vector<PublishedKernel> read_published_kernels(const std::string& path, const Catalog& catalog) {
  const Csv csv(path);
  std::vector<PublishedKernel> kernels;
  for (const CsvRow& row : csv.rows()) {
    const Accelerator chip = catalog.accelerator(csv.text(row, "accelerator"));
    kernels.push_back({.accelerator = chip.id,
                       .op = csv.text(row, "op"),
                       .query = query_of_row(path, csv, row, chip),
                       .stack = csv.text(row, "stack"),
                       .unit = unit_named(path, row.line, csv.text(row, "unit")),
                       .value = csv.number(row, "value"),
                       .fitted = is_fitted(path, row.line, csv.text(row, "fitted")),
                       .source = csv.text(row, "source")});
  }
  return kernels;
}

ToldKernel told_kernel(const PublishedKernel& kernel, const Catalog& catalog,
                       const std::vector<Profile>& profiles) {
  const Teller teller(catalog.accelerator(kernel.accelerator), profiles, kernel.stack);
  ToldKernel told;
  CostQuery query = kernel.query;
  const auto seconds = [&] { return teller.seconds(query, told.by_profile); };
  const auto tflops = [&] { return op_flops(query.kind, query.shape).value / seconds() * 1e-12; };
  switch (kernel.unit) {
    case FigureUnit::kMicroseconds:
      told.value = seconds() * 1e6;
      told.time_error = told.value / kernel.value - 1;
      return told;
    case FigureUnit::kTflops:
      told.value = tflops();
      break;
    case FigureUnit::kGigabytes:
      told.value = least_bytes(query) / seconds() * 1e-9;
      break;
    case FigureUnit::kBestTflops:
      for (const std::int64_t size : kCubes) {
        query.shape.m = query.shape.n = query.shape.k = size;
        told.value = std::max(told.value, tflops());
      }
      break;
  }
  told.time_error = kernel.value / told.value - 1;
  return told;
}

std::string published_table(const std::vector<PublishedKernel>& kernels, const Catalog& catalog,
                            const std::vector<Profile>& profiles) {
  std::string text =
      "| chip | kernel | format | sizes | published | ours | our time % | known from | source |\n"
      "|---|---|---|---|--:|--:|--:|---|---|\n";
  std::vector<double> by_profile, by_model;
  for (const PublishedKernel& kernel : kernels) {
    const ToldKernel told = told_kernel(kernel, catalog, profiles);
    if (!kernel.fitted) (told.by_profile ? by_profile : by_model).push_back(std::abs(told.time_error));
    text += fmt::format("| {} | {} | {} | {} | {:.4g} {} | {:.4g} | {:+.1f} | {} | {} |\n",
                        kernel.accelerator, kernel.op, to_string(kernel.query.dtype),
                        sizes_text(kernel.query, kernel.unit), kernel.value, text_of(kernel.unit), told.value,
                        100 * told.time_error, known_from(kernel, told.by_profile), kernel.source);
  }
  return text + "\n" + median_line("Where a profile speaks", kGoalByProfile, by_profile) +
         median_line("Where the model speaks alone", kGoalByModel, by_model);
}

}  // namespace moebius
