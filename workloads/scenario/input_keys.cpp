#include "workloads/scenario/input_keys.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

ByteRate read_storage_rate(Section& section) {
  const std::string text =
      section.text("storage_rate", "unlimited",
                   "bytes a second that each reading rank gets from storage (first and last stage)");
  if (text == "unlimited") return {};
  const auto rate = parse_quantity(text, Dimension::kByteRate);
  if (!rate || *rate <= 0)
    section.place_of("storage_rate")
        .fail(
            fmt::format("expected \"unlimited\" or {}, found \"{}\"", describe(Dimension::kByteRate), text));
  return {*rate};
}

}  // namespace

void read_input(Section& workload, Scenario& scenario) {
  const bool given = workload.given("input");
  Section section = workload.object("input", false, "how batches are read; absent: they are there");
  Loader loader;
  loader.token_bytes =
      section.number("bytes_per_token", {0, 1e9}, 4, "of a token as it is stored: 4 for its number");
  loader.storage = read_storage_rate(section);
  loader.batch_seconds =
      section.time("seconds_per_batch", Time{}, "of one worker, to decode and pack a microbatch").seconds();
  loader.workers = static_cast<int>(
      section.integer("workers", {1, 1 << 20}, 1, "of each reading rank, on its host, side by side"));
  const auto prefetch = static_cast<int>(
      section.integer("prefetch", {0, 1 << 10}, 2, "microbatches that are read ahead while one is in use"));
  section.finish();
  if (!given || !scenario.cluster) return;
  if (loader.seconds(1) <= 0)
    workload.place_of("input").fail(
        "expected a storage_rate or seconds_per_batch that reading takes time by, found neither");
  scenario.training.input_ahead = prefetch + 1;
  loader.workers = std::min(loader.workers, scenario.training.input_ahead);
  scenario.cluster->loader = loader;
}

}  // namespace moebius
