// When sessions begin: gaps drawn from a law, a function of the seed alone.
#pragma once

#include <cstdint>

#include "hw/units.h"
#include "workloads/routing/random_stream.h"

namespace moebius {

enum class ArrivalLaw : std::uint8_t {
  kPoisson,
  kGamma,   // gaps of a gamma distribution: with a variation above 1 they come in bursts
  kDiurnal  // Poisson, whose rate rises and falls as a sine
};

struct Arrivals {
  ArrivalLaw law = ArrivalLaw::kPoisson;
  double rate = 1;       // a second, mean
  double variation = 1;  // kGamma: standard deviation of the gaps over their mean
  Time period;           // kDiurnal
  double amplitude = 0;  // kDiurnal: of the rate over its mean, at most 1
};

// Gamma with a mean of 1 and the given standard deviation (Marsaglia and Tsang 2000).
double draw_gamma(RandomStream& random, double variation);
double draw_exponential(RandomStream& random, double mean);

class ArrivalClock {
 public:
  ArrivalClock(const Arrivals& arrivals, std::uint64_t seed) : arrivals_(arrivals), random_(seed) {}

  Time next();  // later than the one before, or equal

 private:
  double gap();

  Arrivals arrivals_;
  RandomStream random_;
  double seconds_ = 0;
};

}  // namespace moebius
