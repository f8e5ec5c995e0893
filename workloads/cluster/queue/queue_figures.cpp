#include "workloads/cluster/queue/queue_figures.h"

#include <algorithm>
#include <cmath>

#include "workloads/cluster/queue/queue_bound.h"
#include "workloads/crew.h"
#include "workloads/routing/random_stream.h"

namespace moebius {

namespace {

template <class Of>
RunSpread over(const std::vector<QueueCourse>& courses, Of of) {
  return spread_of_courses(courses, of);
}

std::optional<double> percentile(std::vector<double> values, double share) {
  if (values.empty()) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

CardAccounts sum_of(const std::vector<CardAccounts>& parts) {
  CardAccounts sum;
  for (const CardAccounts& part : parts) sum += part;
  return sum;
}

double share(CardTime part, CardTime whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

CardTime in_service(const CardAccounts& all) {
  return all.all() - all.of(CardItem::kBroken);
}

template <class Take>
std::vector<double> of_jobs(const QueueInputs& inputs, const QueueCourse& course, int queue, Take take) {
  std::vector<double> values;
  for (const QueueJobCourse& job : course.jobs) {
    if (inputs.plan.shapes[job.job.shape].queue != queue) continue;
    if (job.job.arrival >= inputs.cluster.duration) continue;
    if (const std::optional<double> value = take(job)) values.push_back(*value);
  }
  return values;
}

QueueOfCluster queue_of(const QueueInputs& inputs, int queue, const std::vector<QueueCourse>& courses) {
  QueueOfCluster of;
  of.name = inputs.plan.queues[queue].name;
  double quota = 0;
  for (const CardPool& pool : inputs.plan.pools)
    quota += static_cast<double>(pool.quota(inputs.plan.queues[queue]));
  const double quota_time = quota * static_cast<double>(inputs.cluster.duration.ns);
  of.held = over(courses, [&](const QueueCourse& course) -> std::optional<double> {
    if (quota_time <= 0) return std::nullopt;
    return static_cast<double>(course.queues[queue].held()) / quota_time;
  });
  // Of what is not over by the end, what it has come to by then.
  const auto first_wait = [](const QueueJobCourse& job) {
    return ((job.started ? job.first_start : job.end) - job.job.arrival).seconds();
  };
  // A service that nobody served before it ended was never slow.
  const auto slowdown = [](const QueueJobCourse& job) -> std::optional<double> {
    if (job.over && !job.done) return std::nullopt;
    const double lasted = (job.end - job.job.arrival).seconds() / job.ideal.seconds();
    return job.done ? lasted : std::max(1.0, lasted);
  };
  const auto waits = [&](double at) {
    return over(courses, [&, at](const QueueCourse& course) {
      return percentile(of_jobs(inputs, course, queue, first_wait), at);
    });
  };
  of.wait_p50_s = waits(0.5);
  of.wait_p95_s = waits(0.95);
  of.wait_max_s = waits(1);
  const auto slowdowns = [&](double at) {
    return over(courses, [&, at](const QueueCourse& course) {
      return percentile(of_jobs(inputs, course, queue, slowdown), at);
    });
  };
  of.slowdown_p50 = slowdowns(0.5);
  of.slowdown_p95 = slowdowns(0.95);
  const auto count = [&](auto number) {
    return over(courses, [&, number](const QueueCourse& course) {
      double sum = 0;
      for (const QueueJobCourse& job : course.jobs)
        if (inputs.plan.shapes[job.job.shape].queue == queue) sum += number(job);
      return sum;
    });
  };
  of.jobs = count([](const QueueJobCourse&) { return 1.0; });
  of.started = count([](const QueueJobCourse& job) { return job.started ? 1.0 : 0.0; });
  of.done = count([](const QueueJobCourse& job) { return job.done ? 1.0 : 0.0; });
  of.preempted = count([](const QueueJobCourse& job) { return static_cast<double>(job.preempted); });
  of.resized = count([](const QueueJobCourse& job) { return static_cast<double>(job.resized); });
  of.interrupted = count([](const QueueJobCourse& job) { return static_cast<double>(job.interrupted); });
  of.longest_wait_s = over(courses, [&](const QueueCourse& course) {
    return percentile(
        of_jobs(inputs, course, queue, [](const QueueJobCourse& job) { return job.longest.seconds(); }), 1);
  });
  return of;
}

ShapeOfCluster shape_of(const QueueInputs& inputs, int shape, const std::vector<QueueCourse>& courses) {
  ShapeOfCluster of;
  of.name = inputs.plan.shapes[shape].name;
  const auto sum = [&](auto number) {
    return over(courses, [&, number](const QueueCourse& course) {
      double all = 0;
      for (const QueueJobCourse& job : course.jobs)
        if (job.job.shape == shape) all += number(job);
      return all;
    });
  };
  of.card_hours = sum([](const QueueJobCourse& job) { return static_cast<double>(job.cards) / 3.6e12; });
  of.tokens = sum([](const QueueJobCourse& job) { return job.tokens; });
  of.cost_usd = sum([](const QueueJobCourse& job) { return job.cost_usd; });
  // Tokens of cards without a price would stand beside the cost of the others.
  for (const QueueCourse& course : courses)
    for (const QueueJobCourse& job : course.jobs)
      if (job.job.shape == shape && !job.priced) of.cost_usd.known = false;
  for (std::size_t p = 0; p < inputs.plan.pools.size(); ++p) {
    of.pools.push_back(over(courses, [&](const QueueCourse& course) {
      CardTime part = 0, whole = 0;
      for (const QueueJobCourse& job : course.jobs) {
        if (job.job.shape != shape) continue;
        part += job.by_pool[p];
        whole += job.cards;
      }
      return share(part, whole);
    }));
  }
  return of;
}

std::vector<RunSpread> item_shares(const std::vector<QueueCourse>& courses, int pool) {
  std::vector<RunSpread> shares;
  for (int item = 0; item < kNumCardItems; ++item) {
    shares.push_back(over(courses, [&](const QueueCourse& course) {
      const CardAccounts all = pool < 0 ? sum_of(course.pools) : course.pools[pool];
      return share(all.of(static_cast<CardItem>(item)), all.all());
    }));
  }
  return shares;
}

double priced(const QueueInputs& inputs) {
  double usd_per_s = 0;
  for (const CardPool& pool : inputs.plan.pools) {
    if (pool.card_price.value <= 0) return 0;
    usd_per_s += pool.card_price.value / 3600 * static_cast<double>(pool.all_cards());
  }
  return usd_per_s * inputs.cluster.duration.seconds();
}

}  // namespace

std::uint64_t first_seed(std::uint64_t seed) {
  return RandomStream::finalise(seed);
}

QueueFigures queue_figures(const QueueInputs& inputs, std::uint64_t seed) {
  std::vector<QueueCourse> courses(inputs.cluster.runs);
  work_side_by_side(courses.size(), [&](std::size_t run) {
    courses[run] = run_queues(inputs, first_seed(seed) + run, first_seed(seed) + run);
  });
  QueueFigures figures;
  figures.runs = inputs.cluster.runs;
  CardTime whole = 0;
  for (const CardPool& pool : inputs.plan.pools) {
    figures.cards += pool.all_cards();
    figures.pool_names.push_back(pool.name);
    whole += CardTime{pool.all_cards()} * inputs.cluster.duration.ns;
  }
  figures.duration_s = inputs.cluster.duration.seconds();
  for (const QueueCourse& course : courses) figures.events += course.events;
  figures.allocation = over(courses, [](const QueueCourse& course) {
    const CardAccounts all = sum_of(course.pools);
    return share(all.held(), in_service(all));
  });
  figures.attainable =
      over(courses, [&](const QueueCourse& course) { return attainable_allocation(inputs, course); });
  figures.utilisation = over(courses, [](const QueueCourse& course) {
    const CardAccounts all = sum_of(course.pools);
    return share(all.of(CardItem::kUseful) + all.of(CardItem::kServed), in_service(all));
  });
  figures.offered = over(courses, [&](const QueueCourse& course) {
    std::vector<DrawnJob> jobs;
    for (const QueueJobCourse& job : course.jobs) jobs.push_back(job.job);
    return offered_card_seconds(inputs.plan, jobs, inputs.cluster.duration) * 1e9 /
           static_cast<double>(whole);
  });
  figures.items = item_shares(courses, -1);
  for (std::size_t p = 0; p < inputs.plan.pools.size(); ++p)
    figures.pools.push_back(item_shares(courses, static_cast<int>(p)));
  for (std::size_t q = 0; q < inputs.plan.queues.size(); ++q)
    figures.queues.push_back(queue_of(inputs, static_cast<int>(q), courses));
  for (std::size_t s = 0; s < inputs.plan.shapes.size(); ++s)
    figures.shapes.push_back(shape_of(inputs, static_cast<int>(s), courses));
  const auto total = [&](auto number) {
    return over(courses, [&, number](const QueueCourse& course) {
      double sum = 0;
      for (const QueueJobCourse& job : course.jobs) sum += number(job);
      return sum;
    });
  };
  figures.jobs = total([](const QueueJobCourse&) { return 1.0; });
  figures.started = total([](const QueueJobCourse& job) { return job.started ? 1.0 : 0.0; });
  figures.done = total([](const QueueJobCourse& job) { return job.done ? 1.0 : 0.0; });
  figures.interruptions =
      total([](const QueueJobCourse& job) { return static_cast<double>(job.interrupted); });
  figures.tokens = total([](const QueueJobCourse& job) { return job.tokens; });
  figures.borrowed = over(courses, [&](const QueueCourse& course) { return share(course.borrowed, whole); });
  figures.missing_replicas = over(courses, [](const QueueCourse& course) {
    return share(course.missing_replicas, course.wanted_replicas);
  });
  figures.beyond_quota =
      over(courses, [](const QueueCourse& course) { return static_cast<double>(course.beyond_quota); });
  figures.kept_from_owner =
      over(courses, [](const QueueCourse& course) { return static_cast<double>(course.kept_from_owner); });
  figures.conservation = over(courses, [&](const QueueCourse& course) {
    return static_cast<double>(sum_of(course.pools).all() - whole);
  });
  figures.energy_j = over(courses, [](const QueueCourse& course) { return course.energy_j; });
  figures.peak_w = over(courses, [](const QueueCourse& course) { return course.peak_w; });
  figures.over_cap_s = over(courses, [](const QueueCourse& course) { return course.over_cap_s; });
  figures.throttled_s = over(courses, [](const QueueCourse& course) { return course.throttled.seconds(); });
  const double cost = priced(inputs);
  figures.cost_usd = {cost, cost, cost};
  for (const QueueCourse& course : courses)
    figures.longest_beside = std::max(figures.longest_beside, course.longest_beside);
  return figures;
}

}  // namespace moebius
