#include "viz/data/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hw/error.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kMostOutput = 1 << 16;

// "[████    ]  42%, 3 s left" -> 0.42; -1 for other lines.
double share_of_bar(const std::string& line) {
  const std::size_t percent = line.find('%');
  if (line.find('[') == std::string::npos || percent == std::string::npos) return -1;
  std::size_t begin = percent;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0)) --begin;
  return begin == percent ? -1 : std::atoi(line.c_str() + begin) / 100.0;
}

}  // namespace

ChildRun::~ChildRun() {
  cancel();
}

void ChildRun::start(const std::vector<std::string>& command) {
  cancel();
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  winsize size{.ws_row = 50, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t pid = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid < 0)
    throw run_error(fmt::format("{}: cannot be started: {}", command.front(), std::strerror(errno)));
  if (pid == 0) {
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  fcntl(terminal_, F_SETFL, O_NONBLOCK);
  fcntl(terminal_, F_SETFD, FD_CLOEXEC);
  pid_ = pid, started_ = true, cancelled_ = false, progress_ = -1, exit_code_ = 0;
  output_.clear(), line_.clear();
}

void ChildRun::take(const std::string& text) {
  for (const char c : text) {
    if (c != '\r' && c != '\n') {
      if (line_.size() < 4096) line_ += c;
      continue;
    }
    const double share = share_of_bar(line_);
    if (share >= 0) progress_ = share;
    if (c == '\n' && share < 0 && output_.size() < kMostOutput) output_ += line_ + "\n";
    if (c == '\n' || share >= 0) line_.clear();
  }
}

void ChildRun::reap(int options) {
  int status = 0;
  if (waitpid(pid_, &status, options) != pid_) return;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  pid_ = 0;
}

void ChildRun::poll() {
  if (pid_ == 0) return;
  const auto drain = [&] {
    char buffer[4096];
    for (ssize_t size = 0; (size = read(terminal_, buffer, sizeof(buffer))) > 0;)
      take(std::string(buffer, static_cast<std::size_t>(size)));
  };
  drain();
  reap(WNOHANG);
  if (pid_ != 0) return;
  drain();
  take("\n");
  close(terminal_);
  terminal_ = -1;
}

void ChildRun::cancel() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  reap(0);
  cancelled_ = true;
  close(terminal_);
  terminal_ = -1;
}

}  // namespace moebius::viz
