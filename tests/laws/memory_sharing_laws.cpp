// Device memory is shared by ops that compute and by kernels that copy tokens between ranks.
#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"
#include "workloads/cost/exchange_model.h"

using namespace moebius;

namespace {

constexpr int kNodeRanks = 8, kCopiedTokens = 1000;
constexpr double kCopiedRow = 10e3, kMemoryRate = 1e12;

// Every token goes to all eight experts, one on each rank of the node: to be read once, and eight times into
// a buffer, out of it, and into its place.
constexpr double kCopied = kCopiedTokens * (1 + 3 * 8) * kCopiedRow;

Op dispatch() {
  Op op = communication_op(OpKind::kDispatch, kCopiedRow, Algorithm::kHierarchical, GroupRole::kExpert);
  op.lane = Lane::kExpertComm;
  op.route = 0;
  return op;
}

RoutePtr to_all() {
  RouteSpec spec;
  spec.ranks = spec.ranks_per_node = spec.experts = spec.active = kNodeRanks;
  spec.tokens = kCopiedTokens;
  return std::make_shared<const Route>(spec);
}

WorldRun run(std::vector<OpWith> ops, KindCost gemm) {
  const Cluster cluster = make_cluster({.memory_rate = kMemoryRate});
  const Layout layout = make_layout({.ranks = kNodeRanks, .expert = kNodeRanks, .fold = true});
  const FragmentPtr fragment = make_fragment(std::move(ops), {to_all()});
  return simulate({cluster, layout, on_all_classes(layout, fragment), {{OpKind::kGemm, gemm}}, {}});
}

double seconds_of(const Span& span) {
  return (span.end - span.start).seconds();
}

}  // namespace

// Both slow down in proportion while the copying lasts; the op has lost the time of the bytes copied when it
// ends.
TEST_CASE("an op bound by memory loses to a dispatch beside it the time of the bytes that this copies") {
  const KindCost bound{20e-3, 20e-3 * kMemoryRate};
  const WorldRun alone = run({{dispatch()}}, {});
  const WorldRun both = run({{dispatch()}, {compute_op(OpKind::kGemm)}}, bound);
  CHECK(seconds_of(both.span(0, 1)) == Approx(20e-3 + kCopied / kMemoryRate).epsilon(1e-6));
  // The dispatch lasts what it copies longer, less its latency, in which nothing has arrived yet.
  CHECK(seconds_of(both.span(0, 0)) > seconds_of(alone.span(0, 0)));
  CHECK(seconds_of(both.span(0, 0)) <= seconds_of(alone.span(0, 0)) + kCopied / kMemoryRate + 1e-9);
}

TEST_CASE("a dispatch beside an op that leaves it enough memory takes as long as alone, and the op too") {
  const WorldRun alone = run({{dispatch()}}, {});
  for (const double bytes : {0.0, 1e6}) {
    const WorldRun both = run({{dispatch()}, {compute_op(OpKind::kGemm)}}, {20e-3, bytes});
    CHECK(seconds_of(both.span(0, 0)) == seconds_of(alone.span(0, 0)));
    CHECK(seconds_of(both.span(0, 1)) == Approx(20e-3).epsilon(1e-9));
  }
}

// Between nodes a row that crosses stands in a buffer at both ends, written and read in each: of two nodes of
// four ranks, each of 100 tokens crosses once and goes to eight ranks.
TEST_CASE("the bytes of an exchange through memory are those of its buffers") {
  const ExchangeLoad load{
      .ranks = 8, .tokens = 100, .copies = 100 * (8 + 2), .across = 100, .row_bytes = 10, .nodes = 2};
  ExchangeKernel kernel;
  CHECK(exchange_memory(kernel, load) == 10 * 100 * (1 + 4 + 3 * 8));
  kernel.family = ExchangeFamily::kLowLatency;
  ExchangeLoad direct = load;
  direct.copies = 800;
  CHECK(exchange_memory(kernel, direct) == 10 * 800 * 6);
}
