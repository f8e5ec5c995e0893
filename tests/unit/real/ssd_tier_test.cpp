// The SSD tier's file: where it stands, what goes wrong with it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/tiers/ssd_tier.h"
#include "real/tiers/storage_figures.h"
#include "tests/process.h"
#include "tests/unit/real/tier_bytes.h"
#include "workloads/serving/kv/tier_law.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius::kv {
namespace {

namespace fs = std::filesystem;

// The descriptor of the tier's file: the only file without a name.
int file_of_tier() {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename().string());
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0) return file;
  }
  return -1;
}

TEST_CASE("the file has its whole size and no name while the tier is there") {
  const test::Scratch scratch;
  const SsdTier tier({scratch.path(""), 5000, 10, 4}, HostClock::now());
  CHECK(fs::is_empty(scratch.path("")));
  struct stat status;
  REQUIRE(fstat(file_of_tier(), &status) == 0);
  CHECK(status.st_size == 10 * 8192);  // blocks of two pages
  CHECK(status.st_blocks * 512 >= 10 * 8192);
  CHECK(status.st_nlink == 0);
}

TEST_CASE("a tier says what it is made of") {
  const test::Scratch scratch;
  const SsdTier threads({.directory = scratch.path(""),
                         .block_bytes = 1 << 20,
                         .blocks = 4,
                         .depth = 2,
                         .direct = false,
                         .ring = false},
                        HostClock::now());
  CHECK(threads.description() ==
        "4 blocks of 1.05 MB in " + scratch.path("") +
            ": through the page cache, as asked for; 2 threads with pread and pwrite: "
            "as asked for");
}

// No more descriptors than the tier's file and one more: the kernel then refuses a ring.
class FewDescriptors {
 public:
  FewDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    const rlimit few{static_cast<rlim_t>(next) + 2, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_CASE("where the kernel refuses a ring threads take its place, and the tier says so") {
  const test::Scratch scratch;
  std::optional<FewDescriptors> few(std::in_place);
  SsdTier tier({scratch.path(""), 8192, 4, 2}, HostClock::now());
  few.reset();
  const std::string said = tier.description();
  INFO(said);
  CHECK(said.find("2 threads with pread and pwrite: ") != std::string::npos);
  CHECK((said.find("io_uring is refused (Too many open files)") != std::string::npos ||
         said.find("built without liburing") != std::string::npos));
  Pages written(8192), found(8192);
  written.fill_randomly(1);
  tier.submit({Direction::kWrite, {{1, 0, 8192, written.at(0)}}});
  REQUIRE(all_good(tier, 1));
  tier.submit({Direction::kRead, {{1, 0, 8192, found.at(0)}}});
  REQUIRE(all_good(tier, 1));
  CHECK(found.equals(written));
}

TEST_CASE("a file that became shorter fails a read in a sentence, by either way") {
  for (const bool ring : {true, false}) {
    const test::Scratch scratch;
    SsdTier tier({scratch.path(""), 8192, 8, 4, true, ring}, HostClock::now());
    REQUIRE(ftruncate(file_of_tier(), 3 * 8192 + 4096) == 0);
    Pages memory(8192);
    tier.submit({Direction::kRead, {{3, 0, 8192, memory.at(0)}}});
    tier.submit({Direction::kRead, {{2, 0, 8192, memory.at(0)}}});
    std::map<TransferId, TransferDone> done;
    while (done.size() < 2) {
      for (const TransferDone& each : tier.wait(kForever)) done[each.id] = each;
    }
    CHECK(done[0].outcome == Outcome::kFailed);
    CHECK(done[0].failure == "the SSD tier in " + scratch.path("") +
                                 ": block 3 could not be read: the file ended after 4096 bytes");
    CHECK(done[1].outcome == Outcome::kGood);
  }
}

TEST_CASE("a disk without room for the tier is a sentence, and nothing is left of the try") {
  const test::Scratch scratch;
  const std::int64_t blocks = std::int64_t{1} << 38;  // an exbibyte in all
  try {
    SsdTier({scratch.path(""), 4 << 20, blocks, 4}, HostClock::now());
    FAIL("there was room for an exbibyte");
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kRun);
    const std::string start = "the SSD tier in " + scratch.path("") + ": no room for 1.15 EB: ";
    CHECK(std::string(error.what()).substr(0, start.size()) == start);
  }
  CHECK(fs::is_empty(scratch.path("")));
}

TEST_CASE("a directory that is not there is a sentence") {
  CHECK_THROWS_WITH(SsdTier({"/nowhere", 4096, 1, 1}, HostClock::now()),
                    "the SSD tier in /nowhere: no file can be made: No such file or directory");
}

TEST_CASE("a disk is measured at three depths in both directions, and its law can be made from that") {
  const test::Scratch scratch;
  const StorageFigures figures = measure_storage(scratch.path(""), {.seconds = 0.4});
  std::vector<std::string> names;
  for (const TransferCurve& curve : figures.curves) {
    names.push_back(curve.name);
    CHECK(curve.bytes.size() == 6);
    CHECK(curve.rate > 0);
    for (const double seconds : curve.seconds) CHECK(seconds > 0);
  }
  CHECK(names == std::vector<std::string>{"ssd read", "ssd read x8", "ssd read x32", "ssd write",
                                          "ssd write x8", "ssd write x32"});
  // A piece among many is not served sooner than one alone, whatever bursts they end in.
  for (const int alone : {0, 3})
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(figures.curves[alone + 2].seconds[i] > 0.2 * figures.curves[alone].seconds[i]);
  CHECK(measured_storage_law(figures.curves).read.operations > 0);
  CHECK(fs::is_empty(scratch.path("")));
  CHECK_THROWS_WITH(measure_storage(scratch.path(""), {.seconds = 0.4, .budget = 1e-3}),
                    Catch::Contains("found 0.001, which did not hold them"));
  CHECK(fs::is_empty(scratch.path("")));
}

}  // namespace
}  // namespace moebius::kv
