// Laws of attention with a few rows a sequence: it reads what as many sequences of one row read, and computes
// what as many rows apart do.
#include <algorithm>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/checked_rows.h"

namespace moebius {
namespace {

struct Heads {
  std::int32_t heads, kv_heads, head_dim, v_dim;
};
constexpr Heads kLatent{128, 1, 576, 512}, kFewLatent{16, 1, 576, 512}, kGrouped{32, 8, 128, 128},
    kOfOneKey{8, 1, 128, 128};

CostQuery rows_of(const Heads& of, std::int32_t sequences, std::int32_t rows, std::int32_t keys,
                  DType stored) {
  return {.kind = OpKind::kPagedAttention,
          .shape = {.m = std::int64_t{sequences} * rows,
                    .groups = sequences,
                    .heads = of.heads,
                    .kv_heads = of.kv_heads,
                    .head_dim = of.head_dim,
                    .v_dim = of.v_dim,
                    .kv = keys},
          .stored = stored};
}

// `vain`: keys that the model's tiles of several rows pass over beside those that they see. `tiles`: how much
// other tiles of theirs may save.
void check_between(const CostSource& source, int cores, const std::string& name, double vain = 0,
                   double tiles = 1e-9) {
  for (const Heads& of : {kLatent, kFewLatent, kGrouped, kOfOneKey})
    for (const DType stored : {DType::kBf16, DType::kFp8})
      for (const std::int32_t sequences : {1, 16, 128})
        for (const std::int32_t rows : {2, 4, 17})
          for (const std::int32_t keys : {512, 4096, 30000}) {
            CostQuery together = rows_of(of, sequences, rows, keys, stored);
            CostQuery one = rows_of(of, sequences, 1, keys, stored);
            CostQuery apart = rows_of(of, sequences * rows, 1, keys, stored);
            together.cores = one.cores = apart.cores = cores;
            INFO(name << " heads " << of.heads << " of " << of.kv_heads << " " << to_string(stored) << " "
                      << sequences << " x " << rows << " over " << keys);
            const double most = source.cost(apart).seconds, took = source.cost(together).seconds;
            CHECK(took <= most * (1 + vain / keys));
            CHECK(took >= std::min(most, source.cost(one).seconds) * (1 - tiles));
          }
}

TEST_CASE("rows of a sequence take no longer than apart and no less than one of them, on every stack") {
  for (const char* id : {"h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm", "l40s", "rtx-pro-6000"}) {
    const Accelerator chip = Catalog().accelerator(id);
    check_between(*make_cost_source(chip), chip.cores, id);
  }
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  for (const char* stack : {"sglang-0.5.14", "trtllm-1.3.0rc20"})
    check_between(*make_cost_source(chip, "", stack), chip.cores, stack);
}

TEST_CASE("the model alone holds rows of a sequence between one of them and all apart") {
  for (const char* id : {"h200-sxm", "b200-sxm", "ascend-910b1", "mi300x"}) {
    const Accelerator chip = Catalog().accelerator(id);
    check_between(*make_cost_source(chip, std::vector<Profile>{}), chip.cores, id, 64, 0.01);
  }
}

// Eight rows and more of one head of keys are more heads than tables were measured with; those of prompts are
// known.
TEST_CASE("rows that are checked take no longer than more rows of prompts do") {
  for (const char* id : {"h100-sxm", "h200-sxm", "b200-sxm"}) {
    const Accelerator chip = Catalog().accelerator(id);
    const auto source = make_cost_source(chip);
    for (const Heads& of : {kGrouped, kOfOneKey})
      for (const DType stored : {DType::kBf16, DType::kFp8}) {
        const auto seconds = [&](std::int32_t rows) {
          CostQuery query = rows_of(of, 32, rows, 65536, stored);
          query.cores = chip.cores;
          return source->cost(query).seconds;
        };
        const double one = seconds(1), prompt = seconds(kMostCheckedRows + 1);
        for (const std::int32_t rows : {2, 4, 8, 16, 17}) {
          INFO(id << " heads " << of.heads << " of " << of.kv_heads << " " << to_string(stored) << ", "
                  << rows << " rows");
          CHECK(seconds(rows) <= 1.03 * std::max(one, prompt));
        }
      }
  }
}

TEST_CASE("checking guesses of DeepSeek-V3 costs what as many rows of sequences do where products bind") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  const auto source = make_cost_source(chip, "", "sglang-0.5.14");
  const auto seconds = [&](std::int32_t sequences, std::int32_t rows) {
    CostQuery query = rows_of(kLatent, sequences, rows, 4096, DType::kBf16);
    query.cores = chip.cores;
    return source->cost(query).seconds;
  };
  CHECK(seconds(128, 2) == Approx(seconds(256, 1)).epsilon(0.03));
  CHECK(seconds(64, 4) == Approx(seconds(256, 1)).epsilon(0.06));
}

// The heads of a rank with tp 8, four rows of them: what 64 heads take was measured.
TEST_CASE("rows are told by a table of as many heads, where sequences differ in their keys, too") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  const auto source = make_cost_source(chip, "", "sglang-0.5.14");
  CostQuery rows = rows_of(kFewLatent, 64, 4, 4096, DType::kBf16), heads = rows;
  rows.cores = heads.cores = chip.cores;
  heads.shape.m = 64, heads.shape.heads = 64;
  CHECK(source->cost(rows).seconds == source->cost(heads).seconds);
  std::vector<std::int32_t> keys(64, 2048);
  keys[0] = 4096;
  rows.rows = heads.rows = keys;
  CHECK(source->cost(rows).seconds == source->cost(heads).seconds);
}

}  // namespace
}  // namespace moebius
