// Traces as other systems write tables.
#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius {
namespace {

const std::string kAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46,374,44\r\n\r\n";

TEST_CASE("a trace may begin with a byte order mark and end with a blank line of two bytes") {
  const test::Scratch scratch;
  const auto traffic = open_trace({scratch.write("trace", "\xEF\xBB\xBF" + kAzure), TraceFormat::kAuto, 512});
  TrafficRequest request;
  REQUIRE(traffic->next(request));
  CHECK(request.input_tokens == 374);
  CHECK_FALSE(traffic->next(request));
}

TEST_CASE("a trace that has a column twice is refused") {
  const test::Scratch scratch;
  const std::string path = scratch.write("trace", "ContextTokens," + kAzure);
  CHECK_THROWS_WITH(open_trace({path, TraceFormat::kAzure, 512}),
                    path + ":1: expected each column once, found \"ContextTokens\" again");
}

}  // namespace
}  // namespace moebius
