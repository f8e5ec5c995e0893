#include "workloads/serving/separation/encoder_pool.h"

#include <algorithm>

#include "hw/clock_end.h"

namespace moebius {

void EncoderPool::enqueue(std::int32_t request, std::int32_t images) {
  waiting_.push_back({request, images});
  waiting_images_ += images;
}

std::optional<EncoderPool::Begun> EncoderPool::begin(Time now) {
  const auto free = std::find_if(running_.begin(), running_.end(), [](const Running& r) { return !r.busy; });
  if (waiting_.empty() || free == running_.end()) return std::nullopt;
  std::int64_t images = 0;
  free->requests.clear();
  while (!waiting_.empty() && (images == 0 || images + waiting_.front().images <= rules_.max_batch)) {
    images += waiting_.front().images;
    waiting_images_ -= waiting_.front().images;
    free->requests.push_back(waiting_.front());
    waiting_.pop_front();
  }
  free->busy = true;
  const Time ends = free->ends = after_seconds(now, rules_.cost->seconds(images));
  ++totals_.iterations;
  totals_.images += images;
  totals_.busy = later(totals_.busy, ends - now);
  return Begun{static_cast<std::int32_t>(free - running_.begin()), ends};
}

void EncoderPool::end(std::int32_t replica, Time now, std::vector<Sent>& sent) {
  Running& running = running_[replica];
  running.busy = false;
  Time& port = ports_[replica / rules_.replicas_on_port];
  for (const Waiting& request : running.requests) {
    const Bytes bytes{rules_.bytes_per_image * request.images};
    port = after_seconds(std::max(port, now), bytes / rules_.rate);
    sent.push_back({request.request, later(port, rules_.latency)});
    totals_.sent_bytes += bytes.value;
  }
}

Time EncoderPool::forecast(Time now, std::int32_t images) const {
  Time free = kForever;
  for (const Running& running : running_) free = std::min(free, running.busy ? running.ends : now);
  const std::int64_t full = waiting_images_ / rules_.max_batch, rest = waiting_images_ % rules_.max_batch;
  const bool together = rest + images <= rules_.max_batch;  // with the last of those that wait
  double seconds = rules_.cost->seconds(images + (together ? rest : 0));
  if (full > 0)
    seconds += static_cast<double>(full) / rules_.replicas * rules_.cost->seconds(rules_.max_batch);
  seconds += Bytes{rules_.bytes_per_image * images} / rules_.rate;
  return later(after_seconds(std::max(free, now), seconds), rules_.latency) - now;
}

}  // namespace moebius
