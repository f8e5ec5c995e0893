// A command in a process of its own whose progress is watched and which can be ended.
#pragma once

#include <string>
#include <vector>

namespace moebius::viz {

class ChildRun {
 public:
  ChildRun() = default;
  ~ChildRun();  // ends what still runs
  ChildRun(const ChildRun&) = delete;
  ChildRun& operator=(const ChildRun&) = delete;

  // Starts it; what it prints goes to a terminal of its own, so that it draws its progress bar. run_error
  // when it cannot be started. Ends one that still runs.
  void start(const std::vector<std::string>& command);
  void poll();    // reads what has come, without waiting
  void cancel();  // asks it to end, and waits for that

  bool running() const { return pid_ > 0; }
  bool started() const { return started_; }
  bool cancelled() const { return cancelled_; }
  int exit_code() const { return exit_code_; }   // of the last one; -1: ended by a signal
  double progress() const { return progress_; }  // 0 to 1, as its bar says; -1 before it says anything
  const std::string& output() const { return output_; }  // its last lines, without the bar

 private:
  void take(const std::string& text);
  void reap(int options);

  int pid_ = 0, terminal_ = -1, exit_code_ = 0;
  bool started_ = false, cancelled_ = false;
  double progress_ = -1;
  std::string output_, line_;
};

}  // namespace moebius::viz
