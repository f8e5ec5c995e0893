#include "workloads/cluster/queue/mixed_load.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "workloads/routing/random_stream.h"

namespace moebius {

namespace {

constexpr std::array<std::string_view, kNumJobClasses> kClassNames{"training", "sft", "rl", "inference"};
constexpr double kDay = 24 * kHour.seconds(), kWeek = 7 * kDay;
constexpr double kMostSeconds = 4e9;  // of a length: four of the longest durations, and sums fit into a Time

Time length_of(double seconds) {
  return time_from_seconds(std::min(seconds, kMostSeconds));
}

// 1 at the peak's hour, -1 twelve hours later.
double swing(double seconds, double peak_hour) {
  return std::cos(2 * std::numbers::pi * (seconds - peak_hour * kHour.seconds()) / kDay);
}

// Against a weekday's mean; at most 1 + depth.
double arrival_rate(const MixedLoad& load, double seconds) {
  const bool weekend = std::fmod(seconds, kWeek) >= 5 * kDay;
  return (1 + load.day_depth * swing(seconds, load.peak_hour)) * (weekend ? load.weekend : 1);
}

// No rate within the duration is above it, and it is not far above them all, however few arrive so early in
// the day. 0: so few that rounding would decide when.
double rate_bound(const MixedLoad& load, double duration) {
  constexpr double kMostDraws = 100, kLeastRate = 1e-9;
  const double ever = (1 + load.day_depth) * std::max(1.0, load.weekend);
  if (duration >= kDay || duration >= load.peak_hour * kHour.seconds()) return ever;
  const double within = std::max(arrival_rate(load, 0), arrival_rate(load, duration));
  return within < kLeastRate ? 0 : std::min(ever, kMostDraws * within);
}

// By rejection: uniform times, kept as often as the rate there says; where that is none, all.
Time draw_arrival(const MixedLoad& load, Time duration, RandomStream& random) {
  const double most = rate_bound(load, duration.seconds());
  for (;;) {
    const double at = random.unit() * duration.seconds();
    if (most <= 0 || random.unit() * most < arrival_rate(load, at)) return time_from_seconds(at);
  }
}

int draw_by(const std::vector<double>& weights, RandomStream& random) {
  double at = random.unit() * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t i = 0;
  for (; i + 1 < weights.size() && at >= weights[i]; ++i) at -= weights[i];
  return static_cast<int>(i);
}

// How many jobs of each shape: their shares of the whole, at least one each that has a share, the rest to the
// largest remainders. What is given to the smallest is taken from the largest.
std::vector<int> jobs_by_shape(const QueuePlan& plan) {
  double all = 0;
  for (const JobShape& shape : plan.shapes) all += shape.jobs;
  std::vector<int> counts;
  std::vector<std::pair<double, int>> rests;
  int given = 0;
  for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
    const double exact = plan.load.jobs * plan.shapes[s].jobs / all;
    counts.push_back(exact > 0 ? std::max(1, static_cast<int>(exact)) : 0);
    if (exact > 0) rests.emplace_back(counts.back() - exact, static_cast<int>(s));
    given += counts.back();
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < plan.load.jobs; ++given, ++i) ++counts[rests[i % rests.size()].second];
  for (; given > plan.load.jobs; --given) --*std::max_element(counts.begin(), counts.end());
  return counts;
}

double mean_level(const JobShape& shape) {
  return (1 + shape.night) / 2;
}

// Cards while it runs as asked for; a service's on average.
double cards_of(const JobShape& shape, const DrawnJob& job) {
  if (shape.kind != JobClass::kInference) return shape.sizes[job.size];
  return shape.sizes[0] * job.replicas * mean_level(shape);
}

DrawnJob draw_job(const QueuePlan& plan, int shape_index, Time duration, RandomStream& random) {
  const JobShape& shape = plan.shapes[shape_index];
  DrawnJob job;
  job.shape = shape_index;
  job.key = random.bits();
  if (shape.kind == JobClass::kInference)
    job.replicas =
        std::max(1, static_cast<int>(std::lround(shape.replicas * std::exp(0.5 * random.normal()))));
  else
    job.size = draw_by(shape.weights, random);
  job.arrival = random.unit() < plan.load.backlog ? Time{} : draw_arrival(plan.load, duration, random);
  job.work = length_of(kHour.seconds() * std::exp(shape.sigma * random.normal()));
  const double stated = 1 + (plan.load.overestimate - 1) * random.unit();
  job.estimate = length_of(job.work.seconds() * stated);
  return job;
}

double asked_for(const QueuePlan& plan, const std::vector<DrawnJob>& jobs, double factor, Time duration) {
  double sum = 0;
  for (const DrawnJob& job : jobs)
    sum += cards_of(plan.shapes[job.shape], job) *
           std::min(job.work.seconds() * factor, (duration - job.arrival).seconds());
  return sum;
}

// The factor on all lengths with which jobs ask for so much within the duration, by bisection: what lies
// after the end does not count. As long as the duration allows where even that is too little.
double length_factor(const QueuePlan& plan, const std::vector<DrawnJob>& jobs, double wanted, Time duration) {
  double low = 1e-6, high = 1e6;
  for (int i = 0; i < 80; ++i) {
    const double middle = std::sqrt(low * high);
    (asked_for(plan, jobs, middle, duration) < wanted ? low : high) = middle;
  }
  return high;
}

void stretch(std::vector<DrawnJob>& jobs, double factor, Time duration) {
  const double longest = 4 * duration.seconds();  // a longer job does not end either
  const double least = std::min(60.0, longest);
  for (DrawnJob& job : jobs) {
    const double work = std::clamp(job.work.seconds() * factor, least, longest);
    job.estimate = length_of(job.estimate.seconds() / job.work.seconds() * work);
    job.work = length_of(work);
  }
}

}  // namespace

