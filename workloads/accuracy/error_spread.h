// How far a prediction is from what one would measure, told by sources that were measured before.
//
// Rows of one source err together, so a new source has an error of its own and its rows scatter about it (a
// model of random effects; its prediction interval: Higgins, Thompson, Spiegelhalter, J. R. Stat. Soc. A 172,
// 2009):
//   between: deviation of the sources' medians, less what the scatter of their own rows makes of it
//   (DerSimonian
//            and Laird, Controlled Clinical Trials 7, 1986; the median of n rows has pi / 2n of their
//            variance);
//   within:  distance of the deciles of all rows from their sources' medians, every source weighing as one,
//            over that of a normal distribution, so that single outliers do not stretch it.
// A row of a new source lies about the mean of the medians with sqrt(within^2 + between^2 + that of the
// mean), by Student's t: few sources say little of what is between them, many rows much of what is within.
// The degrees of such a sum are those of Welch and Satterthwaite (Biometrics Bulletin 2, 1946), where what is
// between has sources - 1 and what is within rows - sources. Of that, what the parts of those rows explain
// (AccuracyPoint::parts, in quadrature) is taken off, and what the parts of the new row say is put on: a run
// whose kernels are known badly has a wider interval.
#pragma once

#include <optional>
#include <vector>

#include "workloads/accuracy/record.h"

namespace moebius {

inline constexpr double kIntervalLevel = 0.8;  // four in five measured rows lie inside

struct ErrorSpread {
  int sources = 0;
  std::int64_t rows = 0;
  double centre = 0;     // ln(ours / measured) that is to be expected: the bias
  double deviation = 0;  // of a row of a new source
  double degrees = 1;    // of freedom of that
  double parts = 0;      // root mean square of the parts of the rows
};

// Nothing of fewer than two sources.
std::optional<ErrorSpread> spread_of(const std::vector<const AccuracySource*>& sources);

// Between these lies ln(ours / measured) of a row with such parts.
struct ErrorBand {
  double low = 0, high = 0;
  bool holds(double error) const { return low <= error && error <= high; }
};
ErrorBand band_of(const ErrorSpread& spread, double parts);

// The value that Student's t with so many degrees of freedom, at least one, stays below in nine of ten cases.
double student_ninth_decile(double degrees);

// The quantile of points with weights, linear between the middles of their weights.
struct WeightedPoint {
  double value = 0, weight = 0;
};
double weighted_quantile(std::vector<WeightedPoint> points, double share);

}  // namespace moebius
