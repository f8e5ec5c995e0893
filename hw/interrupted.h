// What a process that SIGINT, SIGTERM or SIGHUP ends still does: unfinished files and
// directories go away, and a sentence says that it was interrupted, or how to go on. Children that were
// forked do neither for their parent.
#pragma once

#include <string>

namespace moebius {

// Of main, once: from here those signals end the process as ever, but in order.
void tidy_up_when_interrupted();

// A file, or a directory that is empty then, which goes away when the process is interrupted while the object
// lives.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);  // of many at a time, some may stay behind
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  int slot_ = -1;
};

// Goes to standard error when the process is interrupted while the object lives; one at a time.
class LastWords {
 public:
  explicit LastWords(const std::string& sentence);  // without "moebius: "
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

}  // namespace moebius
