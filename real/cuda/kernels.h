// Kernels of the CUDA executor: each does to matrices in a device's memory what its namesake among the host's
// kernels (real/host/host_kernels_*.h) does on the CPU, or what models/op_kind.h says of the op. Arithmetic
// is FP32 (FP64 where the host sums in double and it costs nothing), sums have a fixed order: equal inputs
// give equal bits. Results are FP32 or BF16; formats with scales are made of them by quantise(). All return
// at once; the work is in the stream's order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"

namespace moebius::cuda {

// ---- kernels_gemm.cu ----

// c[m,n] = a[m,k] b[k,n], or += when it accumulates. A transposed operand is stored the other way round.
// A bias, of n elements, is added to each row of c; without data there is none, nor where it accumulates.
struct Gemm {
  Operand a, b, c;
  bool a_transposed = false, b_transposed = false, accumulate = false;
  Operand bias = {};

  std::int64_t m() const { return c.rows; }
  std::int64_t n() const { return c.columns; }
  std::int64_t k() const { return a_transposed ? a.rows : a.columns; }
};
// Plain FP32 arithmetic on operands of any format; CHECKs that shapes fit.
void gemm(Stream stream, const Gemm& product);
// sums[column] += the sum over the rows of x, of any format.
void add_column_sums(Stream stream, const Operand& x, const Operand& sums);

// ---- kernels_tile_gemm.cu ----

inline constexpr std::int64_t kGemmTile = 128;  // rows and columns of results that a team computes

// Products of all experts at once. Forward and dx: rows [first_row[e], first_row[e + 1]) of a and c by expert
// e's rows of b. dW (a transposed): those rows of a and b into expert e's rows of c. Lists in device memory.
struct GroupedGemm {
  Gemm product;
  int groups = 1;                            // 1: a product like any other, without lists
  const std::int32_t* first_row = nullptr;   // [groups + 1]
  const std::int32_t* first_tile = nullptr;  // [groups + 1] the same in tiles, each expert's begun anew
  std::int64_t row_tiles = 0;                // of all experts
};
// BF16 by BF16, or 8 bits by 8 bits whose scales change at ends of blocks along k.
bool tensor_cores_take(const Gemm& product);
void tile_gemm(Stream stream, const Gemm& product);
// By the faster kernel of those that take it.
void grouped_gemm(Stream stream, const GroupedGemm& grouped);
void grouped_gemm_by_warps(Stream stream, const GroupedGemm& grouped);

// ---- kernels_warpgroup_gemm.cu ----

// What a Hopper device multiplies by whole warpgroups: BF16 forward, dx and dW, 8 bits forward, rows of which
// each begins at 16 bytes.
bool warpgroups_take(const GroupedGemm& grouped);
// Tiles of `width` columns, 128 or 256; 0: whichever suits the size.
void grouped_gemm_by_warpgroups(Stream stream, const GroupedGemm& grouped, int width = 0);
// dx of 8 bits as they take it once turn_experts() has transposed each expert's weights: b is without memory.
std::optional<GroupedGemm> turned_form(const GroupedGemm& grouped);
// dW of 8 bits, once turn_rows() has transposed both operands.
struct TurnedRows {
  const std::uint8_t *a = nullptr, *b = nullptr;
};
bool warpgroups_take_turned_rows(const GroupedGemm& grouped);
void grouped_gemm_of_turned_rows(Stream stream, const GroupedGemm& grouped, const TurnedRows& turned);

// ---- kernels_turn.cu ----

// Each expert's weights, [rows,columns] of `turned`'s columns and period, as their transposes.
void turn_experts(Stream stream, const Operand& weights, const Operand& turned);
// Rows of experts by blocks of kScaleBlock: y[block + expert][column][row of the block], zero where the row
// is another expert's. x: a or b of the product.
void turn_rows(Stream stream, const GroupedGemm& grouped, const Operand& x, std::uint8_t* y);
inline std::int64_t turned_bytes(const GroupedGemm& grouped, const Operand& x) {
  return (blocks_of(x.rows) + grouped.groups) * kScaleBlock * x.columns;
}

// ---- kernels_codes.cu ----

// y[column][row] = the code of x[row][column].
void transpose_codes(Stream stream, const Operand& x, std::uint8_t* y);
// y[block][row] = the scale of a block of 128 columns of x, which is kFp8Rows.
void order_row_scales(Stream stream, const Operand& x, float* y);
// y[column / 128][row / 128], rows of block_scale_stride(x.rows): the scales of x^T; x is kFp8Blocks.
void transpose_block_scales(Stream stream, const Operand& x, float* y);

// ---- kernels_occupy.cu ----

// Holds `multiprocessors` of the device, all they have, until *stop is not zero. Each says that it is held by
// adding one to *held. Both lie in pinned memory. Everything that the device is given meanwhile must have its
// memory and its code there already: to make room for them waits for the device.
void occupy(Stream stream, int multiprocessors, int* held, const int* stop);

// ---- kernels_copy_on_cores.cu ----

struct CopyOnCores {
  int cores = 1;  // blocks, each on a multiprocessor of its own while there are idle ones
  int times = 1;  // the same bytes again
};
// Copies device memory, aligned to 16 bytes; returns how many of the bytes: what the blocks share out evenly,
// in 64 at a time. Bytes counted once.
std::size_t copy_on_cores(Stream stream, const void* from, void* to, std::size_t bytes,
                          const CopyOnCores& how);

// ---- kernels_norm.cu ----

struct Norm {
  Operand x, weight;
  double epsilon = 1e-6;
  Operand gate = {};  // with data: y times its silu; not quantised
  // With data: the mean square of each row, in this column of it; else it is found.
  Operand means = {};
  std::int64_t column = 0;
};
void rms_norm(Stream stream, const Norm& norm, const Operand& y);
// The same, and a quantised copy (kFp8Rows) of what y was before it was rounded.
void rms_norm_quantised(Stream stream, const Norm& norm, const Operand& y, const Operand& codes);

struct NormGrad {
  Operand dy, x, weight;
  Operand dx, dweight;  // dweight is added to
  Operand inverse_rms;  // [rows, 1] FP32, written: scratch
  Operand parts;        // [columns, norm_grad_parts(rows)] FP32, written: scratch
  double epsilon = 1e-6;
  // With data: means of x*x and of dy*x*weight of each row, in this column of both; else they are found.
  Operand means = {}, projections = {};
  std::int64_t column = 0;
};
// The gradient of the weight is summed over so many parts of the rows.
inline std::int64_t norm_grad_parts(std::int64_t rows) {
  constexpr std::int64_t kMostParts = 512, kLeastRows = 16;
  return std::clamp<std::int64_t>(rows / kLeastRows, 1, kMostParts);
}
void rms_norm_grad(Stream stream, const NormGrad& grad);

// Means of each row times `scale`, of one or two tensors: of x*x, or, where dy has data, of dy*x*weight.
struct RowMeans {
  struct Of {
    Operand x, dy = {}, weight = {};
  };
  Of of[2] = {};
  std::int64_t count = 1;
  double scale = 1;
};
void row_means(Stream stream, const RowMeans& what, const Operand& means);

struct Rotation {
  std::int64_t heads = 1, rotated = 0, sequence_rows = 0, first_position = 0;
  bool back = false;
  double base = 10000, factor = 1, low = 0, high = 1, magnitude = 1;  // Rotary's (models/constants.h)
  const std::int32_t* positions = nullptr;  // of each row, in the device's memory; null: by the two above
};
void rotate(Stream stream, const Rotation& rotation, const Operand& x, const Operand& y);

// ---- kernels_mlp.cu ----

struct Activation {
  Operand x, row_weight;  // row_weight without data: 1
  bool gated = true;
};
void activation(Stream stream, const Activation& activation, const Operand& y);
// The same, and a quantised copy (kFp8Rows) of what y was before it was rounded.
void activation_quantised(Stream stream, const Activation& activation, const Operand& y,
                          const Operand& codes);
void activation_grad(Stream stream, const Activation& activation, const Operand& dy, const Operand& dx,
                     const Operand& drow_weight);  // drow_weight without data: not wanted

// y = x times sigmoid(z), element by element, or row by row where z has one column.
void gate_by_sigmoid(Stream stream, const Operand& x, const Operand& z, const Operand& y);
struct RowGateGrad {
  Operand dy, x, z, dx, dz;  // z and dz: one column
};
void row_gate_grad(Stream stream, const RowGateGrad& grad);

struct Gate {
  Operand logits;                         // [rows, experts]
  const std::int32_t* choices = nullptr;  // [rows, active], as in Route::choices()
  std::int64_t active = 0;
  bool sigmoid = false;
  float scale = 1;
};
void gate(Stream stream, const Gate& gate, const Operand& weights);
void gate_grad(Stream stream, const Gate& gate, const Operand& dweights, const Operand& dlogits);

// ---- kernels_copy.cu ----

void convert(Stream stream, const Operand& x, const Operand& y);   // y: FP32 or BF16
void quantise(Stream stream, const Operand& x, const Operand& y);  // y: a format with scales
void add(Stream stream, const Operand& a, const Operand& b, const Operand& y);
// y[:, y_first...] = x[:, x_first...], `width` columns.
struct Columns {
  std::int64_t x_first = 0, y_first = 0, width = 0;
};
void copy_columns(Stream stream, const Columns& columns, const Operand& x, const Operand& y);
// Elements [first, first + count), counted row by row, of matrices without scales.
void copy_flat(Stream stream, const Operand& x, std::int64_t x_first, const Operand& y, std::int64_t y_first,
               std::int64_t count);

struct LatentColumns {
  std::int64_t heads = 0, nope = 0, rope = 0, v = 0;
};
void mla_keys(Stream stream, const LatentColumns& columns, const Operand& kv, const Operand& rope,
              const Operand& k, const Operand& v);
void mla_keys_grad(Stream stream, const LatentColumns& columns, const Operand& dk, const Operand& dv,
                   const Operand& dkv, const Operand& drope);

// ---- kernels_tokens.cu ----

struct Vocabulary {
  std::int64_t first = 0, size = 0;  // ids of this shard
};
void embed(Stream stream, const Vocabulary& shard, const Operand& tokens, const Operand& table,
           const Operand& x);
void embed_grad(Stream stream, const Vocabulary& shard, const Operand& tokens, const Operand& dx,
                const Operand& dtable);
void cross_entropy_stats(Stream stream, const Vocabulary& shard, const Operand& logits, const Operand& labels,
                         const Operand& stats);
struct CrossEntropy {
  Operand logits, labels, stats;  // stats[shards * rows, 3]
  float scale = 1;
  Operand dlogits;
  Operand sum;                 // [1, 1], added to
  double* loss = nullptr;      // what is added
  double* row_loss = nullptr;  // [rows]: scratch
};
void cross_entropy(Stream stream, const Vocabulary& shard, const CrossEntropy& loss);

// Flat shards of `count` elements: master and moments start at 0, gradient and weight at `first`.
struct AdamShard {
  Operand gradient, weight, master, first_moment, second_moment;
  std::int64_t first = 0, count = 0;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double first_correction = 1, second_correction = 1;  // 1 - beta^step
  // Where squares has data: gradients count times clip_factor(clip, squares), as on the host.
  Operand squares = {};
  double clip = 0;
};
void adam(Stream stream, const AdamShard& shard);

// Numbers of a whole tensor are found by parts of so many elements.
inline constexpr std::int64_t kPart = 1 << 16;
inline std::int64_t parts_of(std::int64_t elements) {
  return (elements + kPart - 1) / kPart;
}
// sum[0] += scale * the sum of x's squares, in FP64; `parts`: room for a number of each part.
void add_squares(Stream stream, const Operand& x, double* parts, double scale, const Operand& sum);
void largest_magnitude(Stream stream, const Operand& x, const Operand& parts, const Operand& number);

// ---- kernels_attention.cu ----

struct Attention {
  std::int64_t sequences = 1, queries = 0, keys = 0;  // per sequence; the queries are the last of the keys
  std::int64_t heads = 1, kv_heads = 1, head_dim = 0, v_dim = 0, window = 0;
  // Keys stand in chunks: chunk c of sequence s begins at row (c * sequences + s) * chunk.
  std::int64_t chunk = 0;
  double score_scale = 1;  // beside 1/sqrt(head_dim)
  Operand q = {}, k = {}, v = {};

