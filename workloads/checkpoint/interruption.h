// Ctrl-C while files are written: the work stops between two tensors, what it wrote goes away, and a sentence
// says so.
#pragma once

#include <csignal>

namespace moebius {

class Interruption {
 public:
  Interruption();   // SIGINT and SIGTERM are noted from here
  ~Interruption();  // and do again what they did before
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // From here to the end of this process none counts: it is about to end.
  static void ignore_more();
  bool came() const;
  void check() const;  // run_error when one came

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

}  // namespace moebius
