// A directory that appears whole or not at all.
#pragma once

#include <string>

namespace moebius {

class NewDirectory {
 public:
  // Files go to a directory of another name beside `wanted`. input_error when `wanted` is there and not an
  // empty directory, unless it may be replaced; run_error when nothing can be made there.
  explicit NewDirectory(const std::string& wanted, bool replace = false);
  ~NewDirectory();  // what was not committed goes away
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  std::string path(const std::string& name) const { return partial_ + "/" + name; }
  // From here it is there under its own name. What it replaces stands aside as NAME.old until then.
  void commit();

 private:
  std::string wanted_, partial_;
  bool replace_;
};

// The check of the constructor alone, for those who will write later. Leaves nothing behind.
void require_new_directory(const std::string& wanted);

}  // namespace moebius