  MOEBIUS_BOTH std::int64_t key_row(std::int64_t sequence, std::int64_t key) const {
    return (key / chunk * sequences + sequence) * chunk + key % chunk;
  }
  // The keys that query i sees: [first_seen, last_seen).
  MOEBIUS_BOTH std::int64_t last_seen(std::int64_t i) const { return keys - queries + i + 1; }
  MOEBIUS_BOTH std::int64_t first_seen(std::int64_t i) const {
    const std::int64_t last = last_seen(i);
    return window > 0 && last > window ? last - window : 0;
  }
};
inline constexpr std::int64_t kLargestHead = 1024;  // head_dim and v_dim
void attention(Stream stream, const Attention& attention, const Operand& o, const Operand& lse);
// What attention leaves in memory where softmax is a kernel of its own: p[query rows, heads * keys].
void attention_probabilities(Stream stream, const Attention& attention, const Operand& lse, const Operand& p);

struct AttentionGrad {
  Operand d_o, o, lse;
  Operand dq, dk, dv;      // rows of keys that no query sees get zeros
  Operand dot = {};        // [query rows, heads] FP32: scratch of attention_grad()
  Operand workspace = {};  // FP32: scratch of flash_attention_grad()
};
void attention_grad(Stream stream, const Attention& attention, const AttentionGrad& grad);

// ---- kernels_flash.cu, kernels_flash_grad.cu: the same on tensor cores ----

// BF16 operands, heads of multiples of 16 columns: at most 192 for q and k and 128 for v. Of the device:
// shared memory for the tiles.
bool flash_takes(const Attention& attention);
void flash_attention(Stream stream, const Attention& attention, const Operand& o, const Operand& lse);
bool flash_grad_takes(const Attention& attention, const AttentionGrad& grad);
std::int64_t flash_grad_workspace(const Attention& attention);  // its elements
void flash_attention_grad(Stream stream, const Attention& attention, const AttentionGrad& grad);

// ---- kernels_routed.cu ----

// y[i] = x[rows[i]]. Both in one format (FP8Rows too, with its scales), or y in FP32 or BF16.
void gather_rows(Stream stream, const Operand& x, const std::int32_t* rows, const Operand& y);
// y[i][0] = x[rows[i]][slots[i]].
void gather_slots(Stream stream, const Operand& x, const std::int32_t* rows, const std::int32_t* slots,
                  const Operand& y);
// y[i] = the sum of x[parts[i * width + j]] over j < width, in that order; negative parts are left out.
void sum_rows(Stream stream, const Operand& x, const std::int32_t* parts, std::int64_t width,
              const Operand& y);
// y[i][j] = x[from[i * columns + j]][0], zero where `from` is negative.
void scatter_slots(Stream stream, const Operand& x, const std::int32_t* from, const Operand& y);

// The weights that travel with rows[i] to a member: zero for experts that are not among its own.
struct SentWeights {
  Operand weights;                        // of the source [tokens, active]
  const std::int32_t* rows = nullptr;     // tokens that go to the member
  const std::int32_t* choices = nullptr;  // of the source [tokens, active]
  std::int64_t experts_per_rank = 1, member = 0;
};
void gather_weights(Stream stream, const SentWeights& sent, const Operand& y);

inline constexpr int kMostMembers = 64;  // of a group that reduces
// Pieces of members, which a kernel reads where they stand.
struct Pieces {
  Operand of[kMostMembers];
  std::int64_t first[kMostMembers] = {};  // row (combine) or element (reduce) where each begins
  int count = 0;
};

// Rows of several sources, one source's below the other's.
struct GatheredPieces {
  Operand of[kMostMembers];
  const std::int32_t* rows[kMostMembers] = {};  // of each source
  std::int64_t first[kMostMembers] = {};        // where its rows begin in the result
  int count = 0;
};
// y[first[s] + i] = of[s][rows[s][i]], as gather_rows().
void gather_pieces(Stream stream, const GatheredPieces& pieces, const Operand& y);
struct PieceWeights {
  const std::int32_t* choices[kMostMembers] = {};  // of each source
  std::int64_t experts_per_rank = 1, member = 0;
};
// The same of weights, as gather_weights().
void gather_piece_weights(Stream stream, const GatheredPieces& pieces, const PieceWeights& weights,
                          const Operand& y);

// y[token] = the sum over members, in their order, of row first + position[member][token]; negative: none.
void sum_by_token(Stream stream, const Pieces& pieces, const std::int32_t* position, const Operand& y);
// y[y_first + i] = the sum over members of their element first + i.
void sum_flat(Stream stream, const Pieces& pieces, const Operand& y, std::int64_t y_first,
              std::int64_t count);

}  // namespace moebius::cuda
