// Memory of rehearsed devices. As soon as a second device has some, work runs one item at a time, and the
// pages of devices that it has no business with are closed: a touch ends the test.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>

namespace moebius::cuda {

class GuardedMemory {
 public:
  // Filled with NaN.
  void* take(std::size_t bytes, int device) {
    const std::scoped_lock lock(mutex_);
    bytes = (bytes + kPage - 1) / kPage * kPage;
    void* memory = std::aligned_alloc(kPage, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);  // closing few large pages is quick
    std::memset(memory, 0xff, bytes);
    pieces_[memory] = {bytes, device};
    if (device > 0) guards_ = true;
    if (guards_) protect(memory, pieces_[memory]);
    return memory;
  }

  void give(void* memory) {
    const std::scoped_lock lock(mutex_);
    mprotect(memory, pieces_.at(memory).bytes, PROT_READ | PROT_WRITE);
    std::free(memory);
    pieces_.erase(memory);
    guards_ = guards_ && !pieces_.empty();
    if (!guards_) open_.clear();
  }

  // Calls work() while the memory of these devices alone can be touched.
  void with(const std::set<int>& devices, const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    if (!guards_) {
      lock.unlock();
      return work();
    }
    if (open_ != devices) {
      open_ = devices;
      for (const auto& [memory, piece] : pieces_) protect(memory, piece);
    }
    work();
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  struct Piece {
    std::size_t bytes = 0;
    int device = 0;
  };
  void protect(void* memory, const Piece& piece) const {
    mprotect(memory, piece.bytes, open_.count(piece.device) > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;
  std::map<void*, Piece> pieces_;
  std::set<int> open_;
  bool guards_ = false;
};

}  // namespace moebius::cuda
