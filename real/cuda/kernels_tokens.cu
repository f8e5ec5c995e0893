// Where tokens enter and leave a model, and Adam: real/host/host_kernels_tokens.h and _optimizer.h on a
// device.
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kStats = 3;  // maximum, sum, label's logit

// The row of a shard for an id, or -1.
MOEBIUS_DEVICE std::int64_t row_in_shard(const Vocabulary& shard, float id) {
  const std::int64_t row = static_cast<std::int64_t>(id) - shard.first;
  return row >= 0 && row < shard.size ? row : -1;
}

struct Embed {
  Vocabulary shard;
  Operand tokens, table, x;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = row_in_shard(shard, load(tokens, index / x.columns));
    store(x, index, row < 0 ? 0.0f : load(table, row, index % x.columns));
  }
};

// A team for each token; the one of an id's first occurrence adds them all, in order.
struct EmbedGrad {
  Vocabulary shard;
  Operand tokens, dx, dtable;

  static constexpr std::int64_t kParts = 256;  // of the tokens, each looked through by a thread
  static constexpr std::int64_t kRoom = kScratch - kParts;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t token) const {
    const float id = load(tokens, token);
    const std::int64_t row = row_in_shard(shard, id);
    if (row < 0) return;
    float *counts = team.scratch(), *places = counts + kParts;
    const std::int64_t each = (tokens.rows + kParts - 1) / kParts;
    const auto occurrences = [&](std::int64_t part, const auto& take) {
      const std::int64_t last = (part + 1) * each < tokens.rows ? (part + 1) * each : tokens.rows;
      for (std::int64_t t = part * each; t < last; ++t)
        if (load(tokens, t) == id) take(t);
    };
    team.each(kParts, [&](std::int64_t part) {
      std::int64_t count = 0;
      occurrences(part, [&](std::int64_t) { ++count; });
      counts[part] = static_cast<float>(count);
    });
    team.sync();
    std::int64_t all = 0;
    for (std::int64_t part = 0; part < kParts; ++part) all += static_cast<std::int64_t>(counts[part]);
    team.each(kParts, [&](std::int64_t part) {
      std::int64_t at = 0;
      for (std::int64_t before = 0; before < part; ++before) at += static_cast<std::int64_t>(counts[before]);
      occurrences(part, [&](std::int64_t t) {
        if (at < kRoom) places[at] = static_cast<float>(t);
        ++at;
      });
    });
    team.sync();
    if (static_cast<std::int64_t>(places[0]) != token) return;
    add_rows(team, row, id, places, all < kRoom ? all : kRoom);
  }

  // Those beyond the room for places are looked for.
  MOEBIUS_DEVICE void add_rows(const Team& team, std::int64_t row, float id, const float* places,
                               std::int64_t count) const {
    const std::int64_t last = static_cast<std::int64_t>(places[count - 1]);
    team.each(dx.columns, [&](std::int64_t c) {
      float sum = load(dtable, row * dx.columns + c);
      for (std::int64_t i = 0; i < count; ++i) sum += load(dx, static_cast<std::int64_t>(places[i]), c);
      for (std::int64_t t = last + 1; count == kRoom && t < tokens.rows; ++t)
        if (load(tokens, t) == id) sum += load(dx, t, c);
      store(dtable, row * dx.columns + c, sum);
    });
  }
};

struct Stats {
  Vocabulary shard;
  Operand logits, labels, stats;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float maximum = team.max(shard.size, [&](std::int64_t c) { return load(logits, row, c); });
    const double sum =
        team.sum<double>(shard.size, [&](std::int64_t c) { return expf(load(logits, row, c) - maximum); });
    team.each(1, [&](std::int64_t) {
      const std::int64_t label = row_in_shard(shard, load(labels, row));
      store(stats, row * kStats, maximum);
      store(stats, row * kStats + 1, static_cast<float>(sum));
      store(stats, row * kStats + 2, label < 0 ? 0.0f : load(logits, row, label));
    });
  }
};

struct LossRow {
  Vocabulary shard;
  CrossEntropy l;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t rows = l.labels.rows;
    double maximum = -INFINITY, sum = 0, label_logit = 0;
    for (std::int64_t at = row; at < l.stats.rows; at += rows) {
      const double shard_maximum = load(l.stats, at * kStats);
      maximum = shard_maximum > maximum ? shard_maximum : maximum;
    }
    for (std::int64_t at = row; at < l.stats.rows; at += rows) {
      sum += load(l.stats, at * kStats + 1) * exp(load(l.stats, at * kStats) - maximum);
      label_logit += load(l.stats, at * kStats + 2);
    }
    const auto factor = static_cast<float>(l.scale / sum), highest = static_cast<float>(maximum);
    const std::int64_t label = row_in_shard(shard, load(l.labels, row));
    team.each(shard.size, [&](std::int64_t c) {
      const float d = expf(load(l.logits, row, c) - highest) * factor;
      store(l.dlogits, row * shard.size + c, c == label ? d - l.scale : d);
    });
    team.each(1, [&](std::int64_t) { l.row_loss[row] = maximum + log(sum) - label_logit; });
  }
};

