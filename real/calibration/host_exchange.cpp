#include "real/calibration/host_exchange.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>

#include "hw/cluster.h"
#include "hw/median.h"
#include "hw/stopwatch.h"
#include "real/bench/cache_walk.h"
#include "real/host/host_executor.h"
#include "workloads/calibration/device/transfer_fit.h"
#include "workloads/schedule/local_exchange.h"
#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

constexpr int kRanks = 4, kRepetitions = 10;
constexpr std::int64_t kColumns = 64;
const std::vector<std::int64_t> kRows = {16, 64, 256, 1024};

struct Kind {
  OpKind kind = OpKind::kAllReduce;
  DType dtype = DType::kBf16;
};
const std::vector<Kind> kKinds = {
    {OpKind::kAllReduce, DType::kFp32},     {OpKind::kAllReduce, DType::kBf16},
    {OpKind::kReduceScatter, DType::kFp32}, {OpKind::kReduceScatter, DType::kBf16},
    {OpKind::kAllGather, DType::kFp32},     {OpKind::kAllGather, DType::kBf16},
    {OpKind::kBroadcast, DType::kFp32},     {OpKind::kAllToAll, DType::kBf16},
    {OpKind::kDispatch, DType::kBf16},      {OpKind::kDispatch, DType::kFp8},
    {OpKind::kCombine, DType::kBf16},       {OpKind::kSend, DType::kBf16}};

Layout layout_of(int ranks, GroupRole role) {
  Layout layout;
  layout.ranks = ranks;
  std::vector<std::int32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    RankClass place;
    place.ranks = {rank};
    place.groups[static_cast<int>(role)] = {.ranks = all, .my_index = rank, .num_classes = ranks};
    layout.classes.push_back(std::move(place));
    layout.class_of_rank.push_back(rank);
    layout.device_of_rank.push_back(rank);
  }
  return layout;
}

GroupRole role_of(OpKind kind) {
  if (kind == OpKind::kSend) return GroupRole::kNext;
  return kind == OpKind::kDispatch || kind == OpKind::kCombine ? GroupRole::kExpert : GroupRole::kTensor;
}

// The op of one member, alone in a fragment, on an operand of `rows` rows (of routed kinds: as many tokens).
class Case {
 public:
  Case(Kind kind, std::int64_t rows) : kind_(kind), rows_(rows) {
    if (role_of(kind.kind) == GroupRole::kExpert)
      route_ = std::make_shared<const Route>(RouteSpec{.ranks = kRanks,
                                                       .ranks_per_node = kRanks,
                                                       .experts = 2 * kRanks,
                                                       .active = 2,
                                                       .tokens = static_cast<int>(rows)});
  }

  FragmentPtr fragment(OpKind kind, int member) const {
    FragmentBuilder builder("an exchange", Phase::kForward);
    Op op{.kind = kind, .dtype = kind_.dtype, .group = role_of(kind_.kind), .match = 1};
    op.payload = {static_cast<double>((route_ ? 1 : rows_) * kColumns) * element_bytes(kind_.dtype)};
    if (route_) op.route = builder.add_route(route_);
    std::vector<TensorId> in, out;
    if (kind != OpKind::kRecv) in.push_back(builder.add(operand(1, rows_in(member), Scope::kRank)));
    if (kind != OpKind::kSend) out.push_back(builder.add(operand(0, rows_out(member), Scope::kFragment)));
    builder.emit(op, in, out);
    return builder.freeze_it();
  }

  // That a member copies, over all rounds; the mean over members.
  double bytes() const {
    const FragmentPtr sample = fragment(kind_.kind, 0);
    const LocalExchange host{.wire = {{1}, {}}, .packs = true, .element_bytes = 4};
    double sum = 0;
    for (const ExchangeRound& round : exchange_rounds(sample->ops[0], route_.get(), group_size(), host))
      sum += std::accumulate(round.bytes.begin(), round.bytes.end(), 0.0) /
             static_cast<double>(round.bytes.size());
    return sum;
  }
  int group_size() const { return kind_.kind == OpKind::kSend ? 2 : kRanks; }

