#include "viz/import/foreign_trace.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace moebius::viz {

namespace {

struct Word {
  std::string_view part;  // in lower case
  OpKind kind;
  std::string_view beside = {};  // that occurs as well
};

// The first that occurs in a name decides: communication before compute, but for attention, whose kernels
// combine parts; particular before general.
constexpr std::array kWords{
    Word{"flash", OpKind::kAttention},
    Word{"fmha", OpKind::kAttention},
    Word{"reducescatter", OpKind::kReduceScatter},
    Word{"reduce_scatter", OpKind::kReduceScatter},
    Word{"allgather", OpKind::kAllGather},
    Word{"all_gather", OpKind::kAllGather},
    Word{"allreduce", OpKind::kAllReduce},
    Word{"all_reduce", OpKind::kAllReduce},
    Word{"alltoall", OpKind::kAllToAll},
    Word{"all_to_all", OpKind::kAllToAll},
    Word{"broadcast", OpKind::kBroadcast, "nccl"},
    Word{"sendrecv", OpKind::kSend},
    Word{"nccl", OpKind::kAllReduce},
    Word{"dispatch", OpKind::kDispatch},
    Word{"combine", OpKind::kCombine},
    Word{"memcpy htod", OpKind::kCopyFromHost},
    Word{"memcpy dtoh", OpKind::kCopyToHost},
    Word{"grouped_gemm", OpKind::kGroupedGemm},
    Word{"group_gemm", OpKind::kGroupedGemm},
    Word{"attention", OpKind::kAttention},
    Word{"attn", OpKind::kAttention},
    Word{"mla", OpKind::kAttention},
    Word{"gemm", OpKind::kGemm},
    Word{"matmul", OpKind::kGemm},
    Word{"cublas", OpKind::kGemm},
    Word{"cutlass", OpKind::kGemm},
    Word{"xmma", OpKind::kGemm},
    Word{"nvjet", OpKind::kGemm},
    Word{"rmsnorm", OpKind::kNorm},
    Word{"layernorm", OpKind::kNorm},
    Word{"layer_norm", OpKind::kNorm},
    Word{"rms_norm", OpKind::kNorm},
    Word{"rope", OpKind::kRotary},
    Word{"rotary", OpKind::kRotary},
    Word{"quant", OpKind::kQuantise},
    Word{"silu", OpKind::kActivation},
    Word{"swiglu", OpKind::kActivation},
    Word{"gelu", OpKind::kActivation},
    Word{"permute", OpKind::kPermute},
    Word{"adam", OpKind::kAdam},
    Word{"cross_entropy", OpKind::kCrossEntropy},
    Word{"embedding", OpKind::kEmbedding},
};

std::optional<OpKind> own_kind(std::string_view name) {
  for (int i = 0; i < kNumOpKinds; ++i) {
    if (to_string(static_cast<OpKind>(i)) == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

// "... L12" at the end.
std::int16_t layer_in(std::string_view name) {
  const std::size_t at = name.rfind(" L");
  std::int16_t layer = -1;
  if (at == std::string_view::npos) return layer;
  const auto [end, error] = std::from_chars(name.data() + at + 2, name.data() + name.size(), layer);
  return error == std::errc{} && end == name.data() + name.size() && layer >= 0 ? layer : std::int16_t{-1};
}

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return std::tolower(c); });
  return all;
}

// "compute", and "compute 2" of what overlaps there.
std::optional<Lane> own_lane(std::string_view thread) {
  thread = thread.substr(0, thread.find_last_not_of("0123456789 ") + 1);
  for (int i = 0; i < kNumLanes; ++i) {
    if (to_string(static_cast<Lane>(i)) == thread) return static_cast<Lane>(i);
  }
  return std::nullopt;
}

// Slices in the order of time, each with the row that it stands on: of its track the first one that is free;
// in an export of ours that of its process, whose threads are lanes.
class Rows {
 public:
  explicit Rows(const ForeignTrace& trace)
      : trace_(trace), of_track_(trace.tracks.size()), of_process_(trace.processes.size(), -1) {
    for (const ForeignTrack& track : trace.tracks)
      lanes_.push_back(trace.detail.empty() ? std::nullopt : own_lane(track.thread));
    // Rows of an export of ours are its classes, in their order.
    for (std::size_t p = 0; !trace.detail.empty() && p < trace.processes.size(); ++p)
      of_process(static_cast<std::int32_t>(p));
  }

