// Ranks of the host in turns: the numbers of ranks side by side, one rank at a time, every op timed.
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "hw/error.h"

#include "tests/catch.h"

#include "real/monitor.h"
#include "tests/unit/real/hand_made.h"

namespace moebius {
namespace {

constexpr std::uint32_t kTurned = 1, kResult = 2;
constexpr int kTurning = 3;

// y = all-reduce(x + x) on every rank.
FragmentPtr doubled_sum() {
  FragmentBuilder b("doubled sum", Phase::kForward);
  const TensorId x = b.add(kept(kTurned, 1, 2)), y = b.add(kept(kResult, 1, 2));
  const TensorId twice = b.add({.dtype = DType::kFp32, .rows = 1, .columns = 2});
  b.emit({.kind = OpKind::kAdd, .shape = {.m = 1, .n = 2}}, {x, x}, {twice});
  b.emit(meeting(OpKind::kAllReduce, GroupRole::kTensor, 1), {twice}, {y});
  return b.freeze_it();
}

HostOptions in_turns() {
  HostOptions options;
  options.one_at_a_time = true;
  return options;
}

}  // namespace

TEST_CASE("ranks in turns compute what ranks side by side compute") {
  HandMade hand_made(one_group(kTurning, GroupRole::kTensor), in_turns());
  for (int rank = 0; rank < kTurning; ++rank)
    hand_made.executor().set_parameter(rank, kTurned, {static_cast<float>(rank), 1});
  hand_made.run_everywhere(doubled_sum());
  // 2 (0 + 1 + 2) and 2 (1 + 1 + 1)
  for (int rank = 0; rank < kTurning; ++rank)
    CHECK(hand_made.executor().tensor(rank, kResult) == std::vector<float>{6, 6});
}

TEST_CASE("of ranks in turns every op is timed once, of others none") {
  HandMade timed(one_group(kTurning, GroupRole::kTensor), in_turns());
  timed.run_everywhere(doubled_sum());
  std::set<std::pair<std::int32_t, std::int32_t>> ops;
  for (const OpTime& time : timed.executor().op_times()) {
    CHECK(time.cpu.ns > 0);
    ops.insert({time.sequence, time.op});
  }
  CHECK(ops.size() == kTurning * 2);
  CHECK(timed.executor().op_times().size() == ops.size());
  HandMade free(one_group(kTurning, GroupRole::kTensor));
  free.run_everywhere(doubled_sum());
  CHECK(free.executor().op_times().empty());
}

TEST_CASE("no two ranks in turns compute at the same time") {
  std::atomic<int> inside = 0, most = 0;
  HostOptions options = in_turns();
  options.observer = [&](const ComputedOp&) {
    most = std::max<int>(most, ++inside);
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // others could come in
    --inside;
  };
  HandMade hand_made(one_group(kTurning, GroupRole::kTensor), options);
  const FragmentPtr fragment = doubled_sum();
  for (int microbatch = 0; microbatch < 4; ++microbatch)
    for (int rank = 0; rank < kTurning; ++rank) hand_made.submit(rank, fragment, microbatch);
  hand_made.executor().finish();
  CHECK(most == 1);
}

TEST_CASE("a rank that comes late to wait takes the turn from no one") {
  Monitor monitor(2, true);
  bool waits = false, may_go = false, over = false;
  std::atomic<bool> ran = false;
  Monitor::Lock lock(monitor.mutex());
  monitor.wait(lock, 0, "a turn", [] { return true; });  // this thread is rank 0
  std::thread late([&] {
    Monitor::Lock mine(monitor.mutex());
    monitor.wait(mine, 1, "work", [&] {
      waits = true;
      return may_go;
    });
    ran = true;
    monitor.wait(mine, 1, "the end", [&] { return over; });
  });
  while (!waits) monitor.wait_for_change(lock, nullptr);
  may_go = true;
  monitor.changed();
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // rank 0 works, rank 1 could come in
  const bool came_in = ran;
  lock.lock();
  monitor.wait(lock, 0, "rank 1", [&] { return ran.load(); });
  over = true;
  monitor.stop();
  lock.unlock();
  late.join();
  CHECK_FALSE(came_in);
  CHECK(ran);
}

TEST_CASE("a rank that fails stops ranks in turns, and a deadlock is told") {
  HandMade lonely(one_group(2, GroupRole::kTensor), in_turns());
  lonely.submit(0, doubled_sum());
  CHECK_THROWS_WITH(lonely.executor().finish(), Catch::Matchers::Contains("deadlock: rank 0 in all_reduce"));
  HandMade uneven(one_group(2, GroupRole::kTensor), in_turns());
  FragmentBuilder b("doubled sum", Phase::kForward);
  const TensorId x = b.add(kept(kTurned, 1, 4));
  b.emit(meeting(OpKind::kAllReduce, GroupRole::kTensor, 1), {x}, {b.add(kept(kResult, 1, 4))});
  uneven.submit(0, doubled_sum());
  uneven.submit(1, b.freeze_it());
  CHECK_THROWS_WITH(uneven.executor().finish(), Catch::Matchers::Contains("elements where"));
}

}  // namespace moebius
