#include "workloads/cluster/queue/queue_timeline.h"

namespace moebius {

QueueTimeline queue_timeline(const QueueInputs& inputs, std::uint64_t seed) {
  QueueTimeline timeline;
  const QueueCourse course =
      run_queues(inputs, seed, seed,
                 {.hear = [&](const QueueEvent& event) { timeline.events.push_back(event); },
                  .span = [&](const CardSpan& span) { timeline.spans.push_back(span); },
                  .power =
                      [&](Time time, double watts) {
                        if (timeline.power.empty() || timeline.power.back().watts != watts)
                          timeline.power.push_back({time, watts});
                      }});
  for (const QueueJobCourse& job : course.jobs) timeline.jobs.push_back(job.job);
  return timeline;
}

}  // namespace moebius
