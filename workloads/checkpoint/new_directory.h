// A directory that appears whole or not at all.
#pragma once

#include <string>

namespace moebius {

struct DirectoryPlan {
  bool replace = false;  // what is there gives way; it stands aside as NAME.old, or a name like it that
                         // nobody has, for a moment
  // What is being made, in words that differ when any of it does. A directory that was begun with the same
  // words, and interrupted, is gone on with; empty: each begins anew.
  std::string journal = {};
};

class NewDirectory {
 public:
  // Files go to a directory of another name beside `wanted`. input_error when `wanted` is there and not an
  // empty directory, unless it may be replaced; run_error when nothing can be made there, or when another
  // process goes on with the same directory.
  explicit NewDirectory(const std::string& wanted, const DirectoryPlan& plan = {});
  ~NewDirectory();  // what was neither committed nor kept goes away
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  std::string path(const std::string& name) const { return partial_ + "/" + name; }
  void commit();  // from here it is there under its own name
  // What is there waits to be gone on with, where there is a journal: it was interrupted, not refused.
  void keep() { kept_ = !plan_.journal.empty(); }

 private:
  void open_journal();

  std::string wanted_, partial_;
  DirectoryPlan plan_;
  int journal_ = -1;  // locked while it is written to
  bool kept_ = false;
};

// The check of the constructor alone, for those who will write later. Leaves nothing behind.
void require_new_directory(const std::string& wanted);

}  // namespace moebius
