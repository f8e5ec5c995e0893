#include "workloads/study/sweep.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/interrupted.h"
#include "workloads/progress_bar.h"
#include "workloads/study/study_points.h"
#include "workloads/study/study_table.h"

namespace moebius {

namespace {

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

JobOutcome carry_out(const SweepRequest& request, std::int64_t index) {
  const double before = cpu_seconds();
  JobOutcome outcome;
  try {
    outcome.text = request.run(scenario_of(request.study, point_of(request.study, index)));
    outcome.done = true;
  } catch (const Error& error) {
    outcome.text = error.what();
  }
  outcome.cpu_s = cpu_seconds() - before;
  return outcome;
}

StudyRow row_of(const SweepRequest& request, std::int64_t index) {
  const StudyPoint point = point_of(request.study, index);
  const std::string key = key_of(scenario_of(request.study, point), request.means + request.data_mark);
  return {index, key, point.seed, settings_json(point)};
}

// A socket on any free port, where workers of other processes come in.
class Door {
 public:
  Door() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    socklen_t size = sizeof(any);
    auto* address = reinterpret_cast<sockaddr*>(&any);
    if (socket_ < 0 || bind(socket_, address, size) != 0 || listen(socket_, 128) != 0 ||
        getsockname(socket_, address, &size) != 0)
      throw run_error(fmt::format("no socket for workers of other processes: {}", std::strerror(errno)));
    port_ = ntohs(any.sin_port);
  }
  ~Door() { close(socket_); }
  Door(const Door&) = delete;

  int socket() const { return socket_; }
  // "PORT GREETING ADDRESS ADDRESS ...": all that another process needs to come in.
  std::string invitation(const std::string& greeting) const {
    std::string text = fmt::format("{} {}", port_, greeting);
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return text + " 127.0.0.1";
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
      char name[INET_ADDRSTRLEN] = {};
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, name, sizeof(name)) != nullptr)
        text += fmt::format(" {}", name);
    }
    freeifaddrs(all);
    return text;
  }

 private:
  int socket_, port_ = 0;
};

// Not to be guessed from elsewhere, and different for different studies: who has other files is not let in.
std::string greeting_of(const std::string& secret, const SweepRequest& request) {
  return fmt::format("{}{}", secret, row_of(request, request.study.points() - 1).key);
}

std::string draw_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

int connect_to(const std::string& address, int port) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &there.sin_addr) != 1) return -1;
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{10, 0};
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));  // of connecting too
  if (connect(made, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) == 0) return made;
  close(made);
  return -1;
}

// Before hours go by for a name that is spelled wrong; once all are done it is an error.
void tell_missing_column(const Study& study, const std::string& report) {
  const std::string missing = missing_column(study, report);
  if (!missing.empty()) fmt::print(stderr, "moebius: {}\n", missing);
}

}  // namespace

SweepCourse sweep(const SweepRequest& request, ResultsFile& results) {
  const Study& study = request.study;
  SweepCourse course;
  const std::string means = request.means + (request.data.empty() ? "" : " data " + request.data);
  course.study = results.begin_study(study.name, study.file, means, study.points(),
                                     [&](std::int64_t index) { return row_of(request, index); });
  const std::vector<std::int64_t> missing = results.missing(course.study, request.retry);
  std::vector<std::string> keys(study.points());
  for (const std::int64_t index : missing) keys[index] = row_of(request, index).key;
  const bool alone = request.companions.count == 1;
  if (alone && missing.empty()) return course;
  const int workers = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(request.workers),
                                                             std::max<std::size_t>(1, missing.size())));
  WorkerProcesses processes(workers, [&](std::int64_t index) { return carry_out(request, index); });
  std::optional<Door> door;
  if (!alone) {
    const std::string secret = draw_secret();
    door.emplace();
    request.companions.share(door->invitation(secret));
    processes.welcome(door->socket(), greeting_of(secret, request));
  }
  const LastWords words("interrupted: what is done is kept; run again to go on");
  ProgressBar bar;
  bool any_done = false;
  processes.work(missing, [&](std::int64_t index, const JobOutcome& outcome) {
    if (outcome.done && !std::exchange(any_done, true)) tell_missing_column(study, outcome.text);
    results.record({keys[index], outcome.done, outcome.text, outcome.cpu_s});
    bar.show(static_cast<double>(++course.carried) / static_cast<double>(missing.size()));
  });
  course.others = processes.others();
  return course;
}

void work_for_first(const SweepRequest& request) {
  std::istringstream invitation(request.companions.share(""));
  int port = 0;
  std::string secret, address;
  invitation >> port >> secret;
  while (invitation >> address) {
    const int socket = connect_to(address, port);
    if (socket < 0) continue;
    if (send_message(socket, greeting_of(secret, request)))
      serve_jobs(socket, [&](std::int64_t index) { return carry_out(request, index); });
    close(socket);
    return;
  }
}

}  // namespace moebius
