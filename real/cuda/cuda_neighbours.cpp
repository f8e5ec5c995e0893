#include "real/cuda/cuda_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hw/error.h"

namespace moebius::cuda {
namespace {

constexpr int kProducts = 10, kTrialRounds = 4, kMostRounds = 4000;
constexpr double kLonger = 1.5;  // the neighbour lasts, so that it still runs when the products are slowed

OpOperands square(std::int64_t size) {
  return operands_of(
      {.kind = OpKind::kGemm, .shape = {.m = size, .n = size, .k = size}, .dtype = DType::kBf16});
}

}  // namespace

GemmBesideNeighbours::GemmBesideNeighbours(std::int64_t size, GemmLibrary* library)
    : size_(size), product_(square(size), {}, library), stream_(make_stream()) {
  median_seconds(1);  // memory and code are there from here on
}

GemmBesideNeighbours::~GemmBesideNeighbours() {
  try {
    synchronise(stream_);
  } catch (const Error&) {  // a device that failed has said so before
  }
  destroy(stream_);
}

double GemmBesideNeighbours::median_seconds(int products) {
  std::vector<IssuedOp> issued;
  issued.reserve(products);
  for (int i = 0; i < products; ++i) issued.push_back(product_.issue());
  synchronise(issued.back().end.get());
  std::vector<double> seconds;
  seconds.reserve(issued.size());
  for (const IssuedOp& one : issued)
    seconds.push_back(std::max(1e-9, elapsed(one.start.get(), one.end.get()).seconds()));
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double GemmBesideNeighbours::rate(const Neighbour& neighbour, int rounds) {
  const EventRef start = events_.recorded(stream_);
  double bytes = 0;
  for (int i = 0; i < rounds; ++i) bytes += static_cast<double>(neighbour.round(stream_));
  const EventRef end = events_.recorded(stream_);
  synchronise(end.get());
  return bytes / std::max(1e-9, elapsed(start.get(), end.get()).seconds());
}

Interference GemmBesideNeighbours::measure(const Neighbour& neighbour) {
  Interference found;
  found.kernel = fmt::format("gemm bf16 {0} x {0} x {0}", size_);
  found.beside = neighbour.name;
  found.cores = neighbour.cores;
  found.alone = median_seconds(kProducts);
  rate(neighbour, 1);
  found.neighbour_alone = rate(neighbour, kTrialRounds);
  const auto bytes = static_cast<double>(neighbour.round(stream_));
  const double wanted = kLonger * kProducts * found.alone * found.neighbour_alone / bytes;
  const int rounds = std::clamp(static_cast<int>(std::ceil(wanted)), 1, kMostRounds);
  synchronise(stream_);
  const EventRef start = events_.recorded(stream_);
  double moved = 0;
  for (int i = 0; i < rounds; ++i) moved += static_cast<double>(neighbour.round(stream_));
  const EventRef end = events_.recorded(stream_);
  found.together = median_seconds(kProducts);
  synchronise(end.get());
  found.neighbour_together = moved / std::max(1e-9, elapsed(start.get(), end.get()).seconds());
  return found;
}

}  // namespace moebius::cuda
