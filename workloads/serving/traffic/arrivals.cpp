#include "workloads/serving/traffic/arrivals.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "hw/clock_end.h"
#include "hw/error.h"

namespace moebius {
namespace {

// Of shape at least 1 and scale 1.
double draw_standard_gamma(RandomStream& random, double shape) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x, v = root * root * root;
    if (v > 0 && std::log(random.unit()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

double draw_gamma(RandomStream& random, double variation) {
  const double shape = 1 / (variation * variation);
  const bool small = shape < 1;  // then of shape + 1, times a power of a uniform number
  const double drawn = draw_standard_gamma(random, small ? shape + 1 : shape);
  return (small ? drawn * std::pow(random.unit(), 1 / shape) : drawn) / shape;
}

double draw_exponential(RandomStream& random, double mean) {
  return -mean * std::log(random.unit());
}

double ArrivalClock::gap() {
  switch (arrivals_.law) {
    case ArrivalLaw::kPoisson:
      return draw_exponential(random_, 1 / arrivals_.rate);
    case ArrivalLaw::kGamma:
      return draw_gamma(random_, arrivals_.variation) / arrivals_.rate;
    case ArrivalLaw::kDiurnal: {
      // At the highest rate, of which the share of the moment stays (Lewis and Shedler 1979).
      double at = seconds_;
      for (;;) {
        at += draw_exponential(random_, 1 / (arrivals_.rate * (1 + arrivals_.amplitude)));
        const double phase = 2 * std::numbers::pi * at / arrivals_.period.seconds();
        if (random_.unit() * (1 + arrivals_.amplitude) <= 1 + arrivals_.amplitude * std::sin(phase))
          return at - seconds_;
      }
    }
  }
  return 0;
}

Time ArrivalClock::next() {
  CHECK(arrivals_.rate > 0 && arrivals_.variation > 0, fmt::format("rate={}", arrivals_.rate));
  seconds_ += gap();
  return after_seconds({}, seconds_);
}

}  // namespace moebius
