#include "workloads/calibration/links/measured_collectives.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "hw/error.h"
#include "workloads/calibration/csv.h"

namespace moebius {
namespace {

constexpr double kOff = 1.2;

OpKind kind_named(const std::string& name) {
  if (name == "all_reduce") return OpKind::kAllReduce;
  if (name == "all_gather") return OpKind::kAllGather;
  if (name == "reduce_scatter") return OpKind::kReduceScatter;
  if (name == "alltoall") return OpKind::kAllToAll;
  throw input_error("kernels/nccl.csv.gz: op \"" + name +
                    "\": expected all_gather, all_reduce, alltoall or reduce_scatter");
}

// oneCCL's benchmark counts what each member brings to an all-gather: between 2 devices it takes to the
// microsecond what their all-reduce takes, which sends as much only if the buffer is twice as long.
double counted_bytes(const MeasuredCollective& row, double bytes) {
  return row.family == "oneccl" && row.call.kind == OpKind::kAllGather ? bytes * row.call.devices : bytes;
}

void read(const std::string& path, bool custom, const Catalog& catalog,
          std::vector<MeasuredCollective>& rows) {
  if (!std::filesystem::exists(path)) return;
  const Csv csv(path);
  std::map<std::string, std::string> chips;
  for (const CsvRow& line : csv.rows()) {
    std::string& chip = chips[csv.text(line, "system")];
    if (chip.empty()) chip = catalog.accelerator(csv.text(line, "system")).id;
    MeasuredCollective row{chip,
                           csv.text(line, "backend"),
                           custom && csv.text(line, "mode") == "eager",
                           csv.text(line, "dtype"),
                           {},
                           csv.number(line, "latency_us") * 1e-6,
                           false};
    if (!custom) row.call.kind = kind_named(csv.text(line, "op"));
    row.call.devices = static_cast<int>(csv.number(line, "num_gpus"));
    row.call.bytes = counted_bytes(row, csv.number(line, "size_bytes"));
    if (row.call.devices < 2 || row.call.devices > 1024 || row.call.bytes <= 0 || row.seconds <= 0)
      throw input_error(path + ": line " + std::to_string(line.line) +
                        ": expected devices, bytes and a latency above 0");
    rows.push_back(row);
  }
}

auto series_of(const MeasuredCollective& row) {
  return std::tie(row.accelerator, row.family, row.eager, row.dtype, row.call.kind, row.call.devices);
}

// Above both neighbours or below both by a fifth, or above the only one there is.
bool stands_off(const MeasuredCollective* before, double seconds, const MeasuredCollective* after) {
  if (before != nullptr && after != nullptr)
    return seconds > kOff * std::max(before->seconds, after->seconds) ||
           seconds < std::min(before->seconds, after->seconds) / kOff;
  return before == nullptr && after != nullptr && seconds > kOff * after->seconds;
}

void mark_those_off(std::vector<MeasuredCollective>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto neighbour = [&](std::size_t j) {
      return j < rows.size() && series_of(rows[j]) == series_of(rows[i]) ? &rows[j] : nullptr;
    };
    rows[i].stands_off = stands_off(neighbour(i - 1), rows[i].seconds, neighbour(i + 1));
  }
}

template <class Row, class Is>
const Row& found(const std::vector<Row>& rows, const Is& is, const MeasuredCollective& row) {
  const auto at = std::find_if(rows.begin(), rows.end(), is);
  if (at == rows.end())
    throw input_error("hw/catalog/collectives.json has no row for " + row.family + " on " + row.accelerator);
  return *at;
}

const LinkConstants& link_of(const MeasuredCollective& row, const CollectiveConstants& constants) {
  return found(
      constants.links, [&](const auto& link) { return link.accelerator == row.accelerator; }, row);
}

}  // namespace

std::vector<MeasuredCollective> read_measured_collectives(const std::string& directory,
                                                          const Catalog& catalog) {
  std::vector<MeasuredCollective> rows;
  read(directory + "/kernels/nccl.csv.gz", false, catalog, rows);
  read(directory + "/kernels/custom_allreduce.csv.gz", true, catalog, rows);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tuple_cat(series_of(a), std::tie(a.call.bytes)) <
           std::tuple_cat(series_of(b), std::tie(b.call.bytes));
  });
  mark_those_off(rows);
  return rows;
}

CollectiveFigures predicted(const MeasuredCollective& row, const CollectiveConstants& constants) {
  const LinkConstants& link = link_of(row, constants);
  if (row.family == link.library) return nccl_figures(link, row.call);
  for (const FrameworkConstants& framework : constants.frameworks)
    if (framework.accelerator == row.accelerator && framework.framework == row.family)
      return framework_figures(framework, link, row.call);
  return nccl_figures(link, row.call);  // the framework has no kernels of its own there
}

bool is_fitted_to(const MeasuredCollective& row, const CollectiveConstants& constants) {
  if (row.call.kind != OpKind::kAllReduce || row.dtype == "int8" || row.eager) return false;
  return row.call.devices == 2 || (row.call.devices == 8 && link_of(row, constants).steps_like.empty());
}

}  // namespace moebius
