#include "workloads/calibration/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr unsigned kChunk = 1U << 20;

struct Close {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

std::string read_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::string text, chunk(kChunk, '\0');
  for (;;) {
    const int read = gzread(file.get(), chunk.data(), kChunk);
    // zlib passes files through that are not gzip; a cut one ends early and is told by the error alone.
    int failure = Z_OK;
    const std::string message = gzerror(file.get(), &failure);  // names the file already
    if (read < 0 || failure != Z_OK)
      throw input_error(message.starts_with(path) ? message : path + ": " + message);
    if (gzdirect(file.get()) != 0)
      throw input_error(fmt::format("{}: expected gzip, found other bytes", path));
    if (read == 0) return text;
    if (text.size() + static_cast<std::size_t>(read) > kMostTableBytes)
      throw input_error(
          fmt::format("{}: expected at most {} bytes unpacked, found more", path, kMostTableBytes));
    text.append(chunk, 0, static_cast<std::size_t>(read));
  }
}

}  // namespace moebius
