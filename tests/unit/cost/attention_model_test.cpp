// What must hold of attention's times whatever the constants are: batches of uneven sequences, caches,
// windows and growing work, by the model alone and through measured tables.
#include <algorithm>
#include <numeric>

#include "hw/catalog.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

constexpr const char* kChips[] = {"a100-sxm", "h100-sxm",    "b200-sxm", "l40s",
                                  "arc-b60",  "kunlun-p800", "mi300x"};

Accelerator chip(const std::string& name) {
  return Catalog().accelerator(name);
}

// Decode of `batch` sequences of `kv` keys: 32 query heads over 8 KV heads of 128.
CostQuery decode(const Accelerator& accelerator, int batch, std::int64_t kv) {
  const Shape shape{
      .m = batch, .groups = batch, .heads = 32, .kv_heads = 8, .head_dim = 128, .v_dim = 128, .kv = kv};
  return {.kind = OpKind::kAttention, .shape = shape, .dtype = DType::kBf16, .cores = accelerator.cores};
}

CostQuery prefill(const Accelerator& accelerator, int batch, std::int64_t length) {
  CostQuery query = decode(accelerator, batch, length);
  query.shape.m = batch * length;
  return query;
}

// DeepSeek-V3's absorbed decode: all heads over one latent row of 576.
CostQuery latent(const Accelerator& accelerator, int batch, std::int64_t kv) {
  CostQuery query = decode(accelerator, batch, kv);
  query.shape.heads = 128;
  query.shape.kv_heads = 1;
  query.shape.head_dim = 576;
  query.shape.v_dim = 512;
  return query;
}

double seconds(const AnalyticModel& model, const CostQuery& query) {
  return model.estimate(query, Clocks::kBurst).seconds;
}

using Keys = std::vector<std::int32_t>;

CostQuery uneven(const Accelerator& accelerator, const Keys& keys) {
  CostQuery query = decode(accelerator, static_cast<int>(keys.size()), 1);
  query.rows = keys;
  return query;
}

std::int64_t mean(const Keys& keys) {
  return std::accumulate(keys.begin(), keys.end(), std::int64_t{0}) / static_cast<std::int64_t>(keys.size());
}

TEST_CASE("a batch of equal sequences stated one by one costs what the even batch costs, exactly") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const auto source = make_cost_source(accelerator);
    for (const int batch : {1, 7, 64, 256})
      for (const std::int32_t kv : {5, 640, 4096, 100001}) {
        const Keys keys(static_cast<std::size_t>(batch), kv);
        INFO(name << " batch " << batch << " keys " << kv);
        const Cost even = source->cost(decode(accelerator, batch, kv)),
                   told = source->cost(uneven(accelerator, keys));
        REQUIRE(told.seconds == even.seconds);
        REQUIRE(told.memory_bytes == even.memory_bytes);
      }
  }
}

TEST_CASE(
    "one long sequence among short ones costs more than the same keys evenly, no less than it costs alone") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const AnalyticModel model(accelerator);
    for (const std::int32_t length : {8192, 32768, 131072}) {
      Keys keys(63, 256);
      keys.push_back(length);
      INFO(name << " long " << length);
      const double mixed = seconds(model, uneven(accelerator, keys));
      CHECK(mixed >= seconds(model, decode(accelerator, 64, mean(keys))));
      CHECK(mixed >= seconds(model, decode(accelerator, 1, length)));
    }
  }
  // 512 pairs of a sequence and a KV head are four to a core of H100, uncut; with the long sequence's eight
  // heads on eight cores the others wait for them.
  const Accelerator h100 = chip("h100-sxm");
  const AnalyticModel model(h100);
  Keys keys(63, 256);
  keys.push_back(131072);
  CHECK(seconds(model, uneven(h100, keys)) > 1.05 * seconds(model, decode(h100, 64, mean(keys))));
}

TEST_CASE("tables tell an uneven batch by the even one of as many keys") {
  const Accelerator h100 = chip("h100-sxm");
  const auto source = make_cost_source(h100);
  Keys keys(127, 512);
  keys.push_back(65536);
  const Cost even = source->cost(decode(h100, 128, mean(keys))), mixed = source->cost(uneven(h100, keys));
  CHECK(even.origin == Origin::kInterpolated);
  CHECK(mixed.origin == Origin::kInterpolated);
  CHECK(mixed.seconds >= even.seconds);
  CHECK(mixed.seconds >= source->cost(decode(h100, 1, 65536)).seconds);
  CHECK(mixed.seconds >= roofline(h100, uneven(h100, keys)).seconds());
}

TEST_CASE("the order of a batch's sequences does not matter") {
  const Accelerator h100 = chip("h100-sxm");
  const auto source = make_cost_source(h100);
  Keys keys = {17, 4096, 100, 32768, 1, 900, 900, 12345};
  std::sort(keys.begin(), keys.end());
  const Cost first = source->cost(uneven(h100, keys));
  do {
    const Cost other = source->cost(uneven(h100, keys));
    REQUIRE(other.seconds == Approx(first.seconds).epsilon(1e-12));
    REQUIRE(other.memory_bytes == Approx(first.memory_bytes).epsilon(1e-12));
  } while (std::next_permutation(keys.begin(), keys.begin() + 5));
}

