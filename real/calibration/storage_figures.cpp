#include "real/calibration/storage_figures.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "workloads/calibration/device/transfer_fit.h"
#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

constexpr std::size_t kFileBytes = std::size_t{64} << 20, kMostBytes = std::size_t{4} << 20, kBlock = 4096;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Without a name: whatever happens, nothing stays.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& directory)
      : file_(open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600)),
        buffer_(std::aligned_alloc(kBlock, kMostBytes)) {
    for (std::size_t i = 0; i < kMostBytes / sizeof(std::uint64_t); ++i)
      static_cast<std::uint64_t*>(buffer_.get())[i] = random_.bits();
    for (std::size_t at = 0; is_usable() && at < kFileBytes; at += kMostBytes)
      failed_ |= !write(at, kMostBytes);
  }
  ~ScratchFile() {
    if (file_ >= 0) close(file_);
  }
  ScratchFile(const ScratchFile&) = delete;

  bool is_usable() const { return file_ >= 0 && !failed_; }

  double seconds_of(std::size_t bytes, bool writes) {
    const std::size_t at = random_.below_large(kFileBytes / bytes) * bytes;
    const auto start = std::chrono::steady_clock::now();
    failed_ |= !(writes ? write(at, bytes) : read(at, bytes));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  bool write(std::size_t at, std::size_t bytes) {
    return pwrite(file_, buffer_.get(), bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  }
  bool read(std::size_t at, std::size_t bytes) {
    return pread(file_, buffer_.get(), bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  }

  int file_ = -1;
  bool failed_ = false;
  std::unique_ptr<void, Free> buffer_;
  RandomStream random_{1};
};

}  // namespace

std::string directory_of(const std::string& file) {
  const std::string directory = std::filesystem::path(file).parent_path().string();
  return directory.empty() ? "." : directory;
}

std::vector<TransferCurve> measure_storage(const std::string& directory, double seconds) {
  ScratchFile file(directory);
  std::vector<TransferCurve> curves;
  const std::vector<double> sizes = {4096, 16384, 65536, 262144, 1048576, 4194304};
  for (const bool writes : {false, true}) {
    if (!file.is_usable()) return {};
    const TransferPlan plan{std::string(writes ? kStorageWrite : kStorageRead), sizes, seconds / 2};
    curves.push_back(measure_transfers(
        plan, [&](double bytes) { return file.seconds_of(static_cast<std::size_t>(bytes), writes); }));
  }
  return file.is_usable() ? curves : std::vector<TransferCurve>{};
}

}  // namespace moebius
