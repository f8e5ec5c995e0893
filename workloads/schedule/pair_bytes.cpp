#include "workloads/schedule/pair_bytes.h"

#include <algorithm>

namespace moebius {

double PairBytes::sent(int from) const {
  double sum = 0;
  for (int to = 0; to < ranks; ++to) sum += to == from ? 0 : at(from, to);
  return sum;
}

double PairBytes::received(int to) const {
  double sum = 0;
  for (int from = 0; from < ranks; ++from) sum += to == from ? 0 : at(from, to);
  return sum;
}

double PairBytes::largest_before() const {
  double most = 0;
  for (int i = 0; i < ranks; ++i) most = std::max(most, sent(i) + at(i, i));
  return most;
}

double PairBytes::largest_after() const {
  double most = 0;
  for (int i = 0; i < ranks; ++i) most = std::max(most, received(i) + at(i, i));
  return most;
}

PairBytes bytes_round_ring(int ranks, double bytes) {
  const auto n = static_cast<std::size_t>(ranks);
  PairBytes pairs{ranks, std::vector<double>(n * n, 0)};
  for (std::size_t from = 0; from < n; ++from) pairs.bytes[from * n + (from + 1) % n] = bytes;
  return pairs;
}

}  // namespace moebius
