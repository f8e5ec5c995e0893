// The vocabulary in which catalog entries and scenario changes describe an architecture
// (models/catalog/README.md), and the bounds of its numbers, which hold for Hugging Face configurations too.
#pragma once

#include "hw/reader.h"
#include "models/model.h"

namespace moebius {

// Generous for decades, small enough that no product of two sizes overflows an int or a loop over layers
// hurts.
inline constexpr double kMaxLayers = 10'000;
inline constexpr double kMaxHidden = 1'000'000;
inline constexpr double kMaxHeads = 10'000;
inline constexpr double kMaxHeadDim = 10'000;
inline constexpr double kMaxConvolution = 1'000;
inline constexpr double kMaxWidth = 10'000'000;
inline constexpr double kMaxExperts = 100'000;
inline constexpr double kMaxShared = 100;
inline constexpr double kMaxVocabulary = 100'000'000;
inline constexpr double kMaxLength = 1'000'000'000;

// The architecture fields of `reader` laid over `base`; a base without layers is empty, and what every model
// needs is then required. Does not finish() the reader. Fails with the exact sentence when the result is
// inconsistent.
Model read_architecture(Reader& reader, const Model& base);

// Fails at `place` when the sizes of the model do not go together.
void require_consistent(const Model& model, const Place& place);

}  // namespace moebius