TEST_CASE("the bytes of an uneven batch are those of its sequences") {
  const Accelerator h100 = chip("h100-sxm");
  const Keys keys = {100, 5000, 77};
  double sum = 0;
  for (const std::int32_t kv : keys) sum += least_bytes(decode(h100, 1, kv));
  CHECK(least_bytes(uneven(h100, keys)) == Approx(sum));
}

TEST_CASE("a cache found in L2 is read faster, one in memory never faster than the memory gives it") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const AnalyticModel model(accelerator);
    for (const int batch : {1, 8, 64})
      for (const std::int64_t kv : {512, 2048, 8192}) {
        CostQuery query = decode(accelerator, batch, kv);
        const double cold = seconds(model, query);
        const double memory = least_bytes(query) / accelerator.memory_rate.value;
        query.hot = true;
        INFO(name << " batch " << batch << " keys " << kv);
        REQUIRE(cold >= memory);
        REQUIRE(seconds(model, query) <= cold);
        REQUIRE(is_found_in_l2(accelerator, query) == (roofline(accelerator, query).memory == 0));
      }
  }
  // L40S, 96 MiB of L2: 4 sequences of 4096 keys x 8 heads x 256 x 2 B are 64 MiB, 32 of them 512 MiB.
  const Accelerator l40s = chip("l40s");
  CostQuery fits = decode(l40s, 4, 4096), does_not = decode(l40s, 32, 4096);
  fits.hot = does_not.hot = true;
  CHECK(is_found_in_l2(l40s, fits));
  CHECK_FALSE(is_found_in_l2(l40s, does_not));
}

TEST_CASE("a window never costs more than all keys") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const AnalyticModel model(accelerator);
    for (const std::int64_t length : {1, 64, 129, 200, 256, 1000, 4096, 30000})
      for (const int window : {1, 64, 128, 129, 4096})
        for (const int batch : {1, 16, 200}) {
          for (CostQuery query : {decode(accelerator, batch, length), prefill(accelerator, batch, length)}) {
            const double full = seconds(model, query);
            query.shape.window = window;
            INFO(name << " length " << length << " window " << window << " batch " << batch);
            REQUIRE(seconds(model, query) <= full * (1 + 1e-12));
          }
        }
  }
}

// H100 has tables of attention to all keys and, with a window, of 128 keys alone.
TEST_CASE("a window that no sequence exceeds is none, and a smaller one costs no more than a larger") {
  const Accelerator h100 = chip("h100-sxm");
  const auto costs = make_cost_source(h100);
  for (const std::int64_t length : {200, 1024, 16384}) {
    CostQuery back = prefill(h100, 1, length);
    back.kind = OpKind::kAttentionGrad;
    for (CostQuery query : {decode(h100, 64, length), prefill(h100, 1, length), back}) {
      const double full = costs->cost(query).seconds;
      query.shape.window = static_cast<std::int32_t>(length);
      INFO(to_string(query.kind) << " of " << query.shape.m << " queries, " << length << " keys");
      CHECK(costs->cost(query).seconds == full);
      query.shape.window = 1 << 20;
      CHECK(costs->cost(query).seconds == full);
      double before = 0;
      for (std::int32_t window = 1; window < length; window += 1 + window / 4) {
        query.shape.window = window;
        const double now = costs->cost(query).seconds;
        INFO("window " << window);
        REQUIRE(now >= before * (1 - 1e-9));
        REQUIRE(now <= full * (1 + 1e-9));
        before = now;
      }
    }
  }
  const std::vector<std::int32_t> keys = {100, 2176, 700};
  CostQuery batch = decode(h100, 3, 0);
  batch.rows = keys;
  const double full = costs->cost(batch).seconds;
  batch.shape.window = 2176;
  CHECK(costs->cost(batch).seconds == full);
}

TEST_CASE("windows beside a measured one take about as long") {
  for (const char* name : {"l40s", "h100-sxm", "b200-sxm"}) {
    const Accelerator measured = chip(name);
    const auto costs = make_cost_source(measured);
    for (CostQuery query :
         {decode(measured, 1, 16384), decode(measured, 64, 16384), prefill(measured, 1, 4096)})
      for (const DType cache : {DType::kBf16, DType::kFp8}) {
        query.stored = cache;
        const auto seconds = [&](std::int32_t window) {
          query.shape.window = window;
          return costs->cost(query).seconds;
        };
        INFO(name << ", " << query.shape.m << " queries, cache " << to_string(cache));
        const double known = seconds(128);
        CHECK(seconds(127) > 0.9 * known);
        CHECK(seconds(127) <= known * (1 + 1e-9));
        CHECK(seconds(129) < 1.1 * known);
        CHECK(seconds(129) >= known * (1 - 1e-9));
      }
  }
}

