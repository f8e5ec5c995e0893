#include "workloads/cluster/queue/queue_timeline.h"

namespace moebius {

QueueTimeline queue_timeline(const QueueInputs& inputs, std::uint64_t seed) {
  QueueTimeline timeline;
  run_queues(inputs, seed, seed,
             {.hear = [&](const QueueEvent& event) { timeline.events.push_back(event); },
              .span = [&](const CardSpan& span) { timeline.spans.push_back(span); },
              .power =
                  [&](Time time, double watts) {
                    if (timeline.power.empty() || timeline.power.back().watts != watts)
                      timeline.power.push_back({time, watts});
                  }});
  return timeline;
}

}  // namespace moebius
