// Runs a fuzz target where there is no libFuzzer.
//   TARGET SECONDS [SEED]       mutates the target's seed inputs for SECONDS
//   TARGET input SEED INDEX     runs that one input and writes it to standard output
//   TARGET FILE                 runs the input in FILE
// Built with any compiler, sanitizers or none. What stops it says which input it was.
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

// There in a build with sanitizers only.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using moebius::fuzz::make_input;
using moebius::fuzz::seed_inputs;

constexpr unsigned kSlowestInputSeconds = 30;
constexpr rlim_t kMostMemory = rlim_t{2} << 30;  // an input of 1 MB has no business with more

// For the handlers, which are given nothing.
std::uint64_t current_seed = 0, current_index = 0;

void say_input() {
  char line[160];
  const int length = std::snprintf(line, sizeof line, "stopped at: input %llu %llu\n",
                                   static_cast<unsigned long long>(current_seed),
                                   static_cast<unsigned long long>(current_index));
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) _exit(1);
}

void on_signal(int signal) {
  say_input();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void on_slow(int) {
  static constexpr char kSentence[] = "an input took more than 30 seconds\n";
  if (write(STDERR_FILENO, kSentence, sizeof kSentence - 1) < 0) _exit(1);
  std::abort();
}

void watch() {
  std::signal(SIGABRT, on_signal);
  std::signal(SIGALRM, on_slow);
  if (__sanitizer_set_death_callback) return __sanitizer_set_death_callback(say_input);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
  const rlimit limit{kMostMemory, kMostMemory};  // sanitizers need address space of their own
  setrlimit(RLIMIT_AS, &limit);
}

void run_one(const std::string& input) {
  // An exact copy on the heap: reading one byte too far is then outside an allocation.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  alarm(kSlowestInputSeconds);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
}

void run_for(double seconds, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::string> seeds = seed_inputs();
  for (const std::string& input : seeds) run_one(input);
  current_seed = seed;
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (; Clock::now() < end; ++current_index) run_one(make_input(seeds, seed, current_index));
  std::printf("%llu inputs in %g s, seed %llu\n", static_cast<unsigned long long>(current_index), seconds,
              static_cast<unsigned long long>(seed));
}

void run_again(std::uint64_t seed, std::uint64_t index) {
  current_seed = seed;
  current_index = index;
  const std::string input = make_input(seed_inputs(), seed, index);
  std::fwrite(input.data(), 1, input.size(), stdout);
  std::fflush(stdout);
  run_one(input);
}

template <class Number>
bool read_number(const char* text, Number& number) {
  const char* end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, number);
  return failure == std::errc() && stop == end;
}

int run(int argc, char** argv) {
  double seconds = 0;
  std::uint64_t seed = 1, index = 0;
  if (argc == 4 && std::strcmp(argv[1], "input") == 0 && read_number(argv[2], seed) &&
      read_number(argv[3], index)) {
    run_again(seed, index);
    return 0;
  }
  if ((argc == 2 || (argc == 3 && read_number(argv[2], seed))) && read_number(argv[1], seconds)) {
    run_for(seconds, seed);
    return 0;
  }
  std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
  if (file) {
    run_one({std::istreambuf_iterator<char>(file), {}});
    return 0;
  }
  std::fprintf(stderr, "usage: %s SECONDS [SEED] | input SEED INDEX | FILE\n", argv[0]);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  watch();
  return run(argc, argv);
}
