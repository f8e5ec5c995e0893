// cuBLASLt: BF16 or e4m3 operands, FP32 sums, BF16 or FP32 results. It counts columns first: a row-major c =
// a b is its column-major c^T = b^T a^T, so that b is its first operand, and what is row-major [rows,
// columns] is its columns x rows with `columns` as leading dimension.
#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "hw/error.h"
#include "real/cuda/gemm_library.h"
#include "real/cuda/shared_library.h"

namespace moebius::cuda {
namespace {

// The functions in use, each of the type that the header gives it.
struct Functions {
  decltype(::cublasLtCreate)* create;
  decltype(::cublasLtDestroy)* destroy;
  decltype(::cublasLtGetVersion)* version;
  decltype(::cublasLtMatmul)* matmul;
  decltype(::cublasLtMatmulDescCreate)* create_product;
  decltype(::cublasLtMatmulDescDestroy)* destroy_product;
  decltype(::cublasLtMatmulDescSetAttribute)* set_product;
  decltype(::cublasLtMatrixLayoutCreate)* create_layout;
  decltype(::cublasLtMatrixLayoutDestroy)* destroy_layout;
  decltype(::cublasLtMatmulPreferenceCreate)* create_preference;
  decltype(::cublasLtMatmulPreferenceDestroy)* destroy_preference;
  decltype(::cublasLtMatmulPreferenceSetAttribute)* set_preference;
  decltype(::cublasLtMatmulAlgoGetHeuristic)* heuristic;

  explicit Functions(const SharedLibrary& library) {
    library.find("cublasLtCreate", create);
    library.find("cublasLtDestroy", destroy);
    library.find("cublasLtGetVersion", version);
    library.find("cublasLtMatmul", matmul);
    library.find("cublasLtMatmulDescCreate", create_product);
    library.find("cublasLtMatmulDescDestroy", destroy_product);
    library.find("cublasLtMatmulDescSetAttribute", set_product);
    library.find("cublasLtMatrixLayoutCreate", create_layout);
    library.find("cublasLtMatrixLayoutDestroy", destroy_layout);
    library.find("cublasLtMatmulPreferenceCreate", create_preference);
    library.find("cublasLtMatmulPreferenceDestroy", destroy_preference);
    library.find("cublasLtMatmulPreferenceSetAttribute", set_preference);
    library.find("cublasLtMatmulAlgoGetHeuristic", heuristic);
  }
};

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw run_error(std::string("cuBLASLt: ") + call + ": status " +
                    std::to_string(static_cast<int>(status)));
  }
}

cudaDataType_t type_of(Storage storage) {
  return storage == Storage::kFp32 ? CUDA_R_32F : CUDA_R_16BF;
}

char* first_element(const Operand& x) {
  return static_cast<char*>(x.data) + x.first_row * x.columns * element_size(x.storage);
}

constexpr int kFp8Alignment = 16;

// What a choice of algorithm depends on; addresses count by their alignment.
using Key = std::array<std::int64_t, 8>;

int alignment_of(const Operand& x) {
  const auto address = reinterpret_cast<std::uintptr_t>(first_element(x));
  int alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

Key key_of(const Gemm& g) {
  return {g.m(),
          g.n(),
          g.k(),
          g.a_transposed + 2 * g.b_transposed + 4 * g.accumulate +
              8 * (g.bias.data != nullptr ? alignment_of(g.bias) : 0),
          static_cast<int>(g.c.storage),
          alignment_of(g.a),
          alignment_of(g.b),
          alignment_of(g.c)};
}

// The forms of the scales count, beside the sizes; addresses are at 16 bytes.
Key key_of(const Fp8Product& p) {
  const int forms = static_cast<int>(p.a.form) + 2 * static_cast<int>(p.b.form) + 4 * p.accumulate;
  return {p.m, p.n, p.k, forms, static_cast<int>(p.c.storage), kFp8Alignment, kFp8Alignment, -1};
}

// The choice of an algorithm looks at whether there are scales, and nothing reads them then.
const float* scales_of(const Fp8Side& side) {
  return side.scales != nullptr ? side.scales : reinterpret_cast<const float*>(kFp8Alignment);
}

cublasLtMatmulMatrixScale_t mode_of(ScaleForm form) {
  return form == ScaleForm::kBlocks ? CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
                                    : CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
}

// The descriptions of one product, for the length of a call.
class Description {
 public:
  // The library's first operand is b, whose rows are its columns: k along the leading dimension in both.
  Description(const Functions& functions, const Fp8Product& p) : f_(functions) {
    check(f_.create_product(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "MatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode_of(p.b.form));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode_of(p.a.form));
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales_of(p.b));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales_of(p.a));
    check(f_.create_layout(&first, CUDA_R_8F_E4M3, p.k, p.n, p.k), "MatrixLayoutCreate");
    check(f_.create_layout(&second, CUDA_R_8F_E4M3, p.k, p.m, p.k), "MatrixLayoutCreate");
    layout(result, p.c);
  }
  Description(const Functions& functions, const Gemm& g) : f_(functions) {
    check(f_.create_product(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "MatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, g.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, g.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (g.bias.data != nullptr) set_bias(g.bias);
    layout(first, g.b);
    layout(second, g.a);
    layout(result, g.c);
  }
  ~Description() {
    for (const cublasLtMatrixLayout_t made : {first, second, result}) {
      if (made != nullptr) f_.destroy_layout(made);
    }
    if (product != nullptr) f_.destroy_product(product);
  }
  Description(const Description&) = delete;

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(f_.set_product(product, attribute, &value, sizeof value), "MatmulDescSetAttribute");
  }
  // One for each row of its result, which is a column of ours.
  void set_bias(const Operand& bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(first_element(bias)));
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(bias.storage));
  }
  void layout(cublasLtMatrixLayout_t& made, const Operand& x) {
    check(f_.create_layout(&made, type_of(x.storage), x.columns, x.rows, x.columns), "MatrixLayoutCreate");
  }

  const Functions& f_;
};

