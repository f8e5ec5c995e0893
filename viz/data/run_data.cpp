#include "viz/data/run_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "hw/error.h"
#include "viz/data/op_names.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {
namespace {

// Keys may have dots themselves, as names of pools and classes do.
const Value* found_at(const Value& value, std::string_view path) {
  if (value.kind != Value::Kind::kObject) return nullptr;
  for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    const Value* below = value.find(path.substr(0, dot));
    if (dot == std::string_view::npos) return below;
    if (below == nullptr) continue;
    if (const Value* found = found_at(*below, path.substr(dot + 1))) return found;
  }
}

}  // namespace

RunData::RunData(const std::string& given_path)
    : path(given_path), columns(timeline_path(given_path)), lanes(columns), detail(lanes) {
  counters = counter_tracks(tables());
  const std::filesystem::path beside = std::filesystem::path(columns.name()).parent_path() / "report.json";
  try {
    Value beside_it = load_report(beside.string()).root;
    require_one_run(beside.string(), beside_it, columns);
    report = std::move(beside_it);
  } catch (const Error& error) {
    report_trouble = error.what();
  }
  title = columns.fact("scenario");
  if (title.empty()) title = text("scenario");
  if (title.empty()) title = path;
}

double RunData::length() const {
  std::int64_t last = lanes.end_of_run();
  for (const CounterTrack& track : counters) last = std::max(last, track.times().back());
  return static_cast<double>(std::max<std::int64_t>(last, 1));
}

const Value* RunData::figure(const std::string& dotted_path) const {
  const Value* value = found_at(report, dotted_path);
  return value != nullptr && value->kind == Value::Kind::kNull ? nullptr
                                                               : value;  // null: it means nothing here
}

double RunData::number(const std::string& dotted_path, double otherwise) const {
  const Value* value = figure(dotted_path);
  const bool is_number =
      value != nullptr && (value->kind == Value::Kind::kNumber || value->kind == Value::Kind::kInteger);
  return is_number ? value->number : otherwise;
}

std::string RunData::text(const std::string& dotted_path) const {
  const Value* value = figure(dotted_path);
  return value != nullptr && value->kind == Value::Kind::kString ? value->text : "";
}

const std::string& RunData::name_of_op(std::uint32_t op_row) const {
  if (op_names_.empty()) op_names_.resize(tables().ops.size());
  std::string& name = op_names_[op_row];
  const OpRow& op = tables().ops[op_row];
  if (name.empty()) name = span_name(tables(), op);
  return name;
}

std::int64_t RunData::work_start(std::size_t slot) const {
  const std::int64_t start = lanes.start(slot);
  if (!is_communication(tables().ops[lanes.op_row(slot)].kind)) return start;
  return std::clamp(columns.work_start(lanes.span(slot)), start, lanes.end(slot));
}

const std::vector<Transfer>& RunData::transfers() const {
  if (!transfers_) transfers_ = std::make_unique<std::vector<Transfer>>(transfers_of(columns));
  return *transfers_;
}

std::span<const std::int32_t> RunData::submissions_after(std::int32_t sequence) const {
  const std::vector<SubmissionRow>& submissions = tables().submissions;
  if (first_next_.empty()) {
    first_next_.assign(submissions.size() + 2, 0);
    for (const std::int32_t before : tables().afters) ++first_next_[before + 2];
    std::partial_sum(first_next_.begin(), first_next_.end(), first_next_.begin());
    next_.resize(tables().afters.size());
    for (const SubmissionRow& s : submissions)
      for (std::int32_t i = 0; i < s.num_after; ++i)
        next_[first_next_[tables().afters[s.first_after + i] + 1]++] = s.sequence;
  }
  return std::span(next_).subspan(first_next_[sequence], first_next_[sequence + 1] - first_next_[sequence]);
}

}  // namespace moebius::viz
