// A matrix library for the rehearsal: 8-bit products as cuBLASLt's documentation states them, so that what is
// prepared for it is read in the order that it expects. BF16 is left to the plain kernel.
#include "real/cuda/gemm_library.h"

#include <vector>

#include "hw/error.h"
#include "real/cuda/rehearsal.h"

namespace moebius::cuda {
namespace {

// Element (row, depth) of an operand of `rows` x k.
float element(const Fp8Side& side, std::int64_t rows, std::int64_t k, std::int64_t row, std::int64_t depth) {
  const std::int64_t blocks_along_k = (k + 127) / 128, padded = (blocks_along_k + 3) / 4 * 4;
  const float scale = side.form == ScaleForm::kVectors ? side.scales[depth / 128 * rows + row]
                                                       : side.scales[row / 128 * padded + depth / 128];
  return from_e4m3(side.codes[row * k + depth]) * scale;
}

bool at_16_bytes(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

class RehearsedLibrary : public GemmLibrary {
 public:
  bool multiply(Stream, const Gemm&, void*) override { return false; }
  bool takes(const Fp8Product& p) override {
    return p.m % 4 == 0 && p.n % 8 == 0 && p.k % 16 == 0 &&
           !(p.a.form == ScaleForm::kBlocks && p.b.form == ScaleForm::kBlocks);
  }
  void multiply(Stream stream, const Fp8Product& p, void*) override {
    CHECK(takes(p) && at_16_bytes(p.a.codes) && at_16_bytes(p.b.codes) && at_16_bytes(p.a.scales) &&
              at_16_bytes(p.b.scales),
          "a product that cuBLASLt would refuse");
    enqueue(stream, [=] {
      for (std::int64_t row = 0; row < p.m; ++row) {
        for (std::int64_t column = 0; column < p.n; ++column) {
          double sum = p.accumulate ? load(p.c, row, column) : 0.0;
          for (std::int64_t d = 0; d < p.k; ++d) {
            sum += static_cast<double>(element(p.a, p.m, p.k, row, d)) * element(p.b, p.n, p.k, column, d);
          }
          store(p.c, row * p.n + column, static_cast<float>(sum));
        }
      }
    });
  }
  std::size_t workspace_bytes() const override { return 4; }
  std::string description() const override { return "rehearsed library"; }
};

}  // namespace

std::unique_ptr<GemmLibrary> open_gemm_library(std::string&) {
  return std::make_unique<RehearsedLibrary>();
}

}  // namespace moebius::cuda
