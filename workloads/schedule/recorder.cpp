#include "workloads/schedule/recorder.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/op_formats.h"
#include "workloads/schedule/work.h"

namespace moebius {

namespace {

std::vector<std::int32_t> class_sizes(const Layout& layout) {
  std::vector<std::int32_t> sizes;
  for (const RankClass& rank_class : layout.classes) sizes.push_back(rank_class.size());
  return sizes;
}

void add_op_rows(Timeline& timeline, const Fragment& fragment, std::int32_t row) {
  const auto before = static_cast<std::int32_t>(timeline.dependencies.size());
  timeline.dependencies.insert(timeline.dependencies.end(), fragment.dependencies.begin(),
                               fragment.dependencies.end());
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    timeline.ops.push_back({.kind = op.kind,
                            .dtype = op.dtype,
                            .lane = op.lane,
                            .phase = op.phase,
                            .role = op.role,
                            .group = op.group,
                            .layer = op.layer,
                            .second = op.second,
                            .match = op.match,
                            .fragment = row,
                            .index = static_cast<std::int32_t>(i),
                            .first_dependency = before + op.first_dependency,
                            .num_dependencies = op.num_dependencies,
                            .shape = op.shape,
                            .flops = op_flops(op, fragment).value,
                            .bytes = op_bytes(op, fragment).value,
                            .payload = op.payload.value});
  }
}

}  // namespace

std::string_view to_string(Detail detail) {
  switch (detail) {
    case Detail::kOps:
      return "ops";
    case Detail::kSteps:
      return "steps";
    case Detail::kNone:
      return "none";
  }
  return "unknown";
}

Recorder::Recorder(const Layout& layout, RecorderOptions options)
    : layout_(layout), options_(options), metrics_(class_sizes(layout)), pass_times_(class_sizes(layout)) {
  for (const RankClass& rank_class : layout.classes)
    timeline_.class_ranks.push_back(rank_class.representative());
  timeline_.class_sizes = class_sizes(layout);
}

std::int32_t Recorder::fragment_row(const Fragment& fragment) {
  const auto next = static_cast<std::int32_t>(fragment_rows_.size());
  const auto [place, added] = fragment_rows_.try_emplace(fragment.hash, next);
  if (added && options_.detail != Detail::kNone && options_.stores) {
    timeline_.fragments.push_back(fragment.name);
    add_op_rows(timeline_, fragment, next);
  }
  return place->second;
}

std::shared_ptr<const Recorder::CountedOps> Recorder::counted_ops(const FragmentPtr& fragment,
                                                                  std::int32_t rank_class) {
  std::shared_ptr<const CountedOps>& known = counted_ops_[{fragment->hash, rank_class}];
  if (known) return known;
  CountedOps ops;
  ops.reserve(fragment->ops.size());
  for (const Op& op : fragment->ops)
    ops.push_back(counted(op, class_work(op, *fragment, layout_, rank_class)));
  auto made = std::make_shared<const CountedOps>(std::move(ops));
  known = made;
  if (counted_ops_.size() > most_counted_ops_) forget_unused();
  return made;
}

// A workload may issue ever new fragments: those that no open submission uses do not pile up.
void Recorder::forget_unused() {
  std::erase_if(counted_ops_, [](const auto& entry) { return entry.second.use_count() == 1; });
  most_counted_ops_ = std::max<std::size_t>(256, 2 * counted_ops_.size());
}

