#include "workloads/checkpoint/pieces.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

// Puts the pieces of one parameter together.
class PieceList {
 public:
  PieceList(const Tensor& parameter, const Model& model, WeightNaming naming)
      : tensor_(parameter), model_(model), naming_(naming) {}

  std::vector<Piece> all();

 private:
  Piece& add(WeightPart part, const Region& from, int expert = -1) {
    pieces_.push_back({.name = weight_name(part, tensor_.layer, expert, model_, naming_), .from = from});
    return pieces_.back();
  }

  // The shard's own rows and columns, as they stand.
  Piece& block(WeightPart part) {
    return add(part, {tensor_.first_row, tensor_.rows, tensor_.first_column, tensor_.columns});
  }

  bool latent() const { return model_.attention == AttentionKind::kMla; }

  void vector(WeightPart part) { add(part, {tensor_.first_column, tensor_.columns, 0, 1}).vector = true; }

  // Several matrices of `rows` rows on this rank each, one below the other.
  struct Stacked {
    WeightPart part;
    std::int64_t rows;
  };
  void stack(const std::vector<Stacked>& parts) {
    const std::int64_t member = tensor_.first_row / tensor_.rows;
    std::int64_t to_row = 0;
    for (const Stacked& part : parts) {
      add(part.part, {member * part.rows, part.rows, 0, tensor_.columns}).to_row = to_row;
      to_row += part.rows;
    }
    CHECK(to_row == tensor_.rows,
          fmt::format("{} of {} rows of {}", to_row, tensor_.rows, to_string(tensor_.role)));
  }

  void gate_and_up(WeightPart gate, WeightPart up) {
    stack({{gate, tensor_.rows / 2}, {up, tensor_.rows / 2}});
  }

  void queries_keys_values() {
    const std::int64_t whole = std::int64_t{model_.head_dim} * (model_.heads + 2 * model_.kv_heads);
    const std::int64_t members = whole / tensor_.rows;
    const std::int64_t queries = model_.query_dim() / members;
    const std::int64_t keys = std::int64_t{model_.head_dim} * model_.kv_heads / members;
    if (is_bias(tensor_)) {
      stack(
          {{WeightPart::kQueryBias, queries}, {WeightPart::kKeyBias, keys}, {WeightPart::kValueBias, keys}});
    } else {
      stack({{WeightPart::kQuery, queries}, {WeightPart::kKey, keys}, {WeightPart::kValue, keys}});
    }
    turn_a_part(pieces_[0]);
    turn_a_part(pieces_[1]);
  }

  // Where no part of a head turns, or all of it, rows stand as in the weights.
  void turn_a_part(Piece& piece) {
    if (model_.rotary_dim == 0) return;
    piece.head = model_.head_dim;
    piece.rotated = model_.rotary_dim;
    piece.first = true;
  }

  void norm_of_heads(WeightPart of_latent, WeightPart of_row, WeightPart of_head) {
    if (latent()) return vector(of_latent);
    vector(model_.qk_norm == QkNorm::kPerLayer ? of_row : of_head);
    turn_a_part(pieces_.back());
  }

  void rotary(WeightPart part, std::int64_t head) {
    Piece& piece = block(part);
    piece.head = head;
    piece.rotated = model_.mla.rope_dim;
  }

  // Of each expert the columns that this rank has of it.
  void expert_gate_and_up() {
    const std::int64_t width = tensor_.rows / 2, first = tensor_.first_row / tensor_.rows * width;
    for (int i = 0; i < tensor_.experts; ++i) {
      const int expert = tensor_.first_expert + i;
      add(WeightPart::kExpertGate, {first, width, 0, tensor_.columns}, expert).to_row = i * tensor_.rows;
      add(WeightPart::kExpertUp, {first, width, 0, tensor_.columns}, expert).to_row =
          i * tensor_.rows + width;
    }
  }

  void expert_down() {
    for (int i = 0; i < tensor_.experts; ++i) {
      const Region part{0, tensor_.rows, tensor_.first_column, tensor_.columns};
      add(WeightPart::kExpertDown, part, tensor_.first_expert + i).to_row = i * tensor_.rows;
    }
  }

  // Published weights take [embedding, hidden state], the schedule [hidden state, embedding].
  void mtp_projection() {
    const std::int64_t h = model_.hidden;
    add(WeightPart::kMtpProjection, {0, h, 0, h}).to_column = h;
    add(WeightPart::kMtpProjection, {0, h, h, h});
  }

