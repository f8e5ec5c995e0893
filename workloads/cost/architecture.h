// What the analytic model knows of an architecture (one row per value of Accelerator::architecture): facts of
// its structure, and five constants that `moebius calibrate --fit model` fits to kernel measurements, never
// to a system. The rows stand in hw/catalog/architectures.json.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "hw/dtype.h"

namespace moebius {

// The output tiles that GEMM kernels of one operand width come in: powers of two times the least.
struct TileShapes {
  double least_m = 64, most_m = 128, least_n = 64, most_n = 256;
  // The least of grouped products whose tiles fill the cores, taken where it holds the rows of every expert:
  // their kernels come in fewer shapes than those of single products.
  double experts_m = 128;
  double most_experts_m = 128;  // most_m of grouped products
  bool cuts_k = false;          // libraries let several cores share the k of one tile
  // The widest of products whose partial sums general lanes scale, which stand in registers beside the
  // results; 0: most_n.
  double most_scaled_n = 0;
};

enum class OperandWidth : std::uint8_t { k16Bit, k8Bit, k4Bit };  // wider types count as 16 bits
OperandWidth operand_width(DType dtype);
inline constexpr std::array<std::string_view, 3> kOperandWidthNames = {"16bit", "8bit", "4bit"};

struct Architecture {
  std::string name;        // "hopper"
  std::string generation;  // that shares the fitted constants; the name, where it shares with no other
  // Structure.
  double clock = 0;                   // Hz; used when the catalog has none for the chip
  std::array<TileShapes, 3> tiles{};  // by OperandWidth
  double operand_memory = 0;          // bytes of operands that a core holds in flight for its products
  double row_step = 0;                // rows of a tile that products are padded to; 0: to the whole tile
  double multicast = 1;               // cores that share what one of them loads
  double l2_rate = 0;                 // bytes per cycle that the wires bring from L2 to a core
  double exponentials = 0;            // per cycle and core; 0: beside the products, in no time of their own
  double scaling_lanes = 0;           // partial FP8 sums that general lanes scale a cycle; 0: the unit scales
  double core_stream = 0;             // bytes per cycle that one core's threads keep moving
  double decoded = 0;                 // weights of few bits that its lanes decode a cycle; 0: in no time
  double attention_back = 0.87;       // of the rate of attention's products forward, what those back reach
  double promoted_sums = 1;   // times that FP8 products take whose sums leave the unit for FP32 on the way
  bool serial = false;        // a CPU's core: computes, then reads and writes (serial_model.cpp)
  bool micro_scales = false;  // tensor units take a power of two for each 32 elements (MX formats of OCP)
  bool asynchronous = false;  // products run on while the core prepares the next step
  // Fitted.
  double memory_latency = 0;     // seconds from a request to its data while others stream
  double step_cycles = 0;        // of a core to prepare one step of the k-loop
  double energy = 0;             // joule of one BF16 operation at 1 GHz; grows with the clock's square
  double attention = 0;          // share of the peak that the products of fused attention reach
  double attention_latency = 0;  // cycles before its first product and after its last
  // Expected relative errors: medians on chips that the constants were not fitted to.
  float error_gemm = 0, error_attention = 0, error_experts = 0, error_stream = 0;
  bool estimated = false;  // no kernel table tells the constants
  std::string source;
};

// Null for an architecture without a row: the plain roofline answers for it.
const Architecture* find_architecture(std::string_view name);

// The rows of a file of the form of hw/catalog/architectures.json; errors as Reader's.
std::vector<Architecture> read_architectures(const Document& document);
// The embedded ones, in the order of the file.
const std::vector<Architecture>& shipped_architectures();
// The text of such a file; reads back as the same rows.
std::string architectures_text(const std::vector<Architecture>& rows);

}  // namespace moebius
