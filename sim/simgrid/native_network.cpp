#include "sim/simgrid/native_network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/simgrid_parts.h"

namespace moebius {

NativeNetwork::NativeNetwork(const Zone& zone, double origin)
    : zone_(zone), origin_(origin), receiver_(std::make_shared<Receiver>()) {
  receiver_->network = this;
  simgrid::s4u::Activity::on_completion_cb([receiver = receiver_](const simgrid::s4u::Activity& activity) {
    if (receiver->network != nullptr) receiver->network->completed(activity);
  });
}

// SimGrid aborts when a message under way is freed, so after a failed run they stay with the process that is
// ending.
NativeNetwork::~NativeNetwork() {
  receiver_->network = nullptr;
  for (auto& [activity, message] : messages_) message.first.detach();
}

void NativeNetwork::start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) {
  if (messages_.size() + step.pairs.size() > kMostNativeMessages) {
    throw run_error(fmt::format(
        "the native network carries at most {} messages at a time, this run needs {} at {}: use fluid",
        kMostNativeMessages, messages_.size() + step.pairs.size(), to_text(now)));
  }
  if (!step.flows.empty() && step.flows.front().queue > 0) {
    throw run_error(
        fmt::format("the native network has one queue, a message at {} goes into queue {}: use fluid",
                    to_text(now), step.flows.front().queue));
  }
  if (running_.size() <= static_cast<std::size_t>(transfer)) running_.resize(transfer + 1);
  running_[transfer] = {&step, id, 0};
  delays_.push({later(now, std::max(0.0, step.latency - step.pair_latency)), id, transfer, 0});
}

Time NativeNetwork::next_event() {
  const Time delay = delays_.empty() ? kForever : delays_.top().time;
  return ends_.empty() ? delay : std::min(delay, ends_.top().time);
}

void NativeNetwork::set_capacity(int, double, Time) {
  throw run_error("the native network's links keep their capacity: use fluid");
}

double NativeNetwork::carried(int) const {
  throw run_error("the native network does not count the bytes on its links: use fluid");
}

void NativeNetwork::advance(Time now, std::vector<std::int32_t>& ended) {
  for (; !ends_.empty() && ends_.top().time <= now; ends_.pop()) ended.push_back(ends_.top().slot);
  for (; !delays_.empty() && delays_.top().time <= now; delays_.pop()) launch(delays_.top().slot, now);
}

void NativeNetwork::launch(std::int32_t transfer, Time now) {
  Running& running = running_[transfer];
  for (const PairFlow& pair : running.step->pairs) {
    if (pair.bytes <= 0) continue;
    const auto bytes = static_cast<std::uint64_t>(std::ceil(pair.bytes));
    // SimGrid takes a rate only before it knows the ends.
    simgrid::s4u::CommPtr message = simgrid::s4u::Comm::sendto_init();
    if (pair.most_rate > 0) message->set_rate(pair.most_rate);
    message->set_source(zone_.host(pair.from, pair.queue_pair));
    message->set_destination(zone_.host(pair.to, pair.queue_pair));
    message->set_payload_size(bytes);
    message->start();
    messages_[message.get()] = {message, transfer};
    ++running.messages_left;
  }
  if (running.messages_left == 0) ends_.push({now, running.id, transfer, 0});
}

void NativeNetwork::completed(const simgrid::s4u::Activity& activity) {
  const auto found = messages_.find(&activity);
  if (found == messages_.end()) return;
  const std::int32_t transfer = found->second.second;
  messages_.erase(found);
  Running& running = running_[transfer];
  if (--running.messages_left > 0) return;
  ends_.push({time_from_seconds(simgrid::s4u::Engine::get_clock() - origin_), running.id, transfer, 0});
}

}  // namespace moebius
