// How hw/catalog/architectures.json is written.
#include <fmt/format.h>

#include "hw/json_text.h"
#include "workloads/cost/architecture.h"

namespace moebius {
namespace {

constexpr const char* kArchitectureNotes = R"(  "notes": [
    "Written by `moebius calibrate --from DIR --fit model --out FILE`, which fits the constants of every architecture that DIR has tables of and keeps the rest.",
    "generation: of the architecture whose chips this one's constants are fitted together with; without it, its own.",
    "structure: facts of the chips and of the kernels that libraries have for them. clock: where a chip's entry has none. operand_memory: bytes of operands that a core holds in flight (shared memory less what results take). attention_back: of the rate of attention's products forward, what those of its reverse pass reach (0.87 where not said). promoted_sums: how many times as long FP8 products take whose partial sums leave the tensor unit for FP32 on the way, as those of gradients do with one scale a tensor (1 where not said: it sums in FP32). row_step: rows that the products of a tile are padded to, where not to the whole tile. multicast: cores that share one load. l2_rate: bytes a cycle that the wires bring from L2 to a core. exponentials: a cycle and core; where cube and vector cores stand apart, scores that pass between them; 0: in no time of their own. scaling_lanes: FP32 lanes of a core that scale partial sums of block-scaled FP8 products and add them up, once for each scale along k; 0 where the tensor unit scales. micro_scales: the tensor unit takes a power of two for each 32 elements of its operands, as MX formats (OCP, 2023) have them; false where not said. core_stream: bytes a cycle that the threads of one core keep moving. decoded: weights of few bits that the lanes of a core turn into 16-bit operands a cycle; 0: in no time of their own. asynchronous: products run on while the core prepares the next step of k. serial: a core of a CPU, which computes and moves its operands one after the other. 16bit, 8bit, 4bit: output tiles of GEMM kernels, the least rows of those for experts that fill the cores (experts_m) and the most (most_experts_m, where not most_m), the most columns of products whose partial sums lanes scale (most_scaled_n, where not most_n: the sums stand in registers beside the results), and whether several cores share the k of one.",
    "constants: memory_latency, from a request to its data while others stream. step_cycles, of a core to prepare 128 bytes of k. energy, picojoule of a BF16 operation at 1 GHz; it grows with the square of the chip's clock, as the voltage does with the clock. attention, the share of the tensor peak that the products of fused attention reach. attention_latency, cycles before its first product and after its last.",
    "errors: medians of the relative errors on chips that the constants were not fitted to (`moebius calibrate --from DIR --model-errors`); of estimates, estimates. stream: of kernels that run at memory speed, which no table here tells: an estimate everywhere."
  ],
)";

std::string quantity(double value, const char* unit) {
  return json_string(fmt::format("{} {}", value, unit));
}

std::string tiles_text(const TileShapes& tiles) {
  const std::string most = tiles.most_experts_m < tiles.most_m
                               ? fmt::format("\"most_experts_m\": {}, ", tiles.most_experts_m)
                               : "";
  const std::string scaled =
      tiles.most_scaled_n > 0 ? fmt::format("\"most_scaled_n\": {}, ", tiles.most_scaled_n) : "";
  return fmt::format(
      R"({{"least_m": {}, "most_m": {}, "least_n": {}, "most_n": {}, {}"experts_m": {}, {}"cuts_k": {}}})",
      tiles.least_m, tiles.most_m, tiles.least_n, tiles.most_n, scaled, tiles.experts_m, most, tiles.cuts_k);
}

std::string structure_text(const Architecture& row) {
  std::string text = fmt::format(
      "        \"clock\": {}, \"operand_memory\": {}, \"multicast\": {}, \"l2_rate\": {}, \"exponentials\": "
      "{},\n"
      "        \"scaling_lanes\": {}, \"core_stream\": {}, \"decoded\": {}, \"asynchronous\": {}",
      quantity(row.clock / 1e9, "GHz"), quantity(row.operand_memory / 1000, "KB"), row.multicast, row.l2_rate,
      row.exponentials, row.scaling_lanes, row.core_stream, row.decoded, row.asynchronous);
  if (row.row_step > 0) text += fmt::format(", \"row_step\": {}", row.row_step);
  if (row.attention_back != Architecture{}.attention_back)
    text += fmt::format(", \"attention_back\": {}", row.attention_back);
  if (row.promoted_sums != 1) text += fmt::format(", \"promoted_sums\": {}", row.promoted_sums);
  if (row.micro_scales) text += ", \"micro_scales\": true";
  if (row.serial) text += ", \"serial\": true";
  for (std::size_t width = 0; width < row.tiles.size(); ++width)
    text += fmt::format(",\n        \"{}\": {}", kOperandWidthNames[width], tiles_text(row.tiles[width]));
  return text;
}

std::string constants_text(const Architecture& row) {
  return fmt::format(
      "\"memory_latency\": {}, \"step_cycles\": {:.3g}, \"energy\": {:.3g}, \"attention\": {:.3g}, "
      "\"attention_latency\": {:.3g}",
      json_string(fmt::format("{:.3g} us", row.memory_latency * 1e6)), row.step_cycles, row.energy * 1e12,
      row.attention, row.attention_latency);
}

std::string generation_text(const Architecture& row) {
  if (row.generation == row.name) return {};
  return fmt::format("      \"generation\": {},\n", json_string(row.generation));
}

std::string row_text(const Architecture& row) {
  return fmt::format(
      "    {}: {{\n{}      \"constants_are\": \"{}\",\n      \"source\": {},\n      \"structure\": {{\n{}\n"
      "      }},\n      \"constants\": {{{}}},\n      \"errors\": {{\"gemm\": {:.2g}, \"attention\": {:.2g}, "
      "\"experts\": {:.2g}, \"stream\": {:.2g}}}\n    }}",
      json_string(row.name), generation_text(row), row.estimated ? "estimates" : "fitted",
      json_string(row.source), structure_text(row), constants_text(row), row.error_gemm, row.error_attention,
      row.error_experts, row.error_stream);
}

}  // namespace

std::string architectures_text(const std::vector<Architecture>& rows) {
  std::string text = std::string("{\n") + kArchitectureNotes + "  \"architectures\": {\n";
  for (const Architecture& row : rows) {
    text += row_text(row);
    text += &row == &rows.back() ? "\n" : ",\n";
  }
  return text + "  }\n}\n";
}

}  // namespace moebius
