#include "workloads/serving/system/service_record.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr std::array kFragments{"prefill",          "decode",        "prefill and decode", "request queues",
                                "request prefills", "request moves", "request decodes"};
constexpr std::array kCounters{"waiting requests", "running requests", "cache blocks", "balancedness"};

std::array<double, kCounters.size()> values_of(const PoolMoment& pool) {
  return {static_cast<double>(pool.waiting), static_cast<double>(pool.running),
          static_cast<double>(pool.pages), pool.balancedness};
}

OpRow op_row(int fragment) {
  OpRow row;
  row.fragment = fragment;
  return row;
}

}  // namespace

ServiceRecord::ServiceRecord(std::vector<RecordedPool> pools, const RecorderOptions& options)
    : pools_(std::move(pools)), options_(options), lane_free_(kRequestLanes) {
  series_.step = kFirstStep;
  if (options_.detail == Detail::kNone) return;
  for (std::size_t f = 0; f < kFragments.size(); ++f) {
    timeline_.fragments.emplace_back(kFragments[f]);
    timeline_.ops.push_back(op_row(static_cast<int>(f)));
  }
  timeline_.counters.assign(kCounters.begin(), kCounters.end());
  std::int32_t rank = 0;
  const auto add = [&](std::string name, int size) {
    timeline_.facts.emplace_back(fmt::format("class {}", timeline_.class_ranks.size()), std::move(name));
    timeline_.class_ranks.push_back(rank);
    timeline_.class_sizes.push_back(size);
    rank += size;
  };
  for (const RecordedPool& pool : pools_) {
    pool_class_.push_back(instances_);
    for (int i = 0; i < pool.instances; ++i, ++instances_)
      add(fmt::format("{} {}", pool.name, i), pool.ranks);
  }
  for (int lane = 0; lane < kRequestLanes; ++lane) add(fmt::format("requests {}", lane), 1);
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    if (pools_[pool].instances < 2) continue;
    pool_class_[pool] = static_cast<std::int32_t>(timeline_.class_ranks.size());
    add(fmt::format("{}, all {}", pools_[pool].name, pools_[pool].instances), 1);
  }
  if (options_.counters.ns > 0) counters_due_ = {};
}

bool ServiceRecord::fits(Time begin, double bytes) {
  if (begin > options_.window || bytes_ + bytes > options_.max_bytes.value) return false;
  bytes_ += bytes;
  return true;
}

void ServiceRecord::keep(Fragment what, std::int32_t lane, Time begin, Time end, std::int64_t rows) {
  if (end <= begin) return;
  if (!fits(begin, sizeof(Span) + sizeof(SubmissionRow))) {
    ++dropped_;
    return;
  }
  const auto sequence = static_cast<std::int32_t>(timeline_.submissions.size());
  timeline_.submissions.push_back({sequence, what, lane, 0, static_cast<std::int32_t>(rows)});
  Span span;
  span.sequence = sequence;
  span.rank_class = lane;
  span.start = begin;
  span.end = span.first_end = span.mean_end = end;
  timeline_.spans.push_back(span);
}

void ServiceRecord::iteration(std::int32_t instance, Time begin, Time end, bool prompts, bool decodes,
                              std::int64_t rows) {
  if (options_.detail == Detail::kNone) return;
  keep(prompts && decodes ? kMixed : prompts ? kPrefill : kDecode, instance, begin, end, rows);
}

void ServiceRecord::finished(const RequestMoments& request) {
  if (options_.detail == Detail::kNone) return;
  const auto free = std::find_if(lane_free_.begin(), lane_free_.end(),
                                 [&](Time since) { return since <= request.arrival; });
  if (free == lane_free_.end()) {
    ++left_out_;
    return;
  }
  *free = request.last_token;
  const auto lane = instances_ + static_cast<std::int32_t>(free - lane_free_.begin());
  const Time admitted = std::min(request.admitted, request.first_token - request.moved);
  const Time there = std::max(request.first_token, request.handed_over);
  keep(kQueue, lane, request.arrival, admitted, request.input);
  const Time computed = request.first_token - request.moved;
  keep(kPrompt, lane, admitted, computed, request.input);
  keep(kHandover, lane, computed, there, request.input);
  keep(kAnswer, lane, there, request.last_token, request.output);
}

// Every other step stays, and steps are twice as long.
void ServiceRecord::halve() {
  for (std::size_t i = 1; 2 * i < series_.moments.size(); ++i)
    series_.moments[i] = std::move(series_.moments[2 * i]);
  series_.moments.resize((series_.moments.size() + 1) / 2);
  series_.step.ns *= 2;
}

// Nothing changed between the last call and this one.
void ServiceRecord::sample(Time until, const std::vector<PoolMoment>& pools) {
  if (until >= due_) add_to_series(until, pools);
  if (until < counters_due_) return;
  count(counters_due_, pools);
  counters_due_ = Time{(until.ns / options_.counters.ns + 1) * options_.counters.ns};
}

void ServiceRecord::add_to_series(Time until, const std::vector<PoolMoment>& pools) {
  while (until.ns / series_.step.ns >= kMostSteps) halve();
  const auto passed = static_cast<std::size_t>(until.ns / series_.step.ns) + 1;
  while (series_.moments.size() < passed) series_.moments.push_back(pools);
  due_ = Time{static_cast<std::int64_t>(series_.moments.size()) * series_.step.ns};
}

// A counter that keeps its value has no new sample.
void ServiceRecord::count(Time time, const std::vector<PoolMoment>& pools) {
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    const auto values = values_of(pools[pool]);
    for (std::size_t c = 0; c < values.size(); ++c) {
      if (!counted_.empty() && values_of(counted_[pool])[c] == values[c]) continue;
      if (fits(time, sizeof(CounterSample)))
        timeline_.samples.push_back({static_cast<std::int32_t>(c), pool_class_[pool], time, values[c]});
      else
        ++dropped_samples_;
    }
  }
  counted_ = pools;
}

void ServiceRecord::count_series() {
  for (std::size_t step = 0; step < series_.moments.size(); ++step)
    count(Time{static_cast<std::int64_t>(step) * series_.step.ns}, series_.moments[step]);
}

Timeline ServiceRecord::take() {
  if (options_.detail == Detail::kNone) return std::move(timeline_);
  if (options_.counters.ns == 0) count_series();
  const auto add = [this](std::string name, std::string value) {
    timeline_.facts.emplace_back(std::move(name), std::move(value));
  };
  add("timeline_detail", std::string(to_string(Detail::kSteps)));
  if (options_.window < kForever) add("timeline_window_s", fmt::format("{}", options_.window.seconds()));
  if (dropped_ > 0) add("dropped_spans", std::to_string(dropped_));
  if (dropped_samples_ > 0) add("dropped_samples", std::to_string(dropped_samples_));
  if (left_out_ > 0) add("requests_without_lane", std::to_string(left_out_));
  return std::move(timeline_);
}

}  // namespace moebius
