// The marks of an axis: whole multiples of a round step.
#pragma once

namespace moebius::viz {

// Counted, not added up: where numbers are so far apart that adding a step changes nothing, as in a trace of
// absolute times looked at closely, a sum would never reach the end.
struct AxisMarks {
  double step = 1;
  double first = 0;  // in steps
  int count = 0;

  double at(int i) const { return (first + i) * step; }
};

// Those in [low, high), at most `most` and one. The step is 1, 2 or 5 times a power of ten, in the unit of
// the ends.
AxisMarks axis_marks(double low, double high, double most);

}  // namespace moebius::viz