std::string_view to_string(JobClass kind) {
  return kClassNames[static_cast<int>(kind)];
}

std::vector<DrawnJob> draw_load(const QueuePlan& plan, Time duration, std::uint64_t seed) {
  double cards = 0, shares = 0;
  for (const CardPool& pool : plan.pools) cards += static_cast<double>(pool.all_cards());
  for (const JobShape& shape : plan.shapes) shares += shape.jobs > 0 ? shape.card_time : 0;
  const double wanted = plan.load.demand * cards * duration.seconds();
  const std::vector<int> counts = jobs_by_shape(plan);
  std::vector<DrawnJob> all;
  for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
    // A stream a shape: one shape more leaves the jobs of the others as they were but for their lengths.
    RandomStream random(RandomStream::finalise(RandomStream::finalise(seed) + s));
    std::vector<DrawnJob> jobs;
    for (int i = 0; i < counts[s]; ++i) jobs.push_back(draw_job(plan, static_cast<int>(s), duration, random));
    const double part = wanted * plan.shapes[s].card_time / shares;
    stretch(jobs, length_factor(plan, jobs, part, duration), duration);
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const DrawnJob& a, const DrawnJob& b) { return a.arrival < b.arrival; });
  return all;
}

double demand_of(const QueuePlan& plan, const DrawnJob& job, Time now) {
  const JobShape& shape = plan.shapes[job.shape];
  const auto hour = static_cast<std::uint64_t>(now.seconds() / kHour.seconds());
  RandomStream random(RandomStream::finalise(job.key + hour * RandomStream::kGolden));
  const double level = mean_level(shape) + (1 - shape.night) / 2 * swing(now.seconds(), plan.load.peak_hour);
  const double wanted = job.replicas * level * std::exp(plan.load.noise * random.normal());
  return std::clamp(wanted, 0.0, static_cast<double>(job.replicas));
}

int wanted_replicas(const QueuePlan& plan, const DrawnJob& job, Time now) {
  return std::max(1, static_cast<int>(std::ceil(demand_of(plan, job, now))));
}

double offered_card_seconds(const QueuePlan& plan, const std::vector<DrawnJob>& jobs, Time duration) {
  return asked_for(plan, jobs, 1, duration);
}

}  // namespace moebius
