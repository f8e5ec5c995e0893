#include "real/cuda/device_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace moebius::cuda {
namespace {

constexpr std::size_t kAlignment = 256, kSlab = std::size_t{64} << 20;

// Sizes go up in quarters of a power of two, so that tensors whose rows vary a little share blocks.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= 4 * kAlignment)
    return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

struct EventPool::Free {
  std::mutex mutex;
  std::vector<Event> events;
  ~Free() {
    for (const Event event : events) destroy(event);
  }
};

// An event's way back, which knows where it was recorded.
struct EventPool::Return {
  std::shared_ptr<Free> free;
  Stream stream;
  void operator()(Event event) const {
    std::lock_guard lock(free->mutex);
    free->events.push_back(event);
  }
};

void wait(Stream stream, const EventRef& event) {
  const auto* from = std::get_deleter<EventPool::Return>(event);
  if (from == nullptr || from->stream != stream) wait(stream, event.get());
}

EventPool::EventPool() : free_(std::make_shared<Free>()) {}

EventRef EventPool::recorded(Stream stream) {
  Event event = nullptr;
  {
    std::lock_guard lock(free_->mutex);
    if (!free_->events.empty()) {
      event = free_->events.back();
      free_->events.pop_back();
    }
  }
  if (event == nullptr) event = make_event();
  EventRef ref(event, Return{free_, stream});
  record(event, stream);
  return ref;
}

DeviceMemory::~DeviceMemory() {
  for (void* slab : slabs_) pinned_ ? release_pinned(slab) : release(slab);
}

Block DeviceMemory::take(std::size_t bytes, Stream stream) {
  const std::size_t size = size_class(bytes);
  std::lock_guard lock(mutex_);
  std::vector<Idle>& idle = idle_[size];
  if (idle.empty()) return {cut(size), size};
  const Idle block = std::move(idle.back());
  idle.pop_back();
  for (const EventRef& user : block.users) wait(stream, user);
  return {block.memory, size};
}

// What is left of the last slab is lost; large blocks have slabs of their own.
void* DeviceMemory::cut(std::size_t bytes) {
  const bool large = bytes > kSlab / 4;
  if (large || bytes > left_) {
    const std::size_t slab = large ? bytes : kSlab;
    slabs_.push_back(pinned_ ? allocate_pinned(slab) : allocate(slab));
    reserved_ += slab;
    if (large) return slabs_.back();
    next_ = static_cast<char*>(slabs_.back());
    left_ = slab;
  }
  void* memory = next_;
  next_ += bytes;
  left_ -= bytes;
  return memory;
}

void DeviceMemory::give(const Block& block, std::vector<EventRef> users) {
  std::lock_guard lock(mutex_);
  idle_[block.bytes].push_back({block.memory, std::move(users)});
}

std::size_t DeviceMemory::reserved() const {
  std::lock_guard lock(mutex_);
  return reserved_;
}

DeviceTensor::DeviceTensor(DeviceMemory& from, Stream stream, std::int64_t rows, std::int64_t columns,
                           Storage storage, std::int64_t period)
    : memory_(from) {
  operand.rows = rows;
  operand.columns = columns;
  operand.storage = storage;
  operand.period = period > 0 ? period : rows;
  const std::size_t values = aligned(static_cast<std::size_t>(rows * columns * element_size(storage)));
  const std::size_t scales = sizeof(float) * static_cast<std::size_t>(num_scales(operand));
  block_ = from.take(values + scales, stream);
  operand.data = block_.memory;
  if (scales > 0) operand.scales = reinterpret_cast<float*>(static_cast<char*>(block_.memory) + values);
}

DeviceTensor::~DeviceTensor() {
  std::vector<EventRef> users;
  for (const EventRef& event : used) {
    if (event) users.push_back(event);
  }
  memory_.give(block_, std::move(users));
}

}  // namespace moebius::cuda
