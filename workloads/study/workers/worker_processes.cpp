#include "workloads/study/workers/worker_processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

constexpr int kMostDeaths = 2;  // of the workers of one job

std::string message_of(std::int64_t job, const JobOutcome& outcome) {
  std::string message;
  append(message, job);
  append(message, outcome.cpu_s);
  append(message, static_cast<std::uint8_t>(outcome.done ? 1 : 0));
  return message + outcome.text;
}

struct Answer {
  std::int64_t job = -1;
  JobOutcome outcome;
};

Answer answer_in(const std::string& message) {
  Answer answer;
  constexpr std::size_t kHead = sizeof(answer.job) + sizeof(answer.outcome.cpu_s) + 1;
  if (message.size() < kHead) return answer;
  std::memcpy(&answer.job, message.data(), sizeof(answer.job));
  std::memcpy(&answer.outcome.cpu_s, message.data() + sizeof(answer.job), sizeof(answer.outcome.cpu_s));
  answer.outcome.done = message[kHead - 1] == 1;
  answer.outcome.text = message.substr(kHead);
  return answer;
}

// "signal 9 (Killed)", "exit code 1"
std::string manner_of_death(pid_t child) {
  int status = 0;
  if (child == 0 || waitpid(child, &status, 0) != child) return "lost connection";
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

void serve_jobs(int socket, const CarryOut& carry_out) {
  while (const auto message = receive_message(socket)) {
    std::int64_t job = -1;
    if (message->size() != sizeof(job)) return;
    std::memcpy(&job, message->data(), sizeof(job));
    if (!send_message(socket, message_of(job, carry_out(job)))) return;
  }
}

WorkerProcesses::WorkerProcesses(int count, CarryOut carry_out)
    : carry_out_(std::move(carry_out)), count_(count) {
  for (int i = 0; i < count_; ++i) start_child();
}

WorkerProcesses::~WorkerProcesses() {
  for (const Worker& worker : workers_) close(worker.socket);
  for (const Worker& worker : workers_) {
    if (worker.child == 0) continue;
    kill(worker.child, SIGKILL);
    waitpid(worker.child, nullptr, 0);
  }
}

void WorkerProcesses::welcome(int listening_socket, std::string greeting) {
  listening_ = listening_socket;
  greeting_ = std::move(greeting);
}

// The child goes when its parent does, however that ends.
void WorkerProcesses::start_child() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw run_error(fmt::format("no further worker process: {}", std::strerror(errno)));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw run_error(fmt::format("no further worker process: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    for (const Worker& worker : workers_) close(worker.socket);
    if (listening_ >= 0) close(listening_);
    serve_jobs(ends[1], carry_out_);
    _exit(0);
  }
  close(ends[1]);
  workers_.push_back({.socket = ends[0], .child = child});
}

void WorkerProcesses::work(const std::vector<std::int64_t>& jobs,
                           const std::function<void(std::int64_t, const JobOutcome&)>& take) {
  waiting_.assign(jobs.begin(), jobs.end());
  left_ = static_cast<std::int64_t>(jobs.size());
  take_ = take;
  while (left_ > 0) {
    if (workers_.empty() && listening_ < 0) start_child();
    give_work();
    wait();
  }
}

void WorkerProcesses::give_work() {
  for (std::size_t i = 0; i < workers_.size();) {
    Worker& worker = workers_[i];
    if (worker.greeted && worker.job < 0 && !waiting_.empty()) {
      worker.job = waiting_.front();
      waiting_.pop_front();
      std::string message;
      append(message, worker.job);
      if (!send_message(worker.socket, message)) {
        lose(i);
        continue;
      }
    }
    ++i;
  }
}

void WorkerProcesses::wait() {
  std::vector<pollfd> sockets;
  for (const Worker& worker : workers_) sockets.push_back({worker.socket, POLLIN, 0});
  if (listening_ >= 0) sockets.push_back({listening_, POLLIN, 0});
  if (poll(sockets.data(), sockets.size(), -1) < 0) {
    if (errno == EINTR) return;
    throw run_error(fmt::format("waiting for worker processes: {}", std::strerror(errno)));
  }
  const std::size_t known = workers_.size();
  for (std::size_t i = known; i-- > 0;) {
    if (sockets[i].revents == 0) continue;
    if (workers_[i].buffer.take_from(workers_[i].socket) == MessageBuffer::Taken::kEnd)
      lose(i);
    else
      hear(workers_[i]);
  }
  if (listening_ >= 0 && sockets[known].revents != 0) accept_one();
}

void WorkerProcesses::accept_one() {
  const int socket = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) workers_.push_back({.socket = socket, .greeted = false});
}

void WorkerProcesses::hear(Worker& worker) {
  while (const auto message = worker.buffer.next()) {
    // Who says something else is shown out when its end is closed.
    if (!take_message(worker, *message)) shutdown(worker.socket, SHUT_RDWR);
  }
}

bool WorkerProcesses::take_message(Worker& worker, const std::string& message) {
  if (!worker.greeted) {
    worker.greeted = message == greeting_;
    if (worker.greeted) ++others_;
    return worker.greeted;
  }
  const Answer answer = answer_in(message);
  if (worker.job < 0 || answer.job != worker.job) return false;
  worker.job = -1;
  end(answer.job, answer.outcome);
  return true;
}

void WorkerProcesses::lose(std::size_t index) {
  const Worker lost = std::move(workers_[index]);
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(index));
  close(lost.socket);
  if (lost.child != 0) kill(lost.child, SIGKILL);
  const std::string manner = manner_of_death(lost.child);
  if (lost.job >= 0) {
    if (++deaths_[lost.job] < kMostDeaths)
      waiting_.push_front(lost.job);
    else
      end(lost.job,
          {false,
           fmt::format("{} processes that carried it out died, the last one of {}", kMostDeaths, manner), 0});
  }
  if (lost.child != 0 && left_ > 0) start_child();
}

void WorkerProcesses::end(std::int64_t job, const JobOutcome& outcome) {
  --left_;
  take_(job, outcome);
}

}  // namespace moebius