  std::int32_t place(std::int32_t track, std::int64_t start, std::int64_t end) {
    if (lanes_[track]) return of_process(trace_.tracks[track].process);
    for (const std::int32_t row : of_track_[track]) {
      if (ends_[row] > start) continue;
      ends_[row] = end;
      return row;
    }
    const auto& [process, thread] = trace_.tracks[track];
    const std::size_t above = of_track_[track].size();
    const std::int32_t row = add(fmt::format("{}, {}{}", trace_.processes[process], thread,
                                             above > 0 ? fmt::format(", below {}", above) : ""));
    of_track_[track].push_back(row);
    firsts_[row] = of_track_[track].front();
    ends_[row] = end;
    if (of_process_[process] < 0) of_process_[process] = row;
    return row;
  }
  Lane lane(std::int32_t track) const { return lanes_[track].value_or(Lane::kCompute); }
  // The first row of a process; one for its counters alone where it has no slice.
  std::int32_t of_process(std::int32_t process) {
    std::int32_t& row = of_process_[process];
    if (row < 0) row = add(trace_.processes[process]);
    return row;
  }
  // "GPU 0, stream 7", "main, below 1"
  const std::vector<std::string>& names() const { return names_; }
  // Of the same track, that which no other stands above.
  std::int32_t first(std::size_t row) const { return firsts_[row]; }

 private:
  std::int32_t add(std::string name) {
    ends_.push_back(std::numeric_limits<std::int64_t>::min());
    names_.push_back(std::move(name));
    firsts_.push_back(static_cast<std::int32_t>(firsts_.size()));
    return firsts_.back();
  }

  const ForeignTrace& trace_;
  std::vector<std::vector<std::int32_t>> of_track_;
  std::vector<std::int32_t> of_process_;    // its first row; -1: none yet
  std::vector<std::optional<Lane>> lanes_;  // by track
  std::vector<std::int64_t> ends_;          // by row
  std::vector<std::string> names_;
  std::vector<std::int32_t> firsts_;
};

// Names of submissions say which pass or iteration a slice is, and no kind of op.
GuessedOp op_of_name(const ForeignTrace& trace, std::size_t name) {
  const bool no_op = trace.on_host[name] || trace.detail == "steps";
  return no_op ? GuessedOp{} : guess_op(trace.names[name]);
}

void sort_slices(ForeignTrace& trace) {
  std::stable_sort(trace.slices.begin(), trace.slices.end(),
                   [](const ForeignSlice& a, const ForeignSlice& b) {
                     return a.start != b.start ? a.start < b.start
                                               : a.duration > b.duration;  // who holds others comes first
                   });
}

// Counters may begin before the first slice does.
double first_moment(const ForeignTrace& trace) {
  double first = trace.slices.empty() ? 0 : trace.slices.front().start;
  for (const ForeignSample& sample : trace.samples) first = std::min(first, sample.time);
  return first;
}

void add_ops(const ForeignTrace& trace, Timeline& timeline) {
  timeline.fragments = trace.names;
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    const GuessedOp guess = op_of_name(trace, i);
    OpRow op;
    op.kind = guess.kind;
    op.phase = guess.phase;
    op.layer = guess.layer;
    op.fragment = static_cast<std::int32_t>(i);
    timeline.ops.push_back(op);
  }
}

void add_samples(const ForeignTrace& trace, double first, Rows& rows, Timeline& timeline) {
  timeline.counters = trace.counters;
  for (const ForeignSample& sample : trace.samples) {
    const auto ns = static_cast<std::int64_t>(std::round(1000 * (sample.time - first)));
    timeline.samples.push_back({sample.counter, rows.of_process(sample.process), Time{ns}, sample.value});
  }
}

// The slices that are open on one track, the innermost last.
struct OpenSlice {
  double end;
  std::int32_t name;
};

}  // namespace

