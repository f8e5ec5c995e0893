// The characters of a file, packed by gzip or not. Internal to chrome_reader.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/progress_bar.h"

struct gzFile_s;  // zlib's

namespace moebius::viz {

// Block by block.
class Characters {
 public:
  explicit Characters(const std::string& path);  // throws input_error where it cannot be read
  bool at_end() const { return at_ == size_; }
  char now() const { return block_[at_]; }
  void next() {
    ++taken_;
    if (++at_ == size_) fill();
  }
  bool damaged() const;
  bool cut() const;
  std::int64_t taken() const { return taken_; }

 private:
  void fill();

  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
  std::vector<char> block_;
  std::size_t at_ = 0, size_ = 0;
  std::int64_t taken_ = 0;
  int failure_ = 0;   // zlib's
  double bytes_ = 0;  // of the file; 0: not known
  ProgressBar bar_;
};

}  // namespace moebius::viz
