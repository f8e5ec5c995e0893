// Keys of one phase alone and of two half batches, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kPrefill = "validate/serving-deepseek-profile/prefill.json";
const char* const kDecode = "validate/serving-deepseek-profile/decode.json";

}  // namespace

TEST_CASE("two half batches need tokens that travel and a dispatch that says which cores it holds") {
  check(kApart, "/plan/decode/two_batch_overlap", "true",
        "/plan/decode: two_batch_overlap needs to know which cores its exchanges hold; expected ep/dispatch "
        "\"deepep\", \"deepep-low-latency\", \"all-to-all\" or \"all-gather\", found \"auto\"");
  check(kApart, "/plan/prefill/two_batch_overlap", "true",
        "/plan/prefill: two_batch_overlap hides the way of tokens to experts on other ranks; expected "
        "an ep degree above attention tp, found tp 1 and ep 1");
  check(kDecode, "/plan/decode/ep/communication_sms", "24",
        "/plan/decode: ep/communication_sms 24 for a dispatch that holds no cores while tokens travel; "
        "expected "
        "dispatch \"deepep\"");
  check(kPrefill, "/plan/prefill/two_batch_overlap", "1", "expected true or false, found 1");
}

TEST_CASE("a phase alone is one of two, on a pool that is not shared") {
  check(kApart, "/plan/phase", "prefill",
        "/plan/decode: prefill and decode are apart, but /plan/phase names one of them: expected \"both\"");
  check(kPrefill, "/plan/phase", "encode",
        "/plan/phase: expected one of \"both\", \"prefill\", \"decode\", found \"encode\" (did you mean "
        "\"decode\"?)");
}
