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
};

// The first that occurs in a name decides: communication before compute, particular before general.
constexpr std::array kWords{
    Word{"reducescatter", OpKind::kReduceScatter},
    Word{"reduce_scatter", OpKind::kReduceScatter},
    Word{"allgather", OpKind::kAllGather},
    Word{"all_gather", OpKind::kAllGather},
    Word{"allreduce", OpKind::kAllReduce},
    Word{"all_reduce", OpKind::kAllReduce},
    Word{"alltoall", OpKind::kAllToAll},
    Word{"all_to_all", OpKind::kAllToAll},
    Word{"broadcast", OpKind::kBroadcast},
    Word{"sendrecv", OpKind::kSend},
    Word{"nccl", OpKind::kAllReduce},
    Word{"dispatch", OpKind::kDispatch},
    Word{"combine", OpKind::kCombine},
    Word{"memcpy htod", OpKind::kCopyFromHost},
    Word{"memcpy dtoh", OpKind::kCopyToHost},
    Word{"grouped_gemm", OpKind::kGroupedGemm},
    Word{"group_gemm", OpKind::kGroupedGemm},
    Word{"flash", OpKind::kAttention},
    Word{"fmha", OpKind::kAttention},
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

// Slices in the order of time, each with the row that it stands on: of its track the first one that is free.
class Rows {
 public:
  Rows(std::size_t tracks) : of_track_(tracks) {}

  std::int32_t place(std::int32_t track, std::int64_t start, std::int64_t end) {
    for (const std::int32_t row : of_track_[track]) {
      if (ends_[row] > start) continue;
      ends_[row] = end;
      return row;
    }
    const auto row = static_cast<std::int32_t>(ends_.size());
    of_track_[track].push_back(row);
    ends_.push_back(end);
    tracks_.push_back({track, static_cast<int>(of_track_[track].size())});
    return row;
  }
  std::size_t size() const { return ends_.size(); }
  // "GPU 0, stream 7", "main, below 1"
  std::string name(std::size_t row, const ForeignTrace& trace) const {
    const auto& [track, depth] = tracks_[row];
    const auto& [process, thread] = trace.tracks[track];
    return fmt::format("{}, {}{}", process, thread, depth > 1 ? fmt::format(", below {}", depth - 1) : "");
  }

 private:
  struct Place {
    std::int32_t track;
    int depth;  // from 1
  };
  std::vector<std::vector<std::int32_t>> of_track_;
  std::vector<std::int64_t> ends_;
  std::vector<Place> tracks_;
};

void add_ops(const ForeignTrace& trace, Timeline& timeline) {
  timeline.fragments = trace.names;
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    const GuessedOp guess = guess_op(trace.names[i]);
    OpRow op;
    op.kind = guess.kind;
    op.phase = guess.phase;
    op.layer = guess.layer;
    op.fragment = static_cast<std::int32_t>(i);
    timeline.ops.push_back(op);
  }
}

void add_samples(const ForeignTrace& trace, double first, std::size_t classes, Timeline& timeline) {
  timeline.counters = trace.counters;
  for (const ForeignSample& sample : trace.samples) {
    const double ns = std::round(1000 * (sample.time - first));
    if (ns < 0 || classes == 0) continue;
    timeline.samples.push_back({sample.counter, 0, Time{static_cast<std::int64_t>(ns)}, sample.value});
  }
}

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
    return guess;
  }
  for (const Word& word : kWords) {
    if (words.find(word.part) == std::string::npos) continue;
    guess.kind = word.kind;
    return guess;
  }
  return guess;
}

Timeline timeline_of(ForeignTrace&& trace, const std::string& source) {
  Timeline timeline;
  std::stable_sort(trace.slices.begin(), trace.slices.end(),
                   [](const ForeignSlice& a, const ForeignSlice& b) {
                     return a.start != b.start ? a.start < b.start
                                               : a.duration > b.duration;  // who holds others comes first
                   });
  const double first = trace.slices.empty() ? 0 : trace.slices.front().start;
  add_ops(trace, timeline);
  Rows rows(trace.tracks.size());
  timeline.spans.reserve(trace.slices.size());
  timeline.submissions.reserve(trace.slices.size());
  for (const ForeignSlice& slice : trace.slices) {
    const auto start = static_cast<std::int64_t>(std::round(1000 * (slice.start - first)));
    const auto end = start + static_cast<std::int64_t>(std::round(1000 * slice.duration));
    const std::int32_t row = rows.place(slice.track, start, end);
    const auto sequence = static_cast<std::int32_t>(timeline.spans.size());
    timeline.submissions.push_back({sequence, slice.name, row, 0, 0});
    timeline.spans.push_back({.sequence = sequence,
                              .rank_class = row,
                              .origin = Origin::kExecuted,
                              .start = Time{start},
                              .end = Time{end}});
  }
  std::vector<ForeignSlice>().swap(trace.slices);
  timeline.facts = {{"scenario", source}, {"executor", "imported"}, {"timeline_detail", "ops"}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    timeline.class_ranks.push_back(static_cast<std::int32_t>(row));
    timeline.class_sizes.push_back(1);
    timeline.facts.emplace_back(fmt::format("row {}", row), rows.name(row, trace));
  }
  add_samples(trace, first, rows.size(), timeline);
  return timeline;
}

}  // namespace moebius::viz
