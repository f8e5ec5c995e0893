// Ranks are asked to stand where they cannot.
#include "tests/invalid/refusals.h"

namespace moebius {

namespace {

const char* kMoe64 = "smoke/moe-64-h800.json";  // 64 ranks on 64 devices

}  // namespace

TEST_CASE("devices of a placement are runs of devices that there are and enough of them") {
  check(
      kMoe64,
      {
          {"/plan/placement/order", "volumes",
           R"(/plan/placement/order: expected one of "naive", "volume", found "volumes" (did you mean "volume"?))"},
          {"/plan/placement/devices", "0-64",
           R"(/plan/placement/devices: expected runs of devices from 0 to 63, as "0-7, 16-23", found "0-64")"},
          {"/plan/placement/devices", "0-7;9",
           R"(/plan/placement/devices: expected runs of devices from 0 to 63, as "0-7, 16-23", found "0-7;9")"},
          {"/plan/placement/devices", "0-62, 5", R"(/plan/placement/devices: a device is named twice)"},
      });
  // Without a degree of replicas there are as many as the devices named have room for.
  CHECK(
      refusal(kMoe64, {{"/plan/placement/devices", "0-31"}, {"/plan/dp/degree", "32"}}) ==
      "s.json: --set /plan/dp/degree: tp 1 x cp 1 x pp 2 x dp 32 = 64 ranks do not fit on the 32 devices of "
      "/plan/placement/devices");
}

TEST_CASE("each rank of a placement has a device of its own") {
  check(kMoe64, {
                    {"/plan/placement/ranks", "0-31",
                     R"(/plan/placement/ranks: devices of 32 ranks, but there are 64)"},
                    {"/plan/placement/ranks", "0-31, 31-0",
                     R"(/plan/placement/ranks: two ranks stand on one device)"},
                });
  CHECK(
      refusal(kMoe64, {{"/plan/placement/ranks", "63-0"}, {"/plan/placement/order", "volume"}}) ==
      "s.json: --set /plan/placement/order: \"ranks\" says where each rank stands: expected order \"naive\", "
      "found \"volume\"");
}

}  // namespace moebius
