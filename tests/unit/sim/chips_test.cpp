#include <catch2/catch.hpp>

#include "sim/chips.h"

using namespace moebius;

namespace {

Accelerator chip_with(int cores, int general = 0, bool independent = false) {
  Accelerator chip;
  chip.cores = cores;
  chip.general_cores = general;
  chip.independent_engines = independent;
  chip.memory_rate = {1000};
  chip.memory_efficiency = 0.5;  // 500 B/s achieved
  return chip;
}

using Use = Chips::Use;

constexpr Time kSecond{1'000'000'000};

}  // namespace

TEST_CASE("cores: so many, all that are free, all but so many") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  REQUIRE(chips.take(chip, 1, 20, Use::kCommunication) == 20);
  REQUIRE(chips.take(chip, 2, 0, Use::kCompute) == 80);
  REQUIRE(chips.held(chip) == 100);
  std::vector<Chips::Grant> grants;
  chips.release(chip, 80, Use::kCompute, grants);
  REQUIRE(chips.take(chip, 3, -20, Use::kCompute) == 80);
}

TEST_CASE("an op that needs more than is free waits, and later ones wait behind it") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  REQUIRE(chips.take(chip, 1, 60, Use::kCompute) == 60);
  REQUIRE(chips.take(chip, 2, 50, Use::kCompute) == -1);
  REQUIRE(chips.take(chip, 3, 10, Use::kCompute) == -1);  // 40 are free, but holder 2 was first
  std::vector<Chips::Grant> grants;
  chips.release(chip, 60, Use::kCompute, grants);
  REQUIRE(grants.size() == 2);
  REQUIRE(grants[0].holder == 2);
  REQUIRE(grants[0].cores == 50);
  REQUIRE(grants[1].holder == 3);
  REQUIRE(grants[1].cores == 10);
}

TEST_CASE("communication takes compute cores on a GPU, general cores where engines are independent") {
  Chips chips;
  const int gpu = chips.add(chip_with(100)), apart = chips.add(chip_with(64, 8, true)),
            uncounted = chips.add(chip_with(64, 0, true));
  chips.take(gpu, 1, 20, Use::kCommunication);
  REQUIRE(chips.take(gpu, 2, 0, Use::kCompute) == 80);
  REQUIRE(chips.take(apart, 3, 8, Use::kCommunication) == 8);
  REQUIRE(chips.take(apart, 4, 0, Use::kCompute) == 64);
  REQUIRE(chips.take(apart, 5, 1, Use::kCommunication) == -1);
  REQUIRE(chips.take(uncounted, 6, 20, Use::kCommunication) == 0);
  REQUIRE(chips.take(uncounted, 7, 0, Use::kPosting) == 0);
}

TEST_CASE("compute leaves cores to communication only where they are the same ones") {
  Chips chips;
  const int gpu = chips.add(chip_with(100)), apart = chips.add(chip_with(24, 48, true));
  REQUIRE(chips.take(gpu, 1, -24, Use::kCompute) == 76);
  REQUIRE(chips.take(apart, 2, -24, Use::kCompute) == 24);
  REQUIRE(chips.take(apart, 3, 24, Use::kCommunication) == 24);
}

// Who waits for cores that communication holds may be the one that it waits for, through others.
TEST_CASE("posting and what leaves cores to communication wait for what computes, not for communication") {
  Chips chips;
  const int gpu = chips.add(chip_with(100));
  REQUIRE(chips.take(gpu, 1, 24, Use::kCommunication) == 24);
  REQUIRE(chips.take(gpu, 2, -20, Use::kCompute) == 76);
  REQUIRE(chips.take(gpu, 3, 0, Use::kPosting) == -1);
  std::vector<Chips::Grant> grants;
  chips.release(gpu, 76, Use::kCompute, grants);
  REQUIRE(grants.size() == 1);
  REQUIRE(grants[0].cores == 76);
  grants.clear();
  chips.release(gpu, 76, Use::kPosting, grants);
  REQUIRE(chips.take(gpu, 4, -20, Use::kCompute) == 76);
  chips.release(gpu, 24, Use::kCommunication, grants);
  REQUIRE(chips.take_more(gpu, -20, 76) == 4);  // as far as it asks
  REQUIRE(chips.held(gpu) == 80);
}

// Two ops, each 1 s alone and 400 B: together they ask for 800 of 500 B/s, so both run at 5/8: 1.6 s.
TEST_CASE("ops that together ask for more memory rate than there is slow down in proportion") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  chips.start({chip, 1, 1, 1, 400}, {});
  chips.start({chip, 2, 2, 1, 400}, {});
  REQUIRE(chips.next_event() == Time{1'600'000'000});
}

// The first alone until 0.5 s, then both at 5/8: the first has 0.5 s of work left and takes 0.8 s; the second
// has then done 0.5 s of its work and ends the rest alone.
TEST_CASE("the memory rate is shared only while both run") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  chips.start({chip, 1, 1, 1, 400}, {});
  chips.start({chip, 2, 2, 1, 400}, Time{500'000'000});
  REQUIRE(chips.next_event() == Time{1'300'000'000});
  REQUIRE(chips.pop_finished(Time{1'300'000'000}) == 1);
  REQUIRE(chips.next_event() == Time{1'800'000'000});
}

TEST_CASE("ops within the memory rate, or without memory traffic, do not touch each other") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  chips.start({chip, 1, 1, 1, 250}, {});
  chips.start({chip, 2, 2, 1, 250}, {});
  chips.start({chip, 3, 3, 1, 0}, {});
  for (const int holder : {1, 2, 3}) REQUIRE(chips.pop_finished(kSecond) == holder);
}

TEST_CASE("an op alone takes its own cost, however much memory rate it asks for") {
  Chips chips;
  const int chip = chips.add(chip_with(100));
  chips.start({chip, 1, 1, 1, 5000}, {});
  REQUIRE(chips.next_event() == kSecond);
}