GuessedOp guess_op(std::string_view name) {
  GuessedOp guess;
  guess.layer = layer_in(name);
  const std::string words = lower(name);
  for (const char* back : {"backward", "bwd", "dgrad", "_grad"}) {
    if (words.find(back) != std::string::npos) guess.phase = Phase::kBackward;
  }
  if (words.find("wgrad") != std::string::npos) guess.phase = Phase::kWeight;
  if (const auto own = own_kind(name.substr(0, name.find(' ')))) {
    guess.kind = *own;
    guess.known = true;
    return guess;
  }
  for (const Word& word : kWords) {
    if (words.find(word.part) == std::string::npos || words.find(word.beside) == std::string::npos) continue;
    guess.kind = word.kind;
    guess.known = true;
    return guess;
  }
  return guess;
}

ForeignTimes times_of(ForeignTrace& trace) {
  ForeignTimes times;
  sort_slices(trace);
  std::vector<GuessedOp> ops;
  for (std::size_t i = 0; i < trace.names.size(); ++i) ops.push_back(op_of_name(trace, i));
  const auto count = [&](std::int32_t name, double us) {
    double& sum = ops[name].known ? times.kinds[ops[name].kind].busy : times.other;
    sum += 1e-6 * us;
  };
  std::vector<std::vector<OpenSlice>> open(trace.tracks.size());
  for (const ForeignSlice& slice : trace.slices) {
    const double end = slice.start + slice.duration;
    count(slice.name, slice.duration - slice.waiting);
    if (ops[slice.name].known && slice.waiting > 0)
      times.kinds[ops[slice.name].kind].waiting += 1e-6 * slice.waiting;
    if (!trace.detail.empty()) continue;  // lanes of ours hold no calls inside calls
    std::vector<OpenSlice>& around = open[slice.track];
    while (!around.empty() && around.back().end <= slice.start) around.pop_back();
    if (!around.empty()) count(around.back().name, slice.start - std::min(end, around.back().end));
    around.push_back({end, slice.name});
  }
  return times;
}

Timeline timeline_of(ForeignTrace&& trace, const std::string& source) {
  Timeline timeline;
  sort_slices(trace);
  const double first = first_moment(trace);
  add_ops(trace, timeline);
  Rows rows(trace);
  timeline.spans.reserve(trace.slices.size());
  timeline.submissions.reserve(trace.slices.size());
  for (const ForeignSlice& slice : trace.slices) {
    const auto start = static_cast<std::int64_t>(std::round(1000 * (slice.start - first)));
    const auto end = start + static_cast<std::int64_t>(std::round(1000 * slice.duration));
    const std::int32_t row = rows.place(slice.track, start, end);
    const auto sequence = static_cast<std::int32_t>(timeline.spans.size());
    timeline.submissions.push_back({sequence, slice.name, row, 0, 0});
    const auto waiting = static_cast<std::int64_t>(std::round(1000 * slice.waiting));
    timeline.spans.push_back({.sequence = sequence,
                              .rank_class = row,
                              .lane = rows.lane(slice.track),
                              .origin = Origin::kExecuted,
                              .start = Time{start},
                              .end = Time{end},
                              .work_start = Time{waiting > 0 ? std::min(start + waiting, end) : 0}});
  }
  std::vector<ForeignSlice>().swap(trace.slices);
  add_samples(trace, first, rows, timeline);
  timeline.facts = {{"scenario", source}, {"executor", "imported"}};
  if (!trace.detail.empty())  // else it is of others, which exports tell by this
    timeline.facts.emplace_back("timeline_detail", trace.detail == "steps" ? "steps" : "ops");
  for (std::size_t row = 0; row < rows.names().size(); ++row) {
    timeline.class_ranks.push_back(static_cast<std::int32_t>(row));
    timeline.class_sizes.push_back(1);
    timeline.facts.emplace_back(fmt::format("row {}", row), rows.names()[row]);
    if (const auto first = static_cast<std::size_t>(rows.first(row)); first != row)
      timeline.facts.emplace_back(fmt::format("below {}", row), std::to_string(first));
  }
  return timeline;
}

}  // namespace moebius::viz
