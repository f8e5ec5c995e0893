// Meetings of ranks on threads.
#include <thread>

#include "real/exchange.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using Pieces = Exchange<float>::Pieces;

// True when the call threw because the run had stopped.
bool is_turned_away(Exchange<float>& exchange, const MeetingKey& key, int rank) {
  const std::vector<float> piece{1, 2};
  const Pieces give{piece, piece};
  try {
    exchange.swap_pieces(key, {rank, rank, "a meeting"}, give, [](const Pieces&) {});
  } catch (const Stopped&) {
    return true;
  }
  return false;
}

// Idle until the run is stopped.
void wait_idly(Monitor& monitor, int rank) {
  Monitor::Lock lock(monitor.mutex());
  try {
    monitor.wait(lock, rank, "", [] { return false; });
  } catch (const Stopped&) {
  }
}

TEST_CASE("who comes to a meeting after the run was stopped does not find the pieces of those who left") {
  Monitor monitor(2);
  Exchange<float> exchange(monitor);
  const MeetingKey key{.ranks = {0, 1}};
  bool first = false;
  std::thread waiting([&] { first = is_turned_away(exchange, key, 0); });
  std::thread idle([&] { wait_idly(monitor, 1); });
  while (true) {
    Monitor::Lock lock(monitor.mutex());
    if (!monitor.stuck().empty()) {  // rank 0 waits in the meeting
      monitor.stop();
      break;
    }
  }
  waiting.join();
  idle.join();
  CHECK(first);
  CHECK(is_turned_away(exchange, key, 1));
}

}  // namespace
}  // namespace moebius
