#include "workloads/serving/traffic/line_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr unsigned kChunk = 1U << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

struct LineReader::Packed {
  gzFile file = nullptr;
  Packed() = default;
  Packed(const Packed&) = delete;
  ~Packed() { gzclose(file); }
};

LineReader::LineReader(const std::string& path) : path_(path) {
  struct stat kind {};
  if (stat(path.c_str(), &kind) != 0 || !S_ISREG(kind.st_mode))
    throw input_error(fmt::format("{}: expected a trace file, found none", path));
  const gzFile file = gzopen(path.c_str(), "rb");  // reads files that are not packed as they are
  if (file == nullptr) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  packed_ = std::make_unique<Packed>();
  packed_->file = file;
}

LineReader::~LineReader() = default;

bool LineReader::fill() {
  chunk_.resize(kChunk);
  at_ = 0;
  const int read = gzread(packed_->file, chunk_.data(), kChunk);
  int failure = Z_OK;
  gzerror(packed_->file, &failure);
  if (read < 0 || failure != Z_OK)
    throw input_error(fmt::format("{}: the packed file is damaged or cut after line {}", path_, number_));
  chunk_.resize(static_cast<std::size_t>(read));
  return read > 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  bool any = false, ended = false;
  while (!ended && (at_ < chunk_.size() || fill())) {
    any = true;
    const std::size_t end = std::min(chunk_.find('\n', at_), chunk_.size());
    line.append(chunk_, at_, end - at_);
    ended = end < chunk_.size();
    at_ = end + (ended ? 1 : 0);
    if (line.size() > kLongestLine)
      throw input_error(
          fmt::format("{}:{}: expected lines of at most {} bytes", path_, number_ + 1, kLongestLine));
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (number_ == 0 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (any) ++number_;
  return any;
}

void LineReader::begin_again() {
  gzrewind(packed_->file);
  chunk_.clear();
  at_ = 0;
  number_ = 0;
}

void LineReader::fail(const std::string& sentence) const {
  throw input_error(fmt::format("{}:{}: {}", path_, number_, sentence));
}

}  // namespace moebius
