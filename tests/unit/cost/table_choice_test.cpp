// Which table answers a question, and what tables say beyond their ends.
#include <cmath>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// At an end of its axes at least, among the tables of its stack.
TEST_CASE("no shipped table stands behind another one everywhere") {
  for (const char* id : {"h100-sxm", "b200-sxm", "l40s", "rtx-pro-6000", "h20-sxm", "h800-sxm"}) {
    const Profile profile = find_profiles(Catalog().accelerator(id), "").front();
    const AnalyticModel model(profile.reference);
    for (const ProfileTable& table : profile.tables) {
      Profile alone = profile;
      alone.tables = {table};
      const MeasuredTables own({alone}, table.stack), all({profile}, table.stack);
      const OpKind kind = *kind_of(table.kinds.front());
      std::vector<double> first, last;
      for (const ProfileAxis& axis : table.axes)
        first.push_back(axis.points.front()), last.push_back(axis.points.back());
      bool answers = false;
      for (const auto& site : table.sites)
        for (const std::vector<double>& at : {first, last}) {
          const CostQuery query = query_of(table, kind, shape_in(table, kind, site, at));
          const auto a = own.cost(model, query, Clocks::kBurst), b = all.cost(model, query, Clocks::kBurst);
          answers = answers || (a && b && std::abs(a->seconds / b->seconds - 1) < 1e-6);
        }
      CAPTURE(id, table.name, table.stack);
      CHECK(answers);
    }
  }
}

TEST_CASE("chunks of a long prompt take little longer together than the prompt at once") {
  for (const char* id : {"h100-sxm", "b200-sxm"}) {
    const Accelerator chip = Catalog().accelerator(id);
    const auto source = make_cost_source(chip, "", "trtllm-1.3.0rc20");
    const auto seconds = [&](std::int64_t queries, std::int64_t keys) {
      Shape shape;
      shape.m = queries, shape.groups = 1, shape.heads = 64, shape.kv_heads = 8;
      shape.head_dim = shape.v_dim = 128;
      shape.kv = keys;
      CostQuery query;
      query.kind = OpKind::kAttention, query.shape = shape, query.cores = chip.cores;
      return source->cost(query).seconds;
    };
    double chunks = 0;
    for (std::int64_t keys = 2048; keys <= 16384; keys += 2048) chunks += seconds(2048, keys);
    CHECK(chunks < 1.25 * seconds(16384, 16384));
  }
}

TEST_CASE("a table that begins at larger sizes gives way to one that has the size") {
  const Accelerator chip = Catalog().accelerator("h20-sxm");
  CostQuery query;
  query.kind = OpKind::kGroupedGemm, query.dtype = DType::kFp8, query.cores = chip.cores;
  query.shape.m = 1024, query.shape.n = 1536, query.shape.k = 2048, query.shape.groups = 128;
  // 8 rows an expert: 234.5 us measured.
  CHECK(make_cost_source(chip)->cost(query).seconds == Approx(234.5e-6).epsilon(0.1));
}

TEST_CASE("one more row beyond a table of one point is not faster") {
  const Accelerator chip = Catalog().accelerator("h800-sxm");
  const auto source = make_cost_source(chip);
  const auto seconds = [&](std::int64_t m) {
    CostQuery query;
    query.kind = OpKind::kGemm, query.cores = chip.cores;
    query.shape.m = m, query.shape.n = 256, query.shape.k = 7168;
    return source->cost(query).seconds;
  };
  CHECK(seconds(8193) >= seconds(8192));
}

TEST_CASE("beyond a table's last keys more of them are not faster") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  const auto source = make_cost_source(chip);
  double before = 0;
  for (const std::int64_t keys : {131072, 524288, 1048576, 2205736, 2205737, 4194304}) {
    CostQuery query;
    query.kind = OpKind::kAttention, query.cores = chip.cores;
    query.shape.m = query.shape.groups = query.shape.kv_heads = 1;
    query.shape.heads = 128, query.shape.head_dim = 576, query.shape.v_dim = 512;
    query.shape.kv = keys;
    const double seconds = source->cost(query).seconds;
    CHECK(seconds > before);
    before = seconds;
  }
}

}  // namespace
}  // namespace moebius