void Recorder::submitted(const Submission& submission) {
  const auto next = first_kept_ + static_cast<std::int32_t>(open_.size());
  CHECK(submission.sequence == next, fmt::format("sequence {} after {}", submission.sequence, next - 1));
  CHECK(
      submission.rank_class >= 0 && submission.rank_class < static_cast<std::int32_t>(layout_.classes.size()),
      fmt::format("class {} of {}", submission.rank_class, layout_.classes.size()));
  const std::int32_t row = fragment_row(*submission.fragment);
  if (options_.detail != Detail::kNone) {
    timeline_.submissions.push_back({.sequence = submission.sequence,
                                     .fragment = row,
                                     .rank_class = submission.rank_class,
                                     .step = submission.step,
                                     .microbatch = submission.microbatch,
                                     .second_microbatch = submission.second_microbatch,
                                     .first_after = static_cast<std::int32_t>(timeline_.afters.size()),
                                     .num_after = static_cast<std::int32_t>(submission.after.size())});
    timeline_.afters.insert(timeline_.afters.end(), submission.after.begin(), submission.after.end());
    for (const Follow& follow : submission.follows)
      timeline_.follows.push_back({submission.sequence, follow.op, follow.sequence, follow.before});
  }
  schedule_hash_.add(submission.fragment->hash).add(submission.sequence).add(submission.rank_class);
  schedule_hash_.add(submission.step).add(submission.microbatch).add(submission.after.size());
  for (const std::int32_t before : submission.after) schedule_hash_.add(before);
  for (const Follow& follow : submission.follows)
    schedule_hash_.add(follow.op).add(follow.sequence).add(follow.before);
  if (submission.second_microbatch >= 0) schedule_hash_.add(submission.second_microbatch);

  const bool several = layout_.classes[submission.rank_class].size() > 1;
  open_.push_back({.fragment = submission.fragment,
                   .ops = several ? counted_ops(submission.fragment, submission.rank_class) : nullptr,
                   .rank_class = submission.rank_class,
                   .remaining = static_cast<std::int32_t>(submission.fragment->ops.size()),
                   .pass = {.phase = submission.fragment->phase, .pair = submission.second_microbatch >= 0}});
}

CountedOp Recorder::count_anew(const Open& open, std::int32_t op) const {
  const Fragment& fragment = *open.fragment;
  return counted(fragment.ops[op], class_work(fragment.ops[op], fragment, layout_, open.rank_class));
}

void Recorder::span(const Span& span) {
  const auto at = static_cast<std::size_t>(span.sequence - first_kept_);
  CHECK(at >= num_closed_ && at < open_.size(),
        fmt::format("span of submission {}, open are {} to {}", span.sequence, first_open(),
                    first_kept_ + static_cast<std::int64_t>(open_.size())));
  Open& open = open_[at];
  CHECK(span.op >= 0 && span.op < static_cast<std::int32_t>(open.fragment->ops.size()) && open.remaining > 0,
        fmt::format("op {} of {}, {} left", span.op, open.fragment->ops.size(), open.remaining));
  CHECK(span.rank_class == open.rank_class,
        fmt::format("class {}, submitted for {}", span.rank_class, open.rank_class));
  const auto in_span = [end = static_cast<std::uint64_t>(span.end.ns)](Time t) {
    return static_cast<std::uint64_t>(t.ns) <= end;  // a negative one is large
  };
  CHECK(span.error >= 0, fmt::format("expected error {}", span.error));
  CHECK(span.end.ns >= 0 && in_span(span.start) && in_span(span.work_start) && in_span(span.first_end) &&
            in_span(span.mean_end),
        fmt::format("start {} work {} first {} mean {} end {} ns", span.start.ns, span.work_start.ns,
                    span.first_end.ns, span.mean_end.ns, span.end.ns));
  CountedOp anew;
  if (!open.ops) anew = count_anew(open, span.op);
  const CountedOp& op = open.ops ? (*open.ops)[span.op] : anew;
  metrics_.add(span, op);
  open.start = std::min(open.start, span.transfer_start());
  open.end = std::max(open.end, span.end);
  if (op.computes) open.pass.add(span.start, span.end);
  if (options_.detail == Detail::kOps) keep(span);
  if (--open.remaining == 0) {
    pass_times_.finished(open.rank_class, open.pass, open.end);
    if (options_.detail == Detail::kSteps) keep_submission(span.sequence, open);
    close_finished();
  }
}

