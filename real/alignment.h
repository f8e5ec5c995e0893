// Two dumps of activations, layer by layer: where does a run part from its reference?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

// The coarsest arithmetic of the two dumps, which says how far they may differ.
enum class Precision : std::uint8_t { kFp32, kBf16, kFp8 };
std::string_view to_string(Precision precision);

// Largest mean relative difference after `blocks` blocks (attention, MLP) for two right computations that
// round and add up differently. Each block adds an error u of its own to what it was given; in a residual
// stream, whose square grows with the blocks, such errors add up to u * sqrt(1 + 1/2 + ... + 1/n) <= u *
// sqrt(1 + ln n) while they are independent. Four times that are allowed, since those of a trained model are
// not. The error u of one block:
//   bf16  2^-8: about ten roundings one after the other, of at most 2^-9 each
//   fp8   2^-4: e4m3 keeps three bits behind the first, 2^-4 at most and 2.6% in the mean square; two
//   operands and three
//         products one after the other
//   fp32  2^-17: 24 bits, half the bits of a sum of 2^14 products lost to another order
double tolerance(Precision precision, int blocks);

struct AlignedLayer {
  std::string name;
  double cosine = 0;
  double max_abs = 0;        // largest difference of an element
  double mean_relative = 0;  // mean difference over the mean magnitude of the reference
  double allowed = 0;        // of mean_relative
  bool drifts() const { return !(mean_relative <= allowed); }  // not a number drifts too
};

struct Alignment {
  Precision precision = Precision::kFp32;
  std::vector<AlignedLayer> layers;  // in the order of computation
  std::vector<std::string> only_in_run, only_in_reference;
  const AlignedLayer* first_drift() const;  // null: aligned
};

// Of two safetensors files, tensors of the same name. input_error when they have none in common, when shapes
// differ (but for leading ones), when tensors are no floating numbers, or when they are of different tokens.
Alignment align(const std::string& run, const std::string& reference);

std::string to_text(const Alignment& alignment);

}  // namespace moebius
