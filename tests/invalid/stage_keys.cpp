// Keys that say who takes which part of a training step and how it is read: what they refuse.
#include "tests/invalid/refusals.h"

namespace moebius {
namespace {

// FP8, zero 1, 16 pipeline ranks, expert groups of 64 replicas.
const char* const kMixed = "baige/mixed-chips-100-gpu.json";  // 4 replicas, 512 microbatches

}  // namespace

TEST_CASE("microbatches of replicas are words or as many numbers as there are replicas") {
  check(
      kMixed,
      {{"/plan/dp/microbatches", "some",
        R"(/plan/dp/microbatches: expected "equal", "auto" or the microbatches of each replica, found "some")"},
       {"/plan/dp/microbatches", "[0, 512]",
        "/plan/dp/microbatches: expected at least 1 microbatch on replica 0, found 0"},
       {"/plan/dp/microbatches", "[256, 256]",
        "/plan/dp/microbatches: microbatches of 2 replicas, but there are 4"},
       {"/plan/dp/microbatches", "[100, 100, 100, 100]",
        "/plan/dp/microbatches: 400 microbatches in all, but a step has 512"}});
  CHECK(refusal(kMixed, {{"/plan/dp/microbatches", "[100, 156, 128, 128]"}}) == "");
  CHECK(refusal(kMixed, {{"/plan/dp/microbatches", "auto"}}) == "");
}

TEST_CASE("unequal numbers of microbatches say what they need of the plan") {
  CHECK_THAT(refusal(kMixed, {{"/plan/dp/microbatches", "auto"}, {"/plan/dp/zero", "2"}}),
             Catch::Contains("zero 2 and 3 sum gradients over all replicas in every microbatch"));
  CHECK_THAT(refusal(kTraining, {{"/plan/dp/microbatches", "auto"}}),
             Catch::Contains("take microbatches in rounds of all ranks: unequal numbers need another"));
}

TEST_CASE("sharded gradients are refused where the replicas of a stage run different microbatches") {
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "dualpipe"}, {"/plan/dp/zero", "2"}}),
             Catch::Contains("the two ranks that hold a stage of \"dualpipe\" run different ones"));
}

TEST_CASE("reading a batch takes time by something") {
  check(
      kMixed,
      {{"/workload/input", R"({"prefetch": 1})",
        "/workload/input: expected a storage_rate or seconds_per_batch that reading takes time by, found "
        "neither"},
       {"/workload/input", R"({"storage_rate": "fast"})",
        R"(/workload/input/storage_rate: expected "unlimited" or a byte rate such as "400 Gb/s", found "fast")"}});
}

// Two batches are read ahead of the one in use: more workers than three have nowhere to put theirs.
TEST_CASE("no more batches are prepared at once than are read ahead") {
  static const Catalog catalog;
  static const ModelCatalog models;
  const auto workers = [](const std::string& prefetch, const std::string& given) {
    Document document = base(kMixed);
    set_at_pointer(
        document, "/workload/input",
        R"({"seconds_per_batch": "8 ms", "prefetch": )" + prefetch + R"(, "workers": )" + given + "}");
    return read_scenario(document, catalog, models).cluster->loader->workers;
  };
  CHECK(workers("2", "8") == 3);
  CHECK(workers("2", "2") == 2);
  CHECK(workers("0", "4") == 1);
}

}  // namespace moebius