// The steps that may lower a time: a tile of 128 rows that fills up replaces more, half empty ones (a few per
// cent), and more cores are filled by another number of parts.
constexpr double kStep = 0.94;

template <typename Grow>
void check_growth(const AnalyticModel& model, const char* what, CostQuery query, Grow grow,
                  std::int64_t most) {
  double before = 0;
  for (std::int64_t size = 1; size <= most; size += 1 + size / 5) {
    grow(query.shape, size);
    const double now = seconds(model, query);
    INFO(model.engine().chip.id << " " << what << " " << size);
    REQUIRE(now >= before * kStep);
    REQUIRE(now >= roofline(model.engine().chip, query).seconds());
    before = std::max(before, now);
  }
}

TEST_CASE("attention's time does not fall when keys, queries, heads or sequences grow") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const AnalyticModel model(accelerator);
    const auto keys = [](Shape& shape, std::int64_t size) { shape.kv = size; };
    const auto sequences = [](Shape& shape, std::int64_t size) {
      const std::int64_t queries = shape.m / shape.groups;
      shape.groups = static_cast<std::int32_t>(size);
      shape.m = size * queries;
    };
    const auto length = [](Shape& shape, std::int64_t size) { shape.m = shape.kv = size; };
    const auto heads = [](Shape& shape, std::int64_t size) {
      shape.kv_heads = static_cast<std::int32_t>(size);
      shape.heads = 4 * shape.kv_heads;
    };
    check_growth(model, "keys", decode(accelerator, 4, 1), keys, 1 << 20);
    check_growth(model, "keys of many", decode(accelerator, 300, 1), keys, 1 << 18);
    check_growth(model, "latent keys", latent(accelerator, 4, 1), keys, 1 << 20);
    check_growth(model, "sequences", decode(accelerator, 1, 3000), sequences, 4096);
    check_growth(model, "latent sequences", latent(accelerator, 1, 3000), sequences, 4096);
    check_growth(model, "prefilled sequences", prefill(accelerator, 1, 700), sequences, 512);
    check_growth(model, "length", prefill(accelerator, 1, 1), length, 1 << 17);
    check_growth(model, "heads", decode(accelerator, 16, 5000), heads, 32);
  }
}

TEST_CASE(
    "an FP8 cache is never slower than a BF16 one, and its half of the bytes shows where memory bounds") {
  for (const char* name : kChips) {
    const Accelerator accelerator = chip(name);
    const AnalyticModel model(accelerator);
    CostQuery query = decode(accelerator, 64, 16384);
    const double wide = seconds(model, query);
    query.stored = DType::kFp8;
    INFO(name);
    CHECK(seconds(model, query) <= wide);
  }
  const Accelerator h100 = chip("h100-sxm");
  const AnalyticModel model(h100);
  CostQuery query = decode(h100, 128, 16384);
  const double wide = seconds(model, query);
  query.stored = DType::kFp8;  // 33 of 64 bytes, its scales included
  CHECK(seconds(model, query) / wide == Approx(33.0 / 64.0).epsilon(0.1));
}

TEST_CASE("absorbed decode is bound by memory with few heads, by arithmetic with all of 128") {
  // H100: 2 x 128 x 1088 FLOP a key over 576 x 2 bytes are 242 FLOP a byte, the chip has 989/3.35 = 295, but
  // a third of it goes to exponentials and waiting. 16 heads in a tile of 64 rows are half of that.
  const Accelerator h100 = chip("h100-sxm");
  const AnalyticModel model(h100);
  CostQuery query = latent(h100, 128, 16384);
  const double all = seconds(model, query);
  CHECK(all > 1.15 * least_bytes(query) / model.engine().memory_rate);
  query.shape.heads = 16;
  CHECK(seconds(model, query) == Approx(least_bytes(query) / model.engine().memory_rate).epsilon(0.1));
  CHECK(seconds(model, query) < all);
}

// cuDNN without a mask, 16 heads of 128 over 16,384 tokens (Shah et al. 2024, figure 6): a causal sequence of
// n queries at the end of 1.5 n keys has as many pairs, n * n. No constant was fitted to these.
TEST_CASE("attention's reverse pass on H100 goes at the rate published of cuDNN's") {
  const Accelerator h100 = chip("h100-sxm");
  const AnalyticModel model(h100);
  constexpr std::int64_t kTokens = 16384;
  const struct {
    std::int64_t length;
    double tflops;
  } published[] = {{2048, 465}, {4096, 499}, {8192, 518}, {16384, 516}};
  for (const auto& [length, tflops] : published) {
    CostQuery query = decode(h100, static_cast<int>(kTokens / length), 3 * length / 2);
    query.kind = OpKind::kAttentionGrad;
    query.shape.m = kTokens;
    query.shape.heads = query.shape.kv_heads = 16;
    const double flops = 10.0 * static_cast<double>(kTokens * length) * 16 * 128;
    INFO(length);
    CHECK(flops / seconds(model, query) / 1e12 == Approx(tflops).epsilon(0.05));
  }
}

}  // namespace
}  // namespace moebius