struct LossSum {
  CrossEntropy l;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t) const {
    const double sum = team.sum<double>(l.labels.rows, [&](std::int64_t row) { return l.row_loss[row]; });
    team.each(1, [&](std::int64_t) {
      *l.loss = sum * l.scale;
      store(l.sum, 0, load(l.sum, 0) + static_cast<float>(sum * l.scale));
    });
  }
};

struct Adam {
  AdamShard s;
  MOEBIUS_DEVICE double gradient_scale() const {
    constexpr double kEpsilon = 1e-6;  // of clip_factor()
    if (s.squares.data == nullptr) return 1;
    const double factor = s.clip / (sqrt(static_cast<double>(load(s.squares, 0))) + kEpsilon);
    return factor < 1 ? factor : 1;
  }
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const double g = load(s.gradient, s.first + i) * gradient_scale();
    const double first = s.beta1 * load(s.first_moment, i) + (1 - s.beta1) * g;
    const double second = s.beta2 * load(s.second_moment, i) + (1 - s.beta2) * g * g;
    const double root = sqrt(second / s.second_correction) + s.epsilon;
    const auto master =
        static_cast<float>(load(s.master, i) - s.learning_rate * first / s.first_correction / root);
    store(s.first_moment, i, static_cast<float>(first));
    store(s.second_moment, i, static_cast<float>(second));
    store(s.master, i, master);
    store(s.weight, s.first + i, master);
  }
};

struct SquaresOfPart {
  Operand x;
  double* parts;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t first = part * kPart, left = x.elements() - first;
    const double sum = team.sum<double>(left < kPart ? left : kPart, [&](std::int64_t i) {
      const double value = load(x, first + i);
      return value * value;
    });
    team.each(1, [&](std::int64_t) { parts[part] = sum; });
  }
};

struct LargestOfPart {
  Operand x, parts;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t first = part * kPart, left = x.elements() - first;
    const float most =
        team.max(left < kPart ? left : kPart, [&](std::int64_t i) { return fabsf(load(x, first + i)); });
    team.each(1, [&](std::int64_t) { store(parts, part, most); });
  }
};

struct LargestOfParts {
  Operand parts, number;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t) const {
    const float most = team.max(parts.rows, [&](std::int64_t part) { return load(parts, part); });
    team.each(1, [&](std::int64_t) { store(number, 0, most); });
  }
};

struct SumOfParts {
  const double* parts;
  std::int64_t count;
  double scale;
  Operand total;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t) const {
    const double sum = team.sum<double>(count, [&](std::int64_t part) { return parts[part]; });
    team.each(1, [&](std::int64_t) { store(total, 0, load(total, 0) + static_cast<float>(sum * scale)); });
  }
};

}  // namespace

void embed(Stream stream, const Vocabulary& shard, const Operand& tokens, const Operand& table,
           const Operand& x) {
  launch_elements(stream, x.elements(), Embed{shard, tokens, table, x});
}

void embed_grad(Stream stream, const Vocabulary& shard, const Operand& tokens, const Operand& dx,
                const Operand& dtable) {
  launch_teams(stream, tokens.rows, EmbedGrad{shard, tokens, dx, dtable});
}

void cross_entropy_stats(Stream stream, const Vocabulary& shard, const Operand& logits, const Operand& labels,
                         const Operand& stats) {
  launch_teams(stream, labels.rows, Stats{shard, logits, labels, stats});
}

void cross_entropy(Stream stream, const Vocabulary& shard, const CrossEntropy& loss) {
  launch_teams(stream, loss.labels.rows, LossRow{shard, loss});
  launch_teams(stream, 1, LossSum{loss});
}

void adam(Stream stream, const AdamShard& shard) {
  launch_elements(stream, shard.count, Adam{shard});
}

void largest_magnitude(Stream stream, const Operand& x, const Operand& parts, const Operand& number) {
  launch_teams(stream, parts.rows, LargestOfPart{x, parts});
  launch_teams(stream, 1, LargestOfParts{parts, number});
}

void add_squares(Stream stream, const Operand& x, double* parts, double scale, const Operand& sum) {
  const std::int64_t count = parts_of(x.elements());
  launch_teams(stream, count, SquaresOfPart{x, parts});
  launch_teams(stream, 1, SumOfParts{parts, count, scale, sum});
}

}  // namespace moebius::cuda
