#include "hw/interrupted.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>

namespace moebius {
namespace {

// A handler may read it at any time: it never moves, and is complete before it is there.
class Note {
 public:
  bool take(const std::string& text) {
    int free = kFree;
    if (text.size() >= sizeof text_ || !state_.compare_exchange_strong(free, kTaken)) return false;
    std::copy_n(text.c_str(), text.size() + 1, text_);
    owner_ = getpid();
    state_ = kThere;
    return true;
  }
  void leave() { state_ = kFree; }
  const char* read() const { return state_ == kThere && owner_ == getpid() ? text_ : nullptr; }

 private:
  enum : int { kFree, kTaken, kThere };
  std::atomic<int> state_{kFree};
  pid_t owner_ = 0;
  char text_[PATH_MAX] = {};
};
static_assert(std::atomic<int>::is_always_lock_free);

std::array<Note, 64> unfinished;
Note last_words, other_words;

std::string said(const std::string& sentence) {
  return fmt::format("{}moebius: {}\n", isatty(STDERR_FILENO) != 0 ? "\n" : "", sentence);
}

// The signal is blocked in here, and its action the one of old: it ends the process on return. Directories
// go after what is in them, later ones first, and only when nothing else is there.
void tidy_up(int signal) {
  for (const Note& file : unfinished)
    if (file.read() != nullptr) unlink(file.read());
  for (auto directory = unfinished.rbegin(); directory != unfinished.rend(); ++directory)
    if (directory->read() != nullptr) rmdir(directory->read());
  const char* words = last_words.read();
  if (words == nullptr) words = other_words.read();
  if (words != nullptr) {
    const ssize_t ignored = write(STDERR_FILENO, words, std::strlen(words));  // nobody is left to tell
    static_cast<void>(ignored);
  }
  raise(signal);
}

}  // namespace

void tidy_up_when_interrupted() {
  other_words.take(said("interrupted: what was not finished is not there"));
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow: what writes it is told, and says so
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;  // "nohup" has it ignored
    action.sa_handler = tidy_up;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

UnfinishedFile::UnfinishedFile(const std::string& path) {
  const auto taken =
      std::find_if(unfinished.begin(), unfinished.end(), [&](Note& note) { return note.take(path); });
  if (taken != unfinished.end()) slot_ = static_cast<int>(taken - unfinished.begin());
}

UnfinishedFile::~UnfinishedFile() {
  if (slot_ >= 0) unfinished[static_cast<std::size_t>(slot_)].leave();
}

LastWords::LastWords(const std::string& sentence) {
  last_words.take(said(sentence));
}

LastWords::~LastWords() {
  last_words.leave();
}

}  // namespace moebius
