#include "real/tiers/ssd_ring.h"

#ifdef MOEBIUS_URING

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "hw/error.h"

namespace moebius::kv {
namespace {

// A piece with the kernel.
struct Slot {
  TakenPiece taken;
  FileAccess access;
  std::int64_t done = 0;
  AlignedMemory bounce;
};

class Ring : public SsdRing {
 public:
  Ring(const SsdFile& file, TransferService& service, int depth)
      : file_(file), service_(service), slots_(static_cast<std::size_t>(depth)) {
    for (int i = 0; i < depth; ++i) free_.push_back(i);
  }
  ~Ring() override;
  int open();  // 0, or an error number

 private:
  void run();
  void fill();
  void give(int slot);
  void listen();
  void completed(const io_uring_cqe& completion);
  void completed(int slot, int result);
  io_uring_sqe* entry();

  const SsdFile& file_;
  TransferService& service_;
  std::vector<Slot> slots_;
  std::vector<int> free_;
  io_uring ring_{};
  bool open_ = false;
  int changed_ = -1;  // an eventfd, which the ring reads beside the file
  std::uint64_t change_count_ = 0;
  std::thread thread_;
};

constexpr std::uint64_t kChange = ~std::uint64_t{0};  // the completion that is no slot's

Ring::~Ring() {
  if (thread_.joinable()) {
    service_.close();
    thread_.join();
    service_.call_on_change({});
  }
  if (open_) io_uring_queue_exit(&ring_);
  if (changed_ >= 0) close(changed_);
}

int Ring::open() {
  changed_ = eventfd(0, EFD_CLOEXEC);
  if (changed_ < 0) return errno;
  if (const int status = io_uring_queue_init(static_cast<unsigned>(slots_.size()) + 1, &ring_, 0); status < 0)
    return -status;
  open_ = true;
  service_.call_on_change([this] { eventfd_write(changed_, 1); });
  thread_ = std::thread([this] { run(); });
  return 0;
}

void Ring::run() {
  listen();
  while (true) {
    fill();
    if (service_.closed() && free_.size() == slots_.size()) return;
    const int status = io_uring_submit_and_wait(&ring_, 1);
    CHECK(status >= 0 || status == -EINTR || status == -EAGAIN || status == -EBUSY, std::strerror(-status));
    io_uring_cqe* completion = nullptr;
    while (io_uring_peek_cqe(&ring_, &completion) == 0) {
      const io_uring_cqe copy = *completion;
      io_uring_cqe_seen(&ring_, completion);
      completed(copy);
    }
  }
}

void Ring::fill() {
  while (!free_.empty()) {
    const auto taken = service_.take_now();
    if (!taken) return;
    const int slot = free_.back();
    free_.pop_back();
    Slot& place = slots_[static_cast<std::size_t>(slot)];
    place.taken = *taken;
    place.access = file_.prepare(*taken, place.bounce);
    place.done = 0;
    give(slot);
  }
}

// What is left of a slot's access goes to the kernel with the next submission.
void Ring::give(int slot) {
  const Slot& place = slots_[static_cast<std::size_t>(slot)];
  std::byte* const memory = place.access.memory + place.done;
  const unsigned bytes = static_cast<unsigned>(place.access.bytes - place.done);
  const std::uint64_t offset = static_cast<std::uint64_t>(place.access.offset + place.done);
  io_uring_sqe* const sqe = entry();
  if (place.taken.direction == Direction::kRead) {
    io_uring_prep_read(sqe, file_.descriptor(), memory, bytes, offset);
  } else {
    io_uring_prep_write(sqe, file_.descriptor(), memory, bytes, offset);
  }
  io_uring_sqe_set_data64(sqe, static_cast<std::uint64_t>(slot));
}

void Ring::listen() {
  io_uring_sqe* const sqe = entry();
  io_uring_prep_read(sqe, changed_, &change_count_, sizeof change_count_, 0);
  io_uring_sqe_set_data64(sqe, kChange);
}

void Ring::completed(const io_uring_cqe& completion) {
  if (completion.user_data == kChange) {
    listen();
  } else {
    completed(static_cast<int>(completion.user_data), completion.res);
  }
}

void Ring::completed(int slot, int result) {
  Slot& place = slots_[static_cast<std::size_t>(slot)];
  if (result > 0) place.done += result;
  const bool again = result == -EINTR || result == -EAGAIN || (result > 0 && place.done < place.access.bytes);
  if (again) return give(slot);
  std::string failure;
  if (result <= 0) failure = file_.failure(place.taken, -result, place.done);
  if (failure.empty()) file_.complete(place.taken, place.access);
  free_.push_back(slot);
  service_.finish(place.taken, failure);
}

// There are as many as slots and one more, so that one is always free; a full queue is handed over first.
io_uring_sqe* Ring::entry() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) {
    io_uring_submit(&ring_);
    sqe = io_uring_get_sqe(&ring_);
  }
  CHECK(sqe != nullptr, "no entry of the ring is free");
  return sqe;
}

}  // namespace

std::unique_ptr<SsdRing> open_ring(const SsdFile& file, TransferService& service, int depth,
                                   std::string& reason) {
  auto ring = std::make_unique<Ring>(file, service, depth);
  const int error = ring->open();
  if (error == 0) return ring;
  reason = std::string("io_uring is refused (") + std::strerror(error) + ")";
  return nullptr;
}

}  // namespace moebius::kv

#else

namespace moebius::kv {

std::unique_ptr<SsdRing> open_ring(const SsdFile&, TransferService&, int, std::string& reason) {
  reason = "built without liburing";
  return nullptr;
}

}  // namespace moebius::kv

#endif