class CublasLt : public GemmLibrary {
 public:
  explicit CublasLt(const std::vector<std::string>& names) : library_(names), f_(library_) {
    check(f_.create(&handle_), "Create");
  }
  ~CublasLt() override { f_.destroy(handle_); }

  std::size_t workspace_bytes() const override {
    return std::size_t{32} << 20;
  }  // what NVIDIA advises for Hopper
  std::string description() const override {
    const std::size_t version = f_.version();
    return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
           std::to_string(version % 100);
  }

  bool multiply(Stream stream, const Gemm& g, void* workspace) override {
    const bool formats =
        g.a.storage == Storage::kBf16 && g.b.storage == Storage::kBf16 && !is_scaled(g.c.storage);
    if (!formats || g.m() == 0 || g.n() == 0 || g.k() == 0) return false;
    const Description d(f_, g);
    const std::optional<cublasLtMatmulAlgo_t> algorithm =
        algorithm_of(key_of(g), d, {alignment_of(g.b), alignment_of(g.a), alignment_of(g.c)});
    if (!algorithm) return false;
    give(stream, d, {first_element(g.b), first_element(g.a), first_element(g.c), g.accumulate}, *algorithm,
         workspace);
    return true;
  }

  bool takes(const Fp8Product& shape) override {
    return algorithm_of(key_of(shape), Description(f_, shape), kFp8Alignments).has_value();
  }

  void multiply(Stream stream, const Fp8Product& p, void* workspace) override {
    const Description d(f_, p);
    const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithm_of(key_of(p), d, kFp8Alignments);
    CHECK(algorithm, "a product of 8 bits that the library does not take");
    give(stream, d, {p.b.codes, p.a.codes, first_element(p.c), p.accumulate}, *algorithm, workspace);
  }

 private:
  struct Addresses {
    const void *first, *second;
    void* result;
    bool accumulate;
  };
  struct Alignments {
    int first, second, result;
  };
  static constexpr Alignments kFp8Alignments = {kFp8Alignment, kFp8Alignment, kFp8Alignment};

  void give(Stream stream, const Description& d, const Addresses& at, const cublasLtMatmulAlgo_t& algorithm,
            void* workspace) {
    const float one = 1, before = at.accumulate ? 1 : 0;
    check(f_.matmul(handle_, d.product, &one, at.first, d.first, at.second, d.second, &before, at.result,
                    d.result, at.result, d.result, &algorithm, workspace, workspace_bytes(),
                    reinterpret_cast<cudaStream_t>(stream)),
          "Matmul");
  }

  std::optional<cublasLtMatmulAlgo_t> algorithm_of(const Key& key, const Description& d,
                                                   const Alignments& alignments) {
    std::lock_guard lock(mutex_);
    const auto [found, fresh] = algorithms_.try_emplace(key);
    if (fresh) found->second = choose(d, alignments);
    return found->second;
  }

  std::optional<cublasLtMatmulAlgo_t> choose(const Description& d, const Alignments& alignments) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(f_.create_preference(&preference), "MatmulPreferenceCreate");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(f_.set_preference(preference, attribute, &value, sizeof value), "MatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes()));
    // Parts along k are summed in FP32: rounded to BF16 one by one they miss by up to a hundredth of the rms.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignments.first));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignments.second));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignments.result));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignments.result));
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    const cublasStatus_t status =
        f_.heuristic(handle_, d.product, d.first, d.second, d.result, d.result, preference, 1, &best, &count);
    f_.destroy_preference(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || best.state != CUBLAS_STATUS_SUCCESS)
      return std::nullopt;
    return best.algo;
  }

  SharedLibrary library_;
  Functions f_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> algorithms_;
};

}  // namespace

std::unique_ptr<GemmLibrary> open_gemm_library(std::string& reason) {
  try {
    return std::make_unique<CublasLt>(std::vector<std::string>{
        "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so"});
  } catch (const Error& error) {
    reason = error.what();
    return nullptr;
  }
}

}  // namespace moebius::cuda
