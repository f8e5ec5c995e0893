#include "workloads/serving/system/service_metrics.h"

#include <algorithm>
#include <utility>

namespace moebius {
namespace {

Time tpot_of(const RequestMoments& request) {
  if (request.output < 2) return {};
  const Time first = request.first_token + request.first_back, last = request.last_token + request.last_back;
  return {(last - first).ns / (request.output - 1)};
}

Time ttft_of(const RequestMoments& request) {
  return request.first_token + request.first_back - request.arrival;
}

bool meets(const RequestMoments& request, const ServiceGoal& goal) {
  const bool first = goal.ttft.ns == 0 || ttft_of(request) <= goal.ttft;
  return first && (goal.tpot.ns == 0 || tpot_of(request) <= goal.tpot);
}

}  // namespace

ServiceMetrics::ServiceMetrics(std::vector<ServiceGoal> goals)
    : goals_(std::move(goals)), classes_(goals_.size()) {}

void ServiceMetrics::finished(const RequestMoments& request) {
  ClassFigures& figures = classes_[request.service_class];
  ++figures.completed;
  ++finished_;
  figures.met += meets(request, goals_[request.service_class]) ? 1 : 0;
  figures.input += request.input;
  figures.output += request.output - request.brought;
  figures.ttft.add(ttft_of(request));
  figures.e2e.add(request.last_token + request.last_back - request.arrival);
  if (request.output > 1) figures.tpot.add(tpot_of(request));
  shares_.network += (request.there - request.received + request.last_back).seconds();
  shares_.reception += request.received.seconds();
  const Time there = request.arrival + request.there;
  const Time ready = request.encoded == kForever ? there : request.encoded;
  shares_.encode += (ready - there).seconds();
  shares_.queue += (request.admitted - ready).seconds();
  shares_.prefill += (request.first_token - request.moved - request.admitted).seconds();
  shares_.handover += (request.handed_over - request.first_token + request.moved).seconds();
  shares_.decode += (request.last_token - request.handed_over).seconds();
  input_ += request.input;
  output_ += request.output - request.brought;
  end_ = std::max(end_, request.last_token + request.last_back);
}

void ServiceMetrics::tokens(const std::vector<TokenGap>& gaps) {
  for (const TokenGap& gap : gaps) itl_.add(gap.gap, gap.count);
}

PromisedRequests ServiceMetrics::promised() const {
  PromisedRequests sum;
  const bool any =
      std::any_of(goals_.begin(), goals_.end(), [](const ServiceGoal& goal) { return goal.given(); });
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (any && !goals_[i].given()) continue;
    sum.submitted += classes_[i].submitted;
    sum.met += classes_[i].met;
  }
  return sum;
}

ServingFigures ServiceMetrics::figures() const {
  ClassFigures all;
  for (const ClassFigures& figures : classes_) {
    all.submitted += figures.submitted;
    all.completed += figures.completed;
    all.ttft.merge(figures.ttft);
    all.tpot.merge(figures.tpot);
    all.e2e.merge(figures.e2e);
  }
  const double seconds = span().seconds();
  const auto rate = [&](std::int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  ServingFigures figures;
  figures.submitted = all.submitted;
  figures.completed = all.completed;
  figures.ttft = all.ttft.spread();
  figures.tpot = all.tpot.spread();
  figures.itl = itl_.spread();
  figures.e2e = all.e2e.spread();
  figures.output_tokens_per_s = rate(output_);
  figures.input_tokens_per_s = rate(input_);
  const PromisedRequests promised = this->promised();
  figures.goodput_rps = rate(promised.met);
  if (promised.submitted > 0)
    figures.slo_attainment = static_cast<double>(promised.met) / static_cast<double>(promised.submitted);
  return figures;
}

bool Backlog::grows() const {
  constexpr std::int64_t kLeast = 100;
  constexpr double kMost = 0.2, kGrowth = 1.5, kAtOnce = 0.1;
  return submitted >= kLeast && arriving > kAtOnce &&
         static_cast<double>(last) > kMost * static_cast<double>(submitted) &&
         static_cast<double>(last) > kGrowth * static_cast<double>(earlier);
}

Backlog ServiceMetrics::backlog() const {
  if (submitted_ < 2) return {submitted_, in_system_};
  const int half = std::bit_width(static_cast<std::uint64_t>(submitted_ / 2)) - 1;
  const double arriving = span().ns > 0 ? (last_ - first_).seconds() / span().seconds() : 0;
  return {submitted_, in_system_, in_system_at_[half], std::int64_t{1} << half, arriving};
}

}  // namespace moebius
