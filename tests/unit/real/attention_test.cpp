#include "real/host/host_kernels_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

using Numbers = std::vector<double>;

struct Case {
  AttentionShape shape;
  Numbers q, k, v;

  explicit Case(const AttentionShape& s)
      : shape(s),
        q(some_numbers(s.sequences * s.queries * s.heads * s.head_dim, 1)),
        k(some_numbers(s.sequences * s.keys * s.kv_heads * s.head_dim, 2)),
        v(some_numbers(s.sequences * s.keys * s.kv_heads * s.v_dim, 3)) {}

  std::int64_t rows() const { return shape.sequences * shape.queries; }
};

struct Result {
  Numbers o, lse;
};

Result run(const Case& c) {
  Result result{Numbers(c.rows() * c.shape.heads * c.shape.v_dim), Numbers(c.rows() * c.shape.heads)};
  attention<double>(c.shape, {c.q, c.k, c.v}, {result.o, result.lse});
  return result;
}

// Straight from the definition, one output element at a time.
double naive_output(const Case& c, std::int64_t row, std::int64_t head, std::int64_t column) {
  const AttentionShape& s = c.shape;
  const std::int64_t sequence = row / s.queries, position = s.keys - s.queries + row % s.queries;
  const std::int64_t kv_head = head / (s.heads / s.kv_heads);
  double sum = 0, total = 0;
  for (std::int64_t j = 0; j <= position; ++j) {
    if (s.window > 0 && position - j >= s.window) continue;
    double score = 0;
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
      score += c.q[(row * s.heads + head) * s.head_dim + d] *
               c.k[((sequence * s.keys + j) * s.kv_heads + kv_head) * s.head_dim + d];
    }
    const double p = std::exp(score / std::sqrt(static_cast<double>(s.head_dim)));
    total += p;
    sum += p * c.v[((sequence * s.keys + j) * s.kv_heads + kv_head) * s.v_dim + column];
  }
  return sum / total;
}

void require_like_naive(const AttentionShape& shape) {
  const Case c(shape);
  const Result result = run(c);
  for (std::int64_t row = 0; row < c.rows(); ++row) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t column = 0; column < shape.v_dim; ++column) {
        CHECK(result.o[(row * shape.heads + head) * shape.v_dim + column] ==
              Approx(naive_output(c, row, head, column)));
      }
    }
  }
}

const AttentionShape kGrouped{
    .sequences = 2, .queries = 5, .keys = 5, .heads = 4, .kv_heads = 2, .head_dim = 3, .v_dim = 3};
const AttentionShape kLatent{
    .sequences = 1, .queries = 4, .keys = 4, .heads = 2, .kv_heads = 2, .head_dim = 5, .v_dim = 3};

void require_gradients(const AttentionShape& shape) {
  const Case c(shape);
  const Result forward = run(c);
  const Numbers d_o = some_numbers(forward.o.size(), 4);
  Numbers dq(c.q.size(), 0.0), dk(c.k.size(), 0.0), dv(c.v.size(), 0.0);
  attention_grad<double>(shape, d_o, {c.q, c.k, c.v}, {forward.o, forward.lse}, {dq, dk, dv});
  const auto loss = [&](const Numbers Case::*which, const Numbers& values) {
    Case changed = c;
    changed.*const_cast<Numbers Case::*>(which) = values;
    return dot(run(changed).o, d_o);
  };
  require_gradient([&](const Numbers& at) { return loss(&Case::q, at); }, c.q, dq);
  require_gradient([&](const Numbers& at) { return loss(&Case::k, at); }, c.k, dk);
  require_gradient([&](const Numbers& at) { return loss(&Case::v, at); }, c.v, dv);
}

}  // namespace

TEST_CASE("attention with grouped heads is the definition") {
  require_like_naive(kGrouped);
}

TEST_CASE("attention with values narrower than keys is the definition") {
  require_like_naive(kLatent);
}

TEST_CASE("queries may be the last positions of a longer sequence") {
  AttentionShape shape = kGrouped;
  shape.keys = 9;
  require_like_naive(shape);
}

TEST_CASE("a sliding window hides what is too long ago") {
  AttentionShape shape = kGrouped;
  shape.window = 2;
  require_like_naive(shape);
  // With a window of one a token sees itself only.
  shape.window = 1;
  const Case c(shape);
  const Result result = run(c);
  for (std::int64_t d = 0; d < shape.v_dim; ++d) CHECK(result.o[d] == Approx(c.v[d]));
}

TEST_CASE("the first token of a sequence sees itself only, and its log-sum-exp is its score") {
  const Case c(kLatent);
  const Result result = run(c);
  for (std::int64_t d = 0; d < kLatent.v_dim; ++d) CHECK(result.o[d] == Approx(c.v[d]));
  double score = 0;
  for (std::int64_t d = 0; d < kLatent.head_dim; ++d) score += c.q[d] * c.k[d];
  CHECK(result.lse[0] == Approx(score / std::sqrt(5.0)));
}

TEST_CASE("scores of a thousand neither overflow nor lose the largest") {
  Case c({.sequences = 1, .queries = 2, .keys = 2, .heads = 1, .kv_heads = 1, .head_dim = 1, .v_dim = 1});
  c.q = {0, 1000};
  c.k = {1, 2};
  c.v = {5, 7};
  CHECK(run(c).o[1] == Approx(7));
}

TEST_CASE("attention gradients agree with finite differences: grouped heads") {
  require_gradients(kGrouped);
}

TEST_CASE("attention gradients agree with finite differences: latent") {
  require_gradients(kLatent);
}

TEST_CASE("attention gradients agree with finite differences: window and longer keys") {
  AttentionShape shape = kGrouped;
  shape.keys = 7;
  shape.window = 3;
  require_gradients(shape);
}

}  // namespace moebius
