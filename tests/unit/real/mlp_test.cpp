#include "real/host/host_kernels_mlp.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

using Numbers = std::vector<double>;

double silu(double x) {
  return x / (1 + std::exp(-x));
}

void require_activation_gradients(const ActivationShape& shape, std::int64_t input_columns) {
  const std::int64_t rows = 3;
  const Numbers x = some_numbers(rows * input_columns, 1), weight = some_numbers(rows, 2),
                dy = some_numbers(rows * shape.columns, 3);
  Numbers dx(x.size()), dweight(rows);
  activation_grad<double>(shape, {dy, x, weight}, dx, dweight);
  const auto loss = [&](const Numbers& at_x, const Numbers& at_weight) {
    Numbers y(dy.size());
    activation<double>(shape, at_x, at_weight, y);
    return dot(y, dy);
  };
  require_gradient([&](const Numbers& at) { return loss(at, weight); }, x, dx);
  require_gradient([&](const Numbers& at) { return loss(x, at); }, weight, dweight);
}

void require_gate_gradients(bool sigmoid) {
  const GateShape shape{.experts = 5, .active = 2, .sigmoid = sigmoid, .scale = 2.5};
  const Numbers logits = some_numbers(3 * 5, 1), dweights = some_numbers(3 * 2, 2);
  const std::vector<std::int32_t> choices = {0, 3, 1, 2, 2, 4};
  Numbers dlogits(logits.size(), 7.0);
  gate_grad<double>(shape, {dweights, logits, choices}, dlogits);
  require_gradient(
      [&](const Numbers& at) {
        Numbers weights(dweights.size());
        gate<double>(shape, at, choices, weights);
        return dot(weights, dweights);
      },
      logits, dlogits);
}

}  // namespace

TEST_CASE("a gated activation multiplies silu of the left half with the right half") {
  const Numbers x = {1, -2, 3, 4};  // left 1 -2, right 3 4
  Numbers y(2);
  activation<double>({2, ActivationForm::kGated}, x, {}, y);
  CHECK(y[0] == Approx(silu(1) * 3));
  CHECK(y[1] == Approx(silu(-2) * 4));
}

TEST_CASE("a plain activation is gelu, known at three points") {
  const Numbers x = {0, 1, -1};  // gelu(1) = Phi(1) = 0.841344746
  Numbers y(3);
  activation<double>({3, ActivationForm::kPlain}, x, {}, y);
  CHECK(y[0] == 0);
  CHECK(y[1] == Approx(0.841344746).epsilon(1e-8));
  CHECK(y[2] == Approx(-0.158655254).epsilon(1e-8));
}

TEST_CASE("a routed row is scaled by its weight") {
  const Numbers x = {1, 1, 1, 1}, weight = {2, -1};
  Numbers y(2);
  activation<double>({1, ActivationForm::kGated}, x, weight, y);
  CHECK(y[0] == Approx(2 * silu(1)));
  CHECK(y[1] == Approx(-silu(1)));
}

TEST_CASE("rows and elements are multiplied by the sigmoid of their gate") {
  const Numbers z = {0, std::log(3.0)};  // sigmoids 1/2 and 3/4
  Numbers rows = {2, -4, 6, 8, 12, 4}, elements = {2, 4};
  gate_by_sigmoid<double>(z, rows);
  CHECK(rows[2] == Approx(3));
  CHECK(rows[3] == Approx(6));
  gate_by_sigmoid<double>(z, elements);
  CHECK(elements[0] == Approx(1));
  CHECK(elements[1] == Approx(3));
  Numbers nothing;
  gate_by_sigmoid<double>({}, nothing);
}

TEST_CASE("gradients of rows and of their gates agree with finite differences") {
  const Numbers x = some_numbers(3 * 4, 1), z = some_numbers(3, 2), dy = some_numbers(3 * 4, 3);
  Numbers dx(x.size()), dz(z.size());
  gate_by_sigmoid_grad<double>({dy, x, z}, dx, dz);
  const auto loss = [&](Numbers at_x, const Numbers& at_z) {
    gate_by_sigmoid<double>(at_z, at_x);
    return dot(at_x, dy);
  };
  require_gradient([&](const Numbers& at) { return loss(at, z); }, x, dx);
  require_gradient([&](const Numbers& at) { return loss(x, at); }, z, dz);
}

TEST_CASE("gradients of the gated activation agree with finite differences") {
  require_activation_gradients({4, ActivationForm::kGated}, 8);
}

TEST_CASE("gradients of the plain activation agree with finite differences") {
  require_activation_gradients({4, ActivationForm::kPlain}, 4);
}

TEST_CASE("softmax weights of the chosen experts ignore the others and add up to the scale") {
  const Numbers logits = {0, 100, std::log(3.0)};
  const std::vector<std::int32_t> choices = {0, 2};
  Numbers weights(2);
  gate<double>({.experts = 3, .active = 2, .scale = 2}, logits, choices, weights);
  CHECK(weights[0] == Approx(0.5));  // 2 * 1/(1+3)
  CHECK(weights[1] == Approx(1.5));
}

TEST_CASE("sigmoid weights divide by the sum of the chosen scores") {
  const Numbers logits = {0, std::log(3.0)};  // sigmoids 1/2 and 3/4
  const std::vector<std::int32_t> choices = {0, 1};
  Numbers weights(2);
  gate<double>({.experts = 2, .active = 2, .sigmoid = true}, logits, choices, weights);
  CHECK(weights[0] == Approx(0.4));
  CHECK(weights[1] == Approx(0.6));
}

TEST_CASE("gradients of softmax weights agree with finite differences, zero where not chosen") {
  require_gate_gradients(false);
}

TEST_CASE("gradients of sigmoid weights agree with finite differences, zero where not chosen") {
  require_gate_gradients(true);
}

}  // namespace moebius
