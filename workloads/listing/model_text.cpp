#include "workloads/listing/model_text.h"

#include <fmt/format.h>

#include "models/hf_config.h"
#include "workloads/listing/table_text.h"

namespace moebius {
namespace {

std::string attention_text(const Model& model) {
  std::string text = fmt::format("{} query, {} key-value", model.heads, model.kv_heads);
  if (model.attention != AttentionKind::kMla) text += fmt::format(", width {}", model.head_dim);
  return text;
}

std::string_view norm_text(QkNorm norm) {
  return norm == QkNorm::kNone ? "none" : norm == QkNorm::kPerHead ? "of each head" : "of all heads together";
}

std::string_view block_text(ParallelBlock block) {
  return block == ParallelBlock::kNone      ? "one after the other"
         : block == ParallelBlock::kOneNorm ? "side by side, of one norm"
                                            : "side by side, each with its norm";
}

std::string span_text(const Model& model) {
  if (model.sliding_window == 0 && model.attention_chunk == 0) return "all tokens";
  std::string text = model.sliding_window > 0 ? fmt::format("the last {} tokens", model.sliding_window)
                                              : fmt::format("its block of {} tokens", model.attention_chunk);
  if (model.full_attention_every > 0)
    text += fmt::format("; in one layer of {} to all", model.full_attention_every);
  return text;
}

std::string positions_text(const Model& model) {
  if (model.no_rotary_every == 1) return "turn no queries and keys";
  return fmt::format("turn queries and keys, but not in one layer of {}", model.no_rotary_every);
}

// In the unit that suits the whole of its model; "-": it has none.
std::string counted(double parameters, double total) {
  if (parameters == 0) return "-";
  if (total < 1e6) return fmt::format("{:.2f} K", parameters * 1e-3);
  return total < 1e9 ? fmt::format("{:.2f} M", parameters * 1e-6) : billions(parameters);
}

std::string experts_text(const Model& model) {
  if (model.experts.routed == 0) return "-";
  return fmt::format("{} routed, {} active, {} shared{}, width {}", model.experts.routed,
                     model.experts.active, model.experts.shared,
                     model.experts.shared_gate ? " with a gate" : "", model.experts.width);
}

// Of some publishers, one of both or neither.
std::string published_text(const Published& published) {
  if (published.parameters == 0) return "-";
  const std::string active =
      published.active > 0 ? fmt::format(", {} active", billions(published.active)) : "";
  return billions(published.parameters) + active;
}

}  // namespace

std::string billions(double parameters) {
  return fmt::format("{:.2f} B", parameters * 1e-9);
}

std::string model_text(const Model& model) {
  std::string text = heading(model.id, model.aliases, "model");
  if (!model.unsupported.empty())
    return text + "cannot run: " + model.unsupported + "\nsource: " + model.source + "\n";
  const ParameterCount count = count_parameters(model);
  const auto in_unit = [&](double parameters) { return counted(parameters, count.total()); };
  TextTable table{
      {"layers",
       fmt::format("{} ({} dense first), {} MTP", model.layers, model.first_dense, model.mtp_layers)},
      {"hidden", std::to_string(model.hidden)},
      {"heads", attention_text(model)},
      {"attention and MLP", std::string(block_text(model.parallel_block))},
      {"norm of queries and keys", std::string(norm_text(model.qk_norm))},
      {"a token attends to", span_text(model)},
      {"experts", experts_text(model)},
      {"vocabulary", std::to_string(model.vocabulary)},
      {"parameters", in_unit(count.total())},
      {"  embedding and head", in_unit(count.embedding + count.head)},
      {"  attention", in_unit(count.attention)},
      {"  dense MLPs", in_unit(count.dense_mlp)},
      {"  experts, router", in_unit(count.routed_experts + count.shared_experts + count.router)},
      {"  MTP, beside the total", in_unit(count.mtp)},
      {"active parameters", in_unit(active_parameters(model))},
      {"published", published_text(model.published)},
      {"source", fmt::format("{} ({})", model.source, model.status)}};
  if (model.no_rotary_every > 0) table.push_back({"positions", positions_text(model)});
  if (!model.note.empty()) table.push_back({"note", model.note});
  return text + aligned(table);
}

std::string imported_text(const Model& model) {
  return is_imported(model) ? "\n" + model_text(model) : "";
}

}  // namespace moebius
