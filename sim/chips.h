// Chips: cores that an op holds from its start to its end, and device memory whose rate running ops share.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hw/cluster.h"
#include "sim/earliest.h"

namespace moebius {

// A compute op as the chip sees it, at the cores that it holds.
struct ComputeWork {
  std::int32_t chip = 0;
  std::int32_t holder = 0;  // whoever asked, any number but kNobody; returned by pop_finished()
  std::uint64_t id = 0;     // orders ops that finish together
  double seconds = 0;       // alone on the chip
  double memory_bytes = 0;  // device-memory traffic over that time
  bool paced = true;        // goes at the chip's pace; a copy that wires pace does not
};

class Chips {
 public:
  static constexpr std::int32_t kNobody = -1;
  struct Grant {
    std::int32_t holder = 0;
    int cores = 0;
  };

  // `pace`: how fast it computes against its kind.
  int add(const Accelerator& accelerator, double pace = 1);

  // Who asks for cores: what computes, communication, or a kernel that posts messages with all cores that
  // communication leaves. Communication may hold its own until who waits behind others has come, so that
  // nobody waits for them but other communication.
  enum class Use : std::uint8_t { kCompute, kCommunication, kPosting };

  // Cores for an op, see Op::units (of posting none is said): those granted, or -1 when the op was queued
  // behind what came earlier. Communication with `units` 0 needs none and never waits; chips with independent
  // engines keep `general_cores` for it, and where these are not counted it takes none.
  int take(int chip, std::int32_t holder, int units, Use use);
  // Gives cores back; appends who gets theirs now, first come, first served.
  void release(int chip, int cores, Use use, std::vector<Grant>& grants);
  // For an op of so many units that computes with `cores`: those that have become free since, as far as it
  // asks for them and unless others wait.
  int take_more(int chip, int units, int cores);
  // Nothing runs there and nothing waits for its cores.
  bool is_idle(int chip) const {
    const Chip& c = chips_[chip];
    return c.running.empty() && c.cores.queue.empty() && c.general.queue.empty();
  }
  int held(int chip) const { return pool(chip, false).total - pool(chip, false).free; }

  void start(const ComputeWork& work, Time now);
  // What is left of the holder's op costs as much as that share of an op of so many seconds and bytes.
  void go_on_as(int chip, std::int32_t holder, double seconds, double memory_bytes, Time now);
  // From `now` on the chip does its work at `pace` times its usual speed, memory and all.
  void set_pace(int chip, double pace, Time now);
  Time next_event() {
    if (popped_ >= 0) find_first(popped_);
    return ends_.time();
  }
  // The holder of an op that has finished by `now`, in the order of ids, or kNobody.
  std::int32_t pop_finished(Time now) { return next_event() > now ? kNobody : pop_due(now); }

 private:
  struct Waiting {
    std::int32_t holder = 0;
    int units = 0;
    Use use = Use::kCompute;
  };
  struct CorePool {
    int total = 0, free = 0;
    int communicating = 0;  // held by communication
    std::deque<Waiting> queue;
  };
  struct Chip {
    CorePool cores, general;
    bool independent = false;
    double memory_rate = 0;             // achieved, bytes per second
    std::vector<std::int32_t> running;  // slots
    int memory_users = 0;               // of them
    std::int32_t first = -1;            // of them: the slot that ends first; -1: none runs
    double speed = 1;                   // of those that use device memory, against standing alone
    double usual = 1;                   // pace of the whole chip as it was added
    double pace = 1;                    // and now
  };
  struct Running {
    ComputeWork work;
    double left = 0;  // seconds of work at full speed, at `since`
    double speed = 1;
    Time since, end;
    double demand = 0;  // of memory, bytes per second, at full speed
    double usual(const Chip& chip) const { return work.paced ? chip.pace : 1; }
  };

  const CorePool& pool(int chip, bool communication) const;
  CorePool& pool(int chip, bool communication);
  static int wanted(const CorePool& pool, int units, Use use);
  static void grant(CorePool& pool, int cores, Use use);
  std::int32_t pop_due(Time now);
  bool ends_before(std::int32_t slot, std::int32_t other) const {
    const Running &a = running_[slot], &b = running_[other];
    return a.end != b.end ? a.end < b.end : a.work.id < b.work.id;
  }
  // Whether what runs on the chip goes at another speed from now on. One op alone has what it asks for.
  bool share_memory(int chip, Time now) {
    return (chips_[chip].speed != 1 || chips_[chip].memory_users > 1) && share_among_several(chip, now);
  }
  bool share_among_several(int chip, Time now);
  void go_at(std::int32_t slot, double speed, Time now);
  static void work_until(Running& op, Time now);
  void find_first(int chip);
  void set_first(int chip, std::int32_t slot);

  std::vector<Chip> chips_;
  std::vector<Running> running_;
  std::vector<std::int32_t> free_;
  Earliest ends_;  // by chip
  std::int32_t popped_ =
      -1;  // the chip whose first is still the op that was popped: most start the next at once
};

}  // namespace moebius