 private:
  Tensor operand(std::uint32_t key, std::int64_t rows, Scope scope) const {
    // Random numbers: zeros are rounded in no time.
    return {.scope = scope, .dtype = kind_.dtype, .key = key, .rows = rows, .columns = kColumns, .init = 1};
  }
  std::int64_t received(int member) const {
    std::int64_t rows = 0;
    for (int from = 0; from < kRanks; ++from) rows += route_->tokens_between(from, member);
    return rows;
  }
  std::int64_t rows_in(int member) const {
    return kind_.kind == OpKind::kCombine     ? received(member)
           : kind_.kind == OpKind::kAllGather ? rows_ / kRanks
                                              : rows_;
  }
  std::int64_t rows_out(int member) const {
    if (kind_.kind == OpKind::kDispatch) return received(member);
    return kind_.kind == OpKind::kReduceScatter ? rows_ / kRanks : rows_;
  }

  Kind kind_;
  std::int64_t rows_;
  RoutePtr route_;
};

// Median seconds of the op over members and repetitions; of a message, sender and receiver together.
double seconds_of(const Kind& kind, const Case& one, const CacheWalk& between) {
  const Layout layout = layout_of(one.group_size(), role_of(kind.kind));
  Recorder recorder(layout, {.detail = Detail::kNone});
  HostOptions options;
  options.one_at_a_time = true;
  options.observer = [&between](const ComputedOp&) { between.walk(); };
  const auto executor = make_host_executor(layout, recorder, options);
  std::map<std::int32_t, bool> receives;  // by sequence
  std::int32_t sequence = 0;
  std::vector<FragmentPtr> fragments;
  fragments.reserve(layout.ranks);
  for (int rank = 0; rank < layout.ranks; ++rank)
    fragments.push_back(
        one.fragment(kind.kind == OpKind::kSend && rank == 1 ? OpKind::kRecv : kind.kind, rank));
  for (int i = 0; i < kRepetitions; ++i) {
    for (int rank = 0; rank < layout.ranks; ++rank) {
      Submission submission{
          .fragment = fragments[rank], .sequence = sequence, .rank_class = rank, .after = {}};
      submission.microbatch = i;
      receives[sequence++] = kind.kind == OpKind::kSend && rank == 1;
      recorder.submitted(submission);
      executor->submit(submission);
    }
  }
  executor->finish();
  std::vector<double> ops, others;
  for (const OpTime& time : executor->op_times())
    (receives[time.sequence] ? others : ops).push_back(time.cpu.seconds());
  return upper_median(ops) + (others.empty() ? 0 : upper_median(others));
}

TransferCurve measure(const Kind& kind, const FiguresTime& time, const CacheWalk& between) {
  // On a machine that others load, too, ranks wait for cores: of a budget the ops have their share all the
  // same.
  const bool late = time.last_part(1).spent();
  const std::size_t least = late ? 1 : 3;
  TransferCurve curve;
  curve.name = exchange_name(kind.kind, kind.dtype);
  for (const std::int64_t rows : kRows) {
    const Case one(kind, rows);
    std::vector<double> found;
    const auto start = std::chrono::steady_clock::now();
    const double share = late ? 0 : time.seconds / static_cast<double>(kRows.size());
    while (found.size() < least || seconds_since(start) < share)
      found.push_back(seconds_of(kind, one, between));
    std::sort(found.begin(), found.end());
    const double middle = found[found.size() / 2];
    curve.bytes.push_back(one.bytes());
    curve.seconds.push_back(middle);
    curve.spread.push_back((found[found.size() * 3 / 4] - found[found.size() / 4]) / 2 / middle);
  }
  fit_line(curve);
  return curve;
}

}  // namespace

std::vector<TransferCurve> measure_host_exchange(const FiguresTime& time, std::size_t bytes_between) {
  const CacheWalk between(bytes_between);
  std::vector<TransferCurve> curves;
  curves.reserve(kKinds.size());
  for (const Kind& kind : kKinds) {
    time.require_left();
    curves.push_back(measure(kind, time.part(1.0 / static_cast<double>(kKinds.size())), between));
  }
  return curves;
}

}  // namespace moebius
