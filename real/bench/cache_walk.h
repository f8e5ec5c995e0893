// What a step touches between two uses of an operand: other memory, which takes its place in the caches.
#pragma once

#include <cstddef>
#include <vector>

namespace moebius {

class CacheWalk {
 public:
  explicit CacheWalk(std::size_t bytes) : memory_(bytes / sizeof(float), 1) {}

  std::size_t bytes() const { return memory_.size() * sizeof(float); }
  // Reads all of it once. Any thread may, also several at once.
  void walk() const {
    constexpr std::size_t kLine = 64 / sizeof(float);
    float sum = 0;
    for (std::size_t i = 0; i < memory_.size(); i += kLine) sum += memory_[i];
    [[maybe_unused]] volatile float sink = sum;  // the reads are not left out
  }

 private:
  std::vector<float> memory_;
};

}  // namespace moebius
