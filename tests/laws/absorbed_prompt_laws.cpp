// What prompts over latents take by heads and by absorbed maps, whatever decides between the two.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/laws/timed_iterations.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Scenario latents_of(const Library& library, std::string_view prefill) {
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "latents", "seed": 1, "model": "deepseek-v2-lite",
        "cluster": {{"pools": [{{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}}],
                    "fabric": {{"type": "rail-optimised-clos", "nic": "400 Gb/s"}}}},
        "plan": {{"framework": "sglang", "decode": {{"attention": {{"dp": 1, "tp": 1}}}}, "prefill": {}}},
        "workload": {{"trace": {{"generator": "conversation", "requests": 30, "rate": 20}}}}}})",
      prefill);
  return read_scenario(parse_document(text, "latents"), library.hardware, library.models);
}

StepPoint prompts(std::int64_t tokens, std::int64_t keys, bool absorbed) {
  return {.prefill_tokens = tokens, .prefill_keys = keys, .absorbed = absorbed};
}

}  // namespace

// 8,192 tokens behind 4,096: each sees 8,192 on average. By heads a pair takes 192 + 128 columns, absorbed
// 576 + 512, and nothing else of the iteration grows so.
TEST_CASE("prompts that absorb their maps take longer, and by so much in every plan") {
  const Library library("");
  TimedIterations sglang(latents_of(library, "{}"));
  TimedIterations by_heads(latents_of(library, R"({"absorbed_below": 1})"));
  TimedIterations always(latents_of(library, R"({"absorbed_below": 16777216})"));
  const double heads = sglang.seconds(prompts(8192, 8192, false)),
               absorbed = sglang.seconds(prompts(8192, 8192, true));
  CHECK(absorbed > 1.2 * heads);
  CHECK(absorbed < 3.4 * heads);
  CHECK(by_heads.seconds(prompts(8192, 8192, false)) == heads);
  CHECK(always.seconds(prompts(8192, 8192, true)) == absorbed);
  // One that is not cut at all does the same by absorbed maps, if it is told so.
  CHECK(sglang.seconds(prompts(4096, 256, true)) != sglang.seconds(prompts(4096, 256, false)));
}

}  // namespace moebius
