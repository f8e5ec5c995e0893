// Latent attention from files of the database's form, and whole modules put together from its ops.
#include <algorithm>
#include <filesystem>

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "tests/process.h"
#include "tests/unit/calibration/stored_gzip.h"
#include "workloads/calibration/harvest.h"
#include "workloads/calibration/page/latent_module.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

void pack(const test::Scratch& scratch, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(scratch.path("kernels"));
  write_stored_gzip(scratch.path(name), text);
}

// 16 heads; every row as long as the bound of the chip and 20 us: nothing is impossible.
std::string core_rows(const std::string& backend, const std::string& cache, bool prefill) {
  std::string text;
  for (const int batch : {1, 4, 16, 64})
    for (const int length : {64, 256, 1024, 4096}) {
      const double pairs = batch * (prefill ? 0.5 * length * length : length) * 16.0;
      const double us = 20 + pairs * 2 * 1088 / 500e12 * 1e6 + batch * length * 1152 / 3e12 * 1e6;
      text += "h100_sxm," + backend + ",1,kernel,bfloat16," + cache + ",16," + std::to_string(batch) + "," +
              std::to_string(length) + "," + std::to_string(us) + "\n";
    }
  return text;
}

Profile latent_profile(const test::Scratch& scratch, const std::string& more_decode = "") {
  const std::string head = "system,backend,version,kernel,mla_dtype,kv_dtype,num_heads,batch,";
  pack(scratch, "kernels/mla_context.csv.gz",
       head + "seq_len,latency_us\n" + core_rows("trtllm", "bfloat16", true) +
           core_rows("sglang", "bfloat16", true) + "h100_sxm,trtllm,1,kernel,bfloat16,bfloat16,16,1,1,15\n");
  pack(scratch, "kernels/mla_generation.csv.gz",
       head + "kv_len,latency_us\n" + core_rows("trtllm", "bfloat16", false) +
           core_rows("trtllm", "fp8", false) + more_decode);
  std::string products = "system,backend,version,kernel,op,dtype,num_heads,num_tokens,latency_us\n";
  for (const char* op : {"mla_gen_pre", "mla_gen_post"})
    for (int tokens = 1; tokens <= 4096; tokens *= 2)
      products += std::string("h100_sxm,trtllm,1,kernel,") + op + ",bfloat16,16," + std::to_string(tokens) +
                  "," + std::to_string(5 + 0.02 * tokens) + "\n";
  pack(scratch, "kernels/mla_bmm.csv.gz", products);
  static const Accelerator chip = Catalog().accelerator("h100-sxm");
  Harvest harvest{.chip = chip, .directory = scratch.path("."), .profile = {}};
  harvest.profile.accelerator = chip.id;
  harvest.profile.reference = chip;
  read_latent_kernels(harvest, "h100_sxm");
  return harvest.profile;
}

const ProfileTable& table_named(const Profile& profile, const std::string& name,
                                std::optional<DType> stored = {}) {
  const auto found =
      std::find_if(profile.tables.begin(), profile.tables.end(),
                   [&](const ProfileTable& table) { return table.name == name && table.stored == stored; });
  REQUIRE(found != profile.tables.end());
  return *found;
}

int rejected(const ProfileTable& table, const std::string& reason) {
  int rows = 0;
  for (const RejectedRows& row : table.rejected)
    if (row.reason.find(reason) != std::string::npos) rows += row.rows;
  return rows;
}

TEST_CASE(
    "latent attention is told by what its kernels do: each head its keys, or all heads the latent rows") {
  const test::Scratch scratch;
  const Profile profile = latent_profile(scratch);
  const ProfileTable &naive = table_named(profile, "latent attention, prefill"),
                     &absorbed = table_named(profile, "latent attention, prefill absorbed"),
                     &decode = table_named(profile, "latent attention, decode");
  CHECK(naive.stack == "trtllm-1");
  CHECK(naive.sites == std::vector<std::vector<double>>{{16, 16}});
  CHECK(absorbed.stack == "sglang-1");  // on Hopper
  CHECK(absorbed.sites == std::vector<std::vector<double>>{{16, 1}});
  CHECK(decode.sites == std::vector<std::vector<double>>{{16, 1}});
  CHECK(rejected(naive, "prefill of one token") == 1);
  const Shape shape = shape_in(decode, OpKind::kAttention, decode.sites[0], std::vector<double>{4, 1024});
  CHECK(shape.head_dim == 576);
  CHECK(shape.v_dim == 512);
  CHECK(shape.m == 4);
  CHECK(shape.kv == 1024);
  CHECK(table_named(profile, "latent attention, decode", DType::kFp8).dtype == DType::kBf16);
}

TEST_CASE("rows that L2 served are kept, rows that neither L2 nor memory can serve are not") {
  const test::Scratch scratch;
  // 16 x 2048 keys of 1152 bytes are 38 MB, which H100's 50 MiB hold: 11.3 us at the memory's full rate, 8 us
  // here. 256 x 4096 keys are 1.2 GB: 361 us at the full rate.
  const Profile profile = latent_profile(scratch,
                                         "h100_sxm,trtllm,1,kernel,bfloat16,bfloat16,16,16,2048,8\n"
                                         "h100_sxm,trtllm,1,kernel,bfloat16,bfloat16,16,256,4096,200\n");
  const ProfileTable& decode = table_named(profile, "latent attention, decode");
  CHECK(decode.hot);
  CHECK(rejected(decode, "faster than the device memory's full rate") == 1);
}

