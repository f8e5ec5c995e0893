#include "real/cuda/op_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hw/new_file.h"

namespace moebius::cuda {
namespace {

// Names come from other people's libraries: they stay on their line.
std::string on_one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return name;
}

auto order(const OpActivity& a) {
  return std::tuple(a.op.sequence, a.op.rank, a.op.op, a.activity.start);
}

}  // namespace

void OpTrace::begin(const TracedOp& op) {
  std::int64_t owner = 0;
  {
    std::lock_guard lock(mutex_);
    owner = static_cast<std::int64_t>(ops_.size());
    ops_.push_back(op);
  }
  trace_->enter(owner);
}

std::vector<OpActivity> OpTrace::take() {
  std::vector<DeviceActivity> found = trace_->take();
  std::lock_guard lock(mutex_);
  std::vector<OpActivity> all;
  for (DeviceActivity& activity : found) {
    if (activity.owner < 0 || activity.owner >= static_cast<std::int64_t>(ops_.size())) continue;
    const TracedOp& op = ops_[static_cast<std::size_t>(activity.owner)];
    all.push_back({op, std::move(activity)});
  }
  std::sort(all.begin(), all.end(),
            [](const OpActivity& a, const OpActivity& b) { return order(a) < order(b); });
  return all;
}

void write_activities(const std::string& path, const std::vector<OpActivity>& activities) {
  NewFile file(path);
  file.write("sequence\trank\top\tkind\tstart_ns\tend_ns\tstream\tname\n");
  for (const auto& [op, activity] : activities) {
    file.write(fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", op.sequence, op.rank, op.op,
                           to_string(op.kind), activity.start.ns, activity.end.ns, activity.stream,
                           on_one_line(activity.name)));
  }
  file.finish();
}

}  // namespace moebius::cuda