  const Tensor& tensor_;
  const Model& model_;
  WeightNaming naming_;
  std::vector<Piece> pieces_;
};

std::vector<Piece> PieceList::all() {
  const Mla& mla = model_.mla;
  switch (tensor_.role) {
    case Role::kEmbedding:
      block(WeightPart::kEmbedding);
      break;
    case Role::kHead:
      block(WeightPart::kHead);
      break;
    case Role::kAttentionNorm:
      vector(WeightPart::kAttentionNorm);
      break;
    case Role::kQkv:
      queries_keys_values();
      break;
    case Role::kQ:
      rotary(WeightPart::kQuery, mla.nope_dim + mla.rope_dim);
      break;
    case Role::kQA:
      block(WeightPart::kQueryDown);
      break;
    case Role::kQNorm:
      norm_of_heads(WeightPart::kQueryNorm, WeightPart::kQueryRowNorm, WeightPart::kQueryHeadNorm);
      break;
    case Role::kQB:
      rotary(WeightPart::kQueryUp, mla.nope_dim + mla.rope_dim);
      break;
    case Role::kKvA:
      rotary(WeightPart::kLatentDown, mla.kv_rank + mla.rope_dim);
      break;
    case Role::kKvNorm:
      norm_of_heads(WeightPart::kLatentNorm, WeightPart::kKeyRowNorm, WeightPart::kKeyHeadNorm);
      break;
    case Role::kKvB:
      block(WeightPart::kLatentUp);
      break;
    case Role::kO:
      block(WeightPart::kOutput);
      break;
    case Role::kMlpNorm:
      vector(WeightPart::kMlpNorm);
      break;
    case Role::kGateUp:
      gate_and_up(WeightPart::kGate, WeightPart::kUp);
      break;
    case Role::kDown:
      block(WeightPart::kDown);
      break;
    case Role::kRouter:
      block(WeightPart::kRouter);
      break;
    case Role::kSharedGateUp:
      gate_and_up(WeightPart::kSharedGate, WeightPart::kSharedUp);
      break;
    case Role::kSharedDown:
      block(WeightPart::kSharedDown);
      break;
    case Role::kSharedScore:
      block(WeightPart::kSharedScore);
      break;
    case Role::kExpertGateUp:
      expert_gate_and_up();
      break;
    case Role::kExpertDown:
      expert_down();
      break;
    case Role::kFinalNorm:
      vector(WeightPart::kFinalNorm);
      break;
    case Role::kMtpHiddenNorm:
      vector(WeightPart::kMtpHiddenNorm);
      break;
    case Role::kMtpEmbeddingNorm:
      vector(WeightPart::kMtpEmbeddingNorm);
      break;
    case Role::kMtpProjection:
      mtp_projection();
      break;
    case Role::kIndexer:  // its checkpoints are refused: unmapped_reason
    case Role::kIndexerKey:
    case Role::kIndexerNorm:
    case Role::kIndexerHeads:
    case Role::kNone:
    case Role::kInput:
    case Role::kLoss:
    case Role::kRope:
    case Role::kAttention:
    case Role::kGate:
    case Role::kExperts:
    case Role::kResidual:
    case Role::kPipeline:
    case Role::kDense:
    case Role::kCollective:
    case Role::kCache:
    case Role::kTokens:
    case Role::kDeltaGates:
    case Role::kConvolution:
    case Role::kDeltaRule:
    case Role::kDeltaNorm:
      CHECK(false, fmt::format("{} has no weights", to_string(tensor_.role)));
  }
  return std::move(pieces_);
}

}  // namespace

std::vector<Piece> pieces_of(const Tensor& parameter, const Model& model, WeightNaming naming) {
  return PieceList(parameter, model, naming).all();
}

std::int64_t stored_row(const Piece& piece, std::int64_t row) {
  if (piece.rotated == 0) return row;
  if (piece.first) return row - row % piece.head + (row + piece.rotated) % piece.head;
  const std::int64_t rotary = row % piece.head - (piece.head - piece.rotated);
  if (rotary < 0) return row;
  const std::int64_t half = piece.rotated / 2;
  return row - rotary + (rotary < half ? 2 * rotary : 2 * (rotary - half) + 1);
}

}  // namespace moebius
