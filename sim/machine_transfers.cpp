// How communication ops meet, and what a transfer does from its beginning to its end.
#include "sim/machine.h"

#include <algorithm>
#include <utility>

namespace moebius {

void Machine::communicate(std::int32_t index) {
  LaneState& lane = lanes_[index];
  lane.cost = nullptr;
  const OpKind kind = op_on(lane).kind;
  if (kind == OpKind::kSend) {
    send(index);
  } else if (kind == OpKind::kRecv) {
    receive(index);
  } else {
    meet(index);
  }
}

SimulatedMeeting Machine::key_of(const LaneState& lane, const Op& op) {
  const Live& live = live_on(lane);
  return {plans_.meeting_place(op, live.rank_class), live.step,
          op.phase == Phase::kGradients ? -1
          : op.second                   ? live.second_microbatch
                                        : live.microbatch,
          op.match};
}

void Machine::meet(std::int32_t index) {
  const LaneState& lane = lanes_[index];
  const Op& op = op_on(lane);
  Live& live = live_on(lane);
  const int expected =
      is_host_copy(op.kind) ? 1 : layout_.classes[live.rank_class].group(op.group).num_classes;
  const std::int32_t slot = expected > 1 ? meetings_.find_or_open(key_of(lane, op)) : meetings_.open();
  Meeting& meeting = meetings_[slot];
  meeting.lanes.push_back(index);
  if (static_cast<int>(meeting.lanes.size()) < expected) return;
  meeting.plan = live.as_class->plan(lane.op, plans_);
  meeting.id = id_of(lane);
  begin_transfer(slot);
}

// A message is under way as soon as it is sent; the receiver may come before, while or after it arrives.
void Machine::send(std::int32_t index) {
  const LaneState& lane = lanes_[index];
  const std::int32_t slot = meetings_.find_or_open(key_of(lane, op_on(lane)));
  Meeting& meeting = meetings_[slot];
  meeting.lanes.push_back(index);
  meeting.plan = live_on(lane).as_class->plan(lane.op, plans_);
  meeting.id = id_of(lane);
  begin_transfer(slot);
}

void Machine::receive(std::int32_t index) {
  LaneState& lane = lanes_[index];
  const std::int32_t slot = meetings_.find_or_open(key_of(lane, op_on(lane)));
  Meeting& meeting = meetings_[slot];
  if (!meeting.delivered) {
    meeting.receiver = index;
    if (meeting.plan != nullptr) lane.work_start = std::max(lane.start, meeting.begin);
    return;
  }
  meetings_.close(slot);
  finish(index);
}

void Machine::begin_transfer(std::int32_t slot) {
  Meeting& meeting = meetings_[slot];
  meeting.begin = now_;
  meeting.next_step = 0;
  for (const std::int32_t lane : meeting.lanes) lanes_[lane].work_start = now_;
  if (meeting.receiver >= 0) lanes_[meeting.receiver].work_start = now_;
  copy_on_chips(slot);
  post_on_chips(slot);
  next_step(slot);
}

// A kernel that copies through device memory has a share of it like every other: beside ops that want more
// than is left it ends after its bytes could have come, and they take longer too.
void Machine::copy_on_chips(std::int32_t slot) {
  Meeting& meeting = meetings_[slot];
  meeting.parts = 1;
  const double bytes = meeting.plan->memory_bytes;
  if (bytes <= 0) return;
  for (const std::int32_t lane : meeting.lanes)
    chips_.start({.chip = chip_of_class_[live_on(lanes_[lane]).rank_class],
                  .holder = copy_for(slot),
                  .id = meeting.id,
                  .seconds = meeting.plan->flowing(),
                  .memory_bytes = bytes,
                  .paced = false},
                 now_);
  meeting.parts += static_cast<int>(meeting.lanes.size());
}

// Each member posts with every core of its own chip as soon as it has them, whoever else is still waiting for
// his; cores that only post messages are free again long before these have come.
void Machine::post_on_chips(std::int32_t slot) {
  Meeting& meeting = meetings_[slot];
  if (meeting.plan->held <= 0 || whole_chips_ || chips_shared_) return;
  for (const std::int32_t index : meeting.lanes) {
    LaneState& lane = lanes_[index];
    if (lane.cores > 0) continue;
    const int chip = chip_of_class_[live_on(lane).rank_class];
    const int cores = chips_.take(chip, index, 0, Chips::Use::kPosting);
    if (cores == 0) continue;  // nobody counts those that it would take
    lane.meeting = slot;
    ++meeting.parts;
    if (cores > 0) post(index, cores);
  }
}

void Machine::post(std::int32_t index, int cores) {
  LaneState& lane = lanes_[index];
  lane.cores = cores;
  const Meeting& meeting = meetings_[lane.meeting];
  chips_.start({.chip = chip_of_class_[live_on(lane).rank_class],
                .holder = posting_for(index),
                .id = meeting.id,
                .seconds = meeting.plan->held,
                .memory_bytes = 0,
                .paced = false},
               now_);
}

void Machine::end_posting(std::int32_t index) {
  LaneState& lane = lanes_[index];
  const std::int32_t meeting = std::exchange(lane.meeting, -1);
  release_cores(lane, live_on(lane), Chips::Use::kPosting);
  end_part(meeting);
}

void Machine::end_part(std::int32_t slot) {
  if (--meetings_[slot].parts == 0) end_transfer(slot);
}

void Machine::next_step(std::int32_t slot) {
  Meeting& meeting = meetings_[slot];
  ++events_;
  if (meeting.next_step == meeting.plan->steps.size()) return end_part(slot);
  network_.start(slot, meeting.plan->steps[meeting.next_step++], meeting.id, now_);
}

void Machine::end_transfer(std::int32_t slot) {
  Meeting& meeting = meetings_[slot];
  const bool is_message = meeting.key.place < 0;
  const bool received = meeting.receiver >= 0;
  for (const std::int32_t lane : meeting.lanes) {
    lanes_[lane].slowest = meeting.plan->slowest;
    finish(lane);
  }
  if (received) finish(meeting.receiver);
  if (is_message && !received) {
    meeting.delivered = true;
  } else {
    meetings_.close(slot);
  }
}

}  // namespace moebius
