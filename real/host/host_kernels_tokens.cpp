#include "real/host/host_kernels_tokens.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr int kStats = 3;  // maximum, sum, label's logit

// The row of a shard for an id, or -1.
template <class Real>
std::int64_t row_in_shard(const VocabularyShard& shard, Real id) {
  const std::int64_t row = static_cast<std::int64_t>(id) - shard.first;
  return row >= 0 && row < shard.size ? row : -1;
}

struct WholeRow {
  double maximum, sum, label;
};

// Puts the statistics of one row together over the shards.
template <class Real>
WholeRow whole_row(std::span<const Real> stats, std::int64_t rows, std::int64_t row) {
  WholeRow whole{-INFINITY, 0, 0};
  const std::int64_t stride = rows * kStats;
  for (std::int64_t at = row * kStats; at < static_cast<std::int64_t>(stats.size()); at += stride) {
    whole.maximum = std::max(whole.maximum, static_cast<double>(stats[at]));
  }
  for (std::int64_t at = row * kStats; at < static_cast<std::int64_t>(stats.size()); at += stride) {
    whole.sum += stats[at + 1] * std::exp(stats[at] - whole.maximum);
    whole.label += stats[at + 2];
  }
  return whole;
}

}  // namespace

template <class Real>
void embed(const VocabularyShard& shard, std::span<const Real> tokens, std::span<const Real> table,
           std::span<Real> x) {
  const std::int64_t width = static_cast<std::int64_t>(table.size()) / shard.size;
  CHECK(x.size() == tokens.size() * width,
        fmt::format("{} tokens of {} into {}", tokens.size(), width, x.size()));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::int64_t row = row_in_shard(shard, tokens[t]);
    if (row < 0) {
      std::fill_n(&x[t * width], width, Real(0));
    } else {
      std::copy_n(&table[row * width], width, &x[t * width]);
    }
  }
}

template <class Real>
void embed_grad(const VocabularyShard& shard, std::span<const Real> tokens, std::span<const Real> dx,
                std::span<Real> dtable) {
  const std::int64_t width = static_cast<std::int64_t>(dtable.size()) / shard.size;
  CHECK(dx.size() == tokens.size() * width,
        fmt::format("{} tokens of {} from {}", tokens.size(), width, dx.size()));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::int64_t row = row_in_shard(shard, tokens[t]);
    if (row < 0) continue;
    for (std::int64_t c = 0; c < width; ++c) dtable[row * width + c] += dx[t * width + c];
  }
}

template <class Real>
void cross_entropy_stats(const VocabularyShard& shard, std::span<const Real> logits,
                         std::span<const Real> labels, std::span<Real> stats) {
  CHECK(logits.size() == labels.size() * shard.size && stats.size() == labels.size() * kStats,
        fmt::format("{} logits, {} labels, {} statistics", logits.size(), labels.size(), stats.size()));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const Real* x = &logits[row * shard.size];
    const Real maximum = *std::max_element(x, x + shard.size);
    double sum = 0;
    for (std::int64_t c = 0; c < shard.size; ++c) sum += std::exp(x[c] - maximum);
    const std::int64_t label = row_in_shard(shard, labels[row]);
    stats[row * kStats] = maximum;
    stats[row * kStats + 1] = static_cast<Real>(sum);
    stats[row * kStats + 2] = label < 0 ? Real(0) : x[label];
  }
}

template <class Real>
double cross_entropy(const VocabularyShard& shard, const CrossEntropyInputs<Real>& inputs,
                     std::span<Real> dlogits) {
  const auto rows = static_cast<std::int64_t>(inputs.labels.size());
  CHECK(inputs.logits.size() == inputs.labels.size() * shard.size && dlogits.size() == inputs.logits.size() &&
            inputs.stats.size() % (inputs.labels.size() * kStats) == 0,
        fmt::format("{} logits, {} labels, {} statistics", inputs.logits.size(), rows, inputs.stats.size()));
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (!inputs.counted.empty() && !inputs.counted[row]) {
      std::fill_n(&dlogits[row * shard.size], shard.size, Real(0));
      continue;
    }
    const WholeRow whole = whole_row(inputs.stats, rows, row);
    loss += whole.maximum + std::log(whole.sum) - whole.label;
    const auto factor = static_cast<Real>(inputs.scale / whole.sum);
    const auto maximum = static_cast<Real>(whole.maximum);
    for (std::int64_t c = row * shard.size; c < (row + 1) * shard.size; ++c) {
      dlogits[c] = std::exp(inputs.logits[c] - maximum) * factor;
    }
    const std::int64_t label = row_in_shard(shard, inputs.labels[row]);
    if (label >= 0) dlogits[row * shard.size + label] -= static_cast<Real>(inputs.scale);
  }
  return loss * inputs.scale;
}

#define MOEBIUS_INSTANTIATE(Real)                                                                         \
  template void embed(const VocabularyShard&, std::span<const Real>, std::span<const Real>,               \
                      std::span<Real>);                                                                   \
  template void embed_grad(const VocabularyShard&, std::span<const Real>, std::span<const Real>,          \
                           std::span<Real>);                                                              \
  template void cross_entropy_stats(const VocabularyShard&, std::span<const Real>, std::span<const Real>, \
                                    std::span<Real>);                                                     \
  template double cross_entropy(const VocabularyShard&, const CrossEntropyInputs<Real>&, std::span<Real>)
MOEBIUS_INSTANTIATE(float);
MOEBIUS_INSTANTIATE(double);
#undef MOEBIUS_INSTANTIATE

}  // namespace moebius
