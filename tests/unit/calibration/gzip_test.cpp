#include "workloads/calibration/gzip.h"

#include <string>
#include <vector>

#include "workloads/calibration/csv.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

const std::string kText = "chip,us\nours,1\ntheirs,2\nours,3\n";
// kText, as gzip packs it.
const std::vector<unsigned char> kPacked = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x4b, 0xce, 0xc8, 0x2c, 0xd0,
    0x29, 0x2d, 0xe6, 0xca, 0x2f, 0x2d, 0x2a, 0xd6, 0x31, 0xe4, 0x2a, 0xc9, 0x48, 0xcd, 0x04,
    0x32, 0x8c, 0x20, 0x7c, 0x63, 0x2e, 0x00, 0x3f, 0xd9, 0x85, 0x40, 0x1f, 0x00, 0x00, 0x00};

std::string packed(std::size_t bytes = kPacked.size()) {
  return {kPacked.begin(), kPacked.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

TEST_CASE("a gzip file is unpacked") {
  const test::Scratch scratch;
  CHECK(read_gzip(scratch.write("whole.csv.gz", packed())) == kText);
}

TEST_CASE("a cut gzip file, one that is none, and a missing one are errors with their name") {
  const test::Scratch scratch;
  CHECK_THROWS_AS(read_gzip(scratch.write("cut.csv.gz", packed(kPacked.size() / 2))), Error);
  CHECK_THROWS_WITH(read_gzip(MOEBIUS_SOURCE_DIR "/LICENSE"), Catch::Contains("LICENSE: expected gzip"));
  CHECK_THROWS_WITH(read_gzip("/nowhere.gz"), Catch::Contains("/nowhere.gz: cannot be read"));
}

TEST_CASE("rows of one chip are read from a packed table, the others passed over") {
  const test::Scratch scratch;
  const Csv csv(scratch.write("rows.csv.gz", packed()), "ours");
  REQUIRE(csv.rows().size() == 2);
  CHECK(csv.rows()[1].line == 4);
  CHECK(csv.number(csv.rows()[1], "us") == 3);
}

}  // namespace
}  // namespace moebius
