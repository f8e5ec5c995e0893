// The file that an SSD tier's blocks stand in. It has no name from the start, so that nothing stays behind
// however the process ends, unless it is given one: then it stays, with what was in it, for one process at a
// time. Its room is taken at once; the page cache is passed by (O_DIRECT) where the file
// system allows.
#pragma once

#include <string>

#include "hw/error.h"
#include "real/tiers/aligned_memory.h"
#include "workloads/serving/kv/transfer_ledger.h"

namespace moebius::kv {

// What a piece comes to in the file: whole pages at page offsets, where the cache is passed by.
struct FileAccess {
  std::int64_t offset = 0, bytes = 0;
  std::byte* memory = nullptr;
  std::int64_t skip = 0;  // of a read: bytes before the piece's own
  bool bounces = false;   // memory is not the piece's
};

class SsdFile {
 public:
  // In a directory; run_error: no such directory, no room, not writable, another process has it. `direct`
  // off: through the page cache.
  SsdFile(const std::string& directory, const TierShape& shape, bool direct, const std::string& name = {});
  ~SsdFile();
  SsdFile(const SsdFile&) = delete;

  int descriptor() const { return file_; }
  bool direct() const { return direct_; }
  std::string description() const;  // "/data: direct", "/data: buffered, since ..."

  // The piece's own memory where its bounds allow, `bounce` (made large enough) where not; a write's bytes
  // stand there already.
  FileAccess prepare(const TakenPiece& taken, AlignedMemory& bounce) const;
  void complete(const TakenPiece& taken,
                const FileAccess& access) const;  // a read's bytes go where they belong
  // All of it on the calling thread. The failure, empty when there is none.
  std::string carry_out(const TakenPiece& taken, AlignedMemory& bounce) const;

  // The sentence for an error number, or (0) for a file that ended after `bytes`.
  std::string failure(const TakenPiece& taken, int error, std::int64_t bytes) const;

 private:
  void open_unnamed();
  void open_named(const std::string& name);
  void take_room();
  bool go_direct();
  Error error(const std::string& what, int number) const;

  std::string directory_, buffered_reason_, room_note_;
  std::int64_t stride_ = 0, bytes_ = 0;
  int file_ = -1;
  bool direct_ = false;
};

}  // namespace moebius::kv