TEST_CASE("a cache in memory is never told to be read faster than the memory gives it") {
  const test::Scratch scratch;
  const Profile profile =
      latent_profile(scratch, "h100_sxm,trtllm,1,kernel,bfloat16,bfloat16,16,16,2048,8\n");
  const MeasuredTables tables({profile});
  const AnalyticModel model(Catalog().accelerator("h100-sxm"));
  const Shape shape{
      .m = 16, .groups = 16, .heads = 16, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 2048};
  const CostQuery query{.kind = OpKind::kAttention, .shape = shape, .dtype = DType::kBf16, .cores = 132};
  const auto cost = tables.cost(model, query, Clocks::kBurst);
  REQUIRE(cost);
  CHECK(cost->seconds >= least_bytes(query) / Catalog().accelerator("h100-sxm").memory_rate.value);
}

TEST_CASE("batched products answer for products by heads, short reductions and long, never for an expert's") {
  const test::Scratch scratch;
  const Profile profile = latent_profile(scratch);
  const MeasuredTables tables({profile});
  const AnalyticModel model(Catalog().accelerator("h100-sxm"));
  const auto answer = [&](std::int64_t n, std::int64_t k, bool by_heads) {
    CostQuery query{.kind = OpKind::kGroupedGemm,
                    .shape = {.m = 16 * 1024, .n = n, .k = k, .groups = 16},
                    .dtype = DType::kBf16,
                    .cores = 132};
    query.shape.heads = by_heads ? 16 : 0;
    return tables.cost(model, query, Clocks::kBurst);
  };
  // What the made-up rows say of 1,024 tokens: 5 + 0.02 x 1024 us.
  for (const auto& [n, k] : {std::pair{512, 128}, {128, 512}}) {
    REQUIRE(answer(n, k, true));
    CHECK(answer(n, k, true)->seconds == Approx(25.48e-6).epsilon(0.02));
    CHECK_FALSE(answer(n, k, false));
  }
  CHECK(answer(2048, 96, true));          // scores of attention in kernels of its own
  CHECK(answer(96, 2048, true));          // and their product with the values
  CHECK_FALSE(answer(8192, 7168, true));  // too far from both
}

TEST_CASE("a module's ops have DeepSeek-V3's 187 million weights, absorbed or not") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  for (const std::int64_t queries : {1, 512}) {
    const auto ops = ops_of({.queries = queries, .keys = 512}, chip);
    std::int64_t weights = 0;
    for (const CostQuery& op : ops)
      if (op.kind == OpKind::kGemm || op.kind == OpKind::kGroupedGemm)
        weights += op.shape.n * op.shape.k * std::max(1, op.shape.groups);
    // 7168 x 2112 + 1536 x 24576 + 512 x 32768 + 16384 x 7168
    CHECK(weights == 187105280);
  }
}

TEST_CASE("a module's attention is absorbed in decode alone, and hot when the weights leave it room in L2") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  const auto attention = [&](const LatentModule& module) {
    const auto ops = ops_of(module, chip);
    return *std::find_if(ops.begin(), ops.end(),
                         [](const CostQuery& op) { return op.kind == OpKind::kAttention; });
  };
  CHECK(attention({.queries = 1, .keys = 4096}).shape.head_dim == 576);
  CHECK(attention({.queries = 64, .keys = 64}).shape.head_dim == 192);
  CHECK(attention({.heads = 1, .keys = 4096}).hot);          // 7168 x 2112 weights are 30 MB of 50 MiB
  CHECK_FALSE(attention({.heads = 128, .keys = 4096}).hot);  // 374 MB
  CHECK(attention({.heads = 1, .keys = 64, .cache = DType::kFp8}).stored == DType::kFp8);
}

TEST_CASE("modules are listed by chip, stack and phase, with the error of the sum of their ops") {
  const test::Scratch scratch;
  const Profile profile = latent_profile(scratch);
  const AnalyticModel model(Catalog().accelerator("h100-sxm"));
  const MeasuredTables tables({profile});
  std::string text =
      "system,backend,version,kernel,mla_dtype,kv_dtype,gemm_dtype,num_heads,batch,kv_len,prefix_len,latency_"
      "us\n";
  for (int batch = 1; batch <= 64; ++batch) {
    double us = 0;
    for (const CostQuery& op :
         ops_of({.heads = 16, .sequences = batch, .keys = 1025}, Catalog().accelerator("h100-sxm"))) {
      const auto cost = tables.cost(model, op, Clocks::kBurst);
      us += 1e6 * (cost ? cost->seconds : model.estimate(op, Clocks::kBurst).seconds);
    }
    // The module takes a quarter longer than its ops: each row is told 20% too fast.
    text += "h100_sxm,trtllm,1,default,bfloat16,bfloat16,bfloat16,16," + std::to_string(batch) + ",1025,0," +
            std::to_string(1.25 * us) + "\n";
  }
  pack(scratch, "kernels/mla_module_generation.csv.gz", text);
  const std::string table = composition_table(scratch.path("."), {profile});
  CHECK(table.find("| h100-sxm | trtllm-1 | decode | ") != std::string::npos);
  CHECK(table.find(" | 20.0 | 20.0 | -20.0 |\n") != std::string::npos);
  CHECK(composition_table("/nowhere", {profile}).empty());
}

}  // namespace
}  // namespace moebius
