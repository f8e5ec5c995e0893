#include "real/tiers/ssd_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hw/units.h"

namespace moebius::kv {

SsdFile::SsdFile(const std::string& directory, const TierShape& shape, bool direct, const std::string& name)
    : directory_(directory), stride_(round_up_to_page(shape.block_bytes)), bytes_(stride_ * shape.blocks) {
  name.empty() ? open_unnamed() : open_named(name);
  try {
    take_room();
    if (!direct) {
      buffered_reason_ = "as asked for";
    } else if (!go_direct()) {
      buffered_reason_ = "since the file system refuses direct access";
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

SsdFile::~SsdFile() {
  close(file_);
}

std::string SsdFile::description() const {
  const std::string way = direct_ ? "direct" : "through the page cache, " + buffered_reason_;
  return directory_ + ": " + way + room_note_;
}

FileAccess SsdFile::prepare(const TakenPiece& taken, AlignedMemory& bounce) const {
  const Piece& piece = taken.piece;
  const std::int64_t offset = piece.block * stride_ + piece.offset;
  const bool aligned = offset % kPage == 0 && piece.bytes % kPage == 0 &&
                       reinterpret_cast<std::uintptr_t>(piece.memory) % kPage == 0;
  if (!direct_ || aligned) return {offset, piece.bytes, piece.memory, 0, false};
  const std::int64_t begin = offset / kPage * kPage;
  const std::int64_t bytes = round_up_to_page(offset + piece.bytes) - begin;
  if (bounce.bytes() < bytes) bounce = AlignedMemory(bytes);
  const FileAccess access{begin, bytes, bounce.data(), offset - begin, true};
  if (taken.direction == Direction::kWrite) {
    std::memcpy(access.memory, piece.memory, static_cast<std::size_t>(piece.bytes));
    std::memset(access.memory + piece.bytes, 0, static_cast<std::size_t>(bytes - piece.bytes));
  }
  return access;
}

void SsdFile::complete(const TakenPiece& taken, const FileAccess& access) const {
  if (!access.bounces || taken.direction == Direction::kWrite) return;
  std::memcpy(taken.piece.memory, access.memory + access.skip, static_cast<std::size_t>(taken.piece.bytes));
}

std::string SsdFile::carry_out(const TakenPiece& taken, AlignedMemory& bounce) const {
  const FileAccess access = prepare(taken, bounce);
  for (std::int64_t done = 0; done < access.bytes;) {
    const std::size_t left = static_cast<std::size_t>(access.bytes - done);
    const ssize_t moved = taken.direction == Direction::kRead
                              ? pread(file_, access.memory + done, left, access.offset + done)
                              : pwrite(file_, access.memory + done, left, access.offset + done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return failure(taken, moved < 0 ? errno : 0, done);
    done += moved;
  }
  complete(taken, access);
  return {};
}

std::string SsdFile::failure(const TakenPiece& taken, int error, std::int64_t bytes) const {
  const char* const what = taken.direction == Direction::kRead ? "read" : "written";
  const std::string reason =
      error != 0 ? std::strerror(error) : fmt::format("the file ended after {} bytes", bytes);
  return fmt::format("the SSD tier in {}: block {} could not be {}: {}", directory_, taken.piece.block, what,
                     reason);
}

// A file without a name, or, where the file system knows none, one that loses its name at once.
void SsdFile::open_unnamed() {
  file_ = open(directory_.c_str(), O_RDWR | O_CLOEXEC | O_TMPFILE, 0600);
  if (file_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = directory_ + "/kv-tier-XXXXXX";
    file_ = mkostemp(name.data(), O_CLOEXEC);
    if (file_ >= 0) unlink(name.c_str());
  }
  if (file_ < 0) throw error("no file can be made", errno);
}

void SsdFile::open_named(const std::string& name) {
  file_ = open((directory_ + "/" + name).c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_NOFOLLOW, 0600);
  if (file_ < 0) throw error("\"" + name + "\" cannot be opened", errno);
  // What a process that was killed had with the kernel may hold the file for a moment more.
  constexpr int kTries = 50;
  constexpr useconds_t kPause = 10'000;
  int reason = 0;
  for (int i = 0; i < kTries; ++i, usleep(kPause)) {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    reason = errno;
    if (reason != EWOULDBLOCK) break;
  }
  close(file_);
  throw error("\"" + name + "\" is another process's", reason);
}

void SsdFile::take_room() {
  if (fallocate(file_, 0, 0, bytes_) == 0) return;
  const std::string room = "no room for " + to_text(Bytes{static_cast<double>(bytes_)});
  if (errno != EOPNOTSUPP) throw error(room, errno);
  if (ftruncate(file_, bytes_) != 0) throw error(room, errno);
  room_note_ = ", its room taken as blocks are written";
}

// Some file systems refuse the flag, others take it and refuse the access. What is written is what was there.
bool SsdFile::go_direct() {
  const int flags = fcntl(file_, F_GETFL);
  if (fcntl(file_, F_SETFL, flags | O_DIRECT) != 0) return false;
  const AlignedMemory page(kPage);
  direct_ = pread(file_, page.data(), kPage, 0) == kPage && pwrite(file_, page.data(), kPage, 0) == kPage;
  if (direct_) return true;
  if (errno != EINVAL) throw error("a page cannot be written and read", errno);
  if (fcntl(file_, F_SETFL, flags & ~O_DIRECT) != 0) throw error("direct access stays on", errno);
  return false;
}

Error SsdFile::error(const std::string& what, int number) const {
  return run_error(fmt::format("the SSD tier in {}: {}: {}", directory_, what, std::strerror(number)));
}

}  // namespace moebius::kv