void Recorder::keep_submission(std::int32_t sequence, const Open& open) {
  keep({.sequence = sequence, .rank_class = open.rank_class, .start = open.start, .end = open.end});
}

// Submissions end out of order; those before the first open one are forgotten.
void Recorder::close_finished() {
  for (; num_closed_ < open_.size() && open_[num_closed_].remaining == 0; ++num_closed_)
    open_[num_closed_] = {};
  if (2 * num_closed_ <= open_.size()) return;
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(num_closed_));
  first_kept_ += static_cast<std::int32_t>(num_closed_);
  num_closed_ = 0;
}

bool Recorder::fits(std::size_t bytes) {
  const double after = kept_bytes_ + static_cast<double>(bytes);
  if (after > options_.max_bytes.value) return false;
  kept_bytes_ = after;
  return true;
}

void Recorder::keep(const Span& span) {
  if (span.start > options_.window || !fits(sizeof(Span))) {
    ++dropped_spans_;
  } else if (options_.stores) {
    make_room();
    timeline_.spans.push_back(span);
  }
}

// Many spans get room for all that may come, up to 1 GiB: pages that nothing is written to cost nothing,
// growing would copy them all again and again. Where the machine does not give as much, they grow.
void Recorder::make_room() {
  constexpr std::size_t kMany = 1 << 16, kMost = (std::size_t{1} << 30) / sizeof(Span);
  std::vector<Span>& spans = timeline_.spans;
  if (spans.size() < spans.capacity() || spans.size() < kMany || spans.size() >= kMost) return;
  const double most = std::min(options_.max_bytes.value / sizeof(Span), static_cast<double>(kMost));
  try {
    spans.reserve(static_cast<std::size_t>(most));
  } catch (const std::bad_alloc&) {
    spans.reserve(2 * spans.size());
  }
}

std::int32_t Recorder::counter_named(std::string_view name) {
  std::vector<std::string>& names = timeline_.counters;
  const auto [place, is_new] =
      counter_ids_.try_emplace(std::string(name), static_cast<std::int32_t>(names.size()));
  if (is_new) names.emplace_back(name);
  return place->second;
}

void Recorder::counter(std::int32_t rank_class, std::string_view name, Time time, double value) {
  if (options_.detail == Detail::kNone) return;
  if (time <= options_.window && fits(sizeof(CounterSample))) {
    timeline_.samples.push_back({counter_named(name), rank_class, time, value});
  } else {
    ++dropped_samples_;
  }
}

void Recorder::counter(std::int32_t rank_class, std::int32_t counter, Time time, double value) {
  if (options_.detail == Detail::kNone) return;
  if (time <= options_.window && fits(sizeof(CounterSample))) {
    timeline_.samples.push_back({counter, rank_class, time, value});
  } else {
    ++dropped_samples_;
  }
}

void Recorder::add_facts() {
  const auto add = [this](std::string name, std::string value) {
    timeline_.facts.emplace_back(std::move(name), std::move(value));
  };
  add("schedule_hash", fmt::format("{:016x}", schedule_hash()));
  add("timeline_detail", std::string(to_string(options_.detail)));
  if (options_.window < kForever) add("timeline_window_s", fmt::format("{}", options_.window.seconds()));
  if (dropped_spans_ > 0) add("dropped_spans", std::to_string(dropped_spans_));
  if (dropped_samples_ > 0) add("dropped_samples", std::to_string(dropped_samples_));
}

Metrics Recorder::finish(Time end) {
  CHECK(num_closed_ == open_.size(),
        fmt::format("submission {} has {} ops without a span", first_open(), open_[num_closed_].remaining));
  add_facts();
  Metrics metrics = metrics_.finish(end);
  metrics.passes = pass_times_.seconds(end);
  return metrics;
}

}  // namespace moebius
