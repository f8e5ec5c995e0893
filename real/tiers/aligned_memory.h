// Memory that disks and copy engines reach without a stop: whole pages, aligned to them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moebius::kv {

inline constexpr std::int64_t kPage =
    4096;  // no disk has larger sectors; offsets of direct I/O are multiples

constexpr std::int64_t round_up_to_page(std::int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(std::int64_t bytes);  // zeros, taken when touched; run_error where there is no room
  ~AlignedMemory();
  AlignedMemory(AlignedMemory&& other) noexcept;
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace moebius::kv
