#include "workloads/serving/separation/encoder_pool.h"

#include <algorithm>

#include "hw/clock_end.h"

namespace moebius {

void EncoderPool::enqueue(std::int32_t request, std::int32_t images) {
  waiting_.push_back({request, images});
}

std::optional<EncoderPool::Begun> EncoderPool::begin(Time now) {
  const auto free = std::find_if(running_.begin(), running_.end(), [](const Running& r) { return !r.busy; });
  if (waiting_.empty() || free == running_.end()) return std::nullopt;
  std::int64_t images = 0;
  free->requests.clear();
  while (!waiting_.empty() && (images == 0 || images + waiting_.front().images <= rules_.max_batch)) {
    images += waiting_.front().images;
    free->requests.push_back(waiting_.front());
    waiting_.pop_front();
  }
  free->busy = true;
  const Time ends = after_seconds(now, rules_.cost->seconds(images));
  ++totals_.iterations;
  totals_.images += images;
  totals_.busy = later(totals_.busy, ends - now);
  return Begun{static_cast<std::int32_t>(free - running_.begin()), ends};
}

void EncoderPool::end(std::int32_t replica, Time now, std::vector<Sent>& sent) {
  Running& running = running_[replica];
  running.busy = false;
  for (const Waiting& request : running.requests) {
    const Bytes bytes{rules_.bytes_per_image * request.images};
    running.port = after_seconds(std::max(running.port, now), bytes / rules_.rate);
    sent.push_back({request.request, later(running.port, rules_.latency)});
    totals_.sent_bytes += bytes.value;
  }
}

}  // namespace moebius
