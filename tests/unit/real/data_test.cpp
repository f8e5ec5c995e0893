// Where a run starts: the text it reads and the parameters it begins with.
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "real/token_stream.h"

namespace moebius {

TEST_CASE("equal keys give equal text, other keys other text") {
  const auto text = token_sequence({.seed = 1, .step = 2, .sequence = 3}, 50, 100);
  CHECK(text == token_sequence({.seed = 1, .step = 2, .sequence = 3}, 50, 100));
  CHECK(text != token_sequence({.seed = 1, .step = 2, .sequence = 4}, 50, 100));
  CHECK(text != token_sequence({.seed = 1, .step = 3, .sequence = 3}, 50, 100));
  CHECK(text != token_sequence({.seed = 2, .step = 2, .sequence = 3}, 50, 100));
}

TEST_CASE("a longer sequence begins with the shorter one") {
  const auto longer = token_sequence({.sequence = 7}, 80, 100),
             shorter = token_sequence({.sequence = 7}, 30, 100);
  CHECK(std::vector<std::int32_t>(longer.begin(), longer.begin() + 30) == shorter);
}

TEST_CASE("text is a chain with a few likely successors and a tenth of noise") {
  std::map<std::int32_t, std::map<std::int32_t, int>> successors;
  const std::int64_t vocabulary = 50;
  const auto text = token_sequence({}, 100'000, vocabulary);
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    REQUIRE((text[i] >= 0 && text[i] < vocabulary));
    ++successors[text[i]][text[i + 1]];
  }
  // The likeliest successor of a token follows it 60% of the time and a bit (noise, coinciding successors).
  int likeliest = 0;
  for (const auto& [token, counts] : successors) {
    int most = 0;
    for (const auto& [next, count] : counts) most = std::max(most, count);
    likeliest += most;
  }
  CHECK(likeliest / 1e5 == Approx(0.62).margin(0.05));
}

TEST_CASE("the floor of the loss lies between certainty and guessing") {
  // 0.6 0.2 0.1 and a tenth spread over 64: -sum p log p, by hand with p = 0.6016, 0.2016, 0.1016 and 61
  // times 0.0016 (the successors' own share of the noise counted apart): about 1.55.
  CHECK(token_entropy(64) == Approx(1.55).margin(0.05));
  CHECK(token_entropy(64) < std::log(64.0));
}

TEST_CASE("the shards of a parameter together are the whole") {
  Tensor whole{.role = Role::kQkv, .layer = 3, .rows = 6, .columns = 4, .init = 0.5};
  Tensor part = whole;
  part.rows = 3, part.first_row = 3;
  part.columns = 2, part.first_column = 2;
  const auto all = initial_values(whole, 9), corner = initial_values(part, 9);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 2; ++column)
      CHECK(corner[row * 2 + column] == all[(row + 3) * 4 + column + 2]);
  }
}

// Of [q | k | v] with 4, 2 and 2 rows the second of two ranks has rows 2 3, 5 and 7 of the whole.
TEST_CASE("a rank's share of fused matrices is that of each of them") {
  Model model;
  model.heads = 4, model.kv_heads = 2, model.head_dim = 1, model.dense_width = 4, model.gated = true;
  const auto rows_of = [&](Role role, std::int64_t rows, std::int64_t first) {
    const Tensor part{.role = role, .layer = 3, .rows = rows, .columns = 1, .first_row = first, .init = 0.5};
    return initial_values(part, 9, stacked_rows(part, model));
  };
  const auto qkv = rows_of(Role::kQkv, 8, 0), second = rows_of(Role::kQkv, 4, 4);
  CHECK(second == std::vector<double>{qkv[2], qkv[3], qkv[5], qkv[7]});
  CHECK(qkv == initial_values({.role = Role::kQkv, .layer = 3, .rows = 8, .columns = 1, .init = 0.5}, 9));
  const auto gate_up = rows_of(Role::kGateUp, 8, 0), half = rows_of(Role::kGateUp, 4, 4);
  CHECK(half == std::vector<double>{gate_up[2], gate_up[3], gate_up[6], gate_up[7]});
}

TEST_CASE("the experts of a rank are the ones of its place") {
  const Tensor all{.role = Role::kExpertDown, .rows = 2, .columns = 2, .experts = 4, .init = 1};
  Tensor last = all;
  last.first_expert = 3, last.experts = 1;
  const auto values = initial_values(all, 1), expert = initial_values(last, 1);
  CHECK(expert == std::vector<double>(values.begin() + 12, values.end()));
}

TEST_CASE("parameters differ by role, layer and seed") {
  const Tensor tensor{.role = Role::kQkv, .layer = 3, .rows = 2, .columns = 2, .init = 1};
  Tensor other_layer = tensor, other_role = tensor;
  other_layer.layer = 4;
  other_role.role = Role::kO;
  const std::set<std::vector<double>> distinct = {initial_values(tensor, 1), initial_values(tensor, 2),
                                                  initial_values(other_layer, 1),
                                                  initial_values(other_role, 1)};
  CHECK(distinct.size() == 4);
}

TEST_CASE(
    "initial values have the standard deviation that the tensor asks for; norms start from a constant") {
  const auto values = initial_values({.role = Role::kO, .rows = 100, .columns = 100, .init = 0.02}, 1);
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  CHECK(sum / 1e4 == Approx(0).margin(0.001));  // 5 times the error of the mean, 0.0002
  CHECK(std::sqrt(squares / 1e4) == Approx(0.02).epsilon(0.04));
  CHECK(initial_values({.rows = 1, .columns = 3, .init = -1}, 1) == std::vector<double>{1, 1, 1});
  CHECK(initial_values({.rows = 1, .columns = 2}, 1) == std::vector<double>{0, 0});
}

}  // namespace moebius
