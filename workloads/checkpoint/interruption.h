// Ctrl-C while files are written: the work stops between two tensors, what it wrote goes away, and a sentence
// says so.
#pragma once

#include <csignal>

namespace moebius {

class Interruption {
 public:
  Interruption();   // SIGINT and SIGTERM are noted from here
  ~Interruption();  // and do again what they did before; what came before this one has come again
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // From here to the end of this process none counts: it is about to end.
  static void ignore_more();
  bool came() const;
  void check() const;  // run_error when one came

 private:
  std::sig_atomic_t before_ = 0;  // whether one had come
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

}  // namespace moebius
