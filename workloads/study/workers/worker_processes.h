// Jobs handed out to processes, one at a time to each: children of this one, and others that connect. Whoever
// dies loses the job that it had, and no more; the job goes to another.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workloads/study/workers/message_pipe.h"

namespace moebius {

struct JobOutcome {
  bool done = false;
  std::string text;  // the result, or in a sentence why there is none
  double cpu_s = 0;  // of the process that carried it out
};

// A job by its number. Throws nothing: what fails is an outcome too.
using CarryOut = std::function<JobOutcome(std::int64_t job)>;

// The life of a worker: carries out what it is told until the other end is gone.
void serve_jobs(int socket, const CarryOut& carry_out);

class WorkerProcesses {
 public:
  // Starts `count` children. A process with threads must not.
  WorkerProcesses(int count, CarryOut carry_out);
  ~WorkerProcesses();  // ends the children
  WorkerProcesses(const WorkerProcesses&) = delete;

  // From now on, who connects to this socket and first says `greeting` is a worker too.
  void welcome(int listening_socket, std::string greeting);

  // Carries out all of them; `take` hears of each once, in the order in which they end. A job whose workers
  // die kMostDeaths times ends with a sentence about that.
  void work(const std::vector<std::int64_t>& jobs,
            const std::function<void(std::int64_t job, const JobOutcome&)>& take);

  int others() const { return others_; }  // workers that connected, ever

 private:
  struct Worker {
    int socket = -1;
    pid_t child = 0;  // 0: it connected
    bool greeted = true;
    std::int64_t job = -1;  // that it carries out
    MessageBuffer buffer = {};
  };

  void start_child();
  void give_work();
  void wait();
  void accept_one();
  void hear(Worker& worker);
  bool take_message(Worker& worker, const std::string& message);
  void lose(std::size_t worker);
  void end(std::int64_t job, const JobOutcome& outcome);

  const CarryOut carry_out_;
  const int count_;
  int listening_ = -1, others_ = 0;
  std::string greeting_;
  std::vector<Worker> workers_;
  std::deque<std::int64_t> waiting_;
  std::map<std::int64_t, int> deaths_;  // of jobs whose worker died
  std::int64_t left_ = 0;
  std::function<void(std::int64_t, const JobOutcome&)> take_;
};

}  // namespace moebius
