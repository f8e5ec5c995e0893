// cuBLASLt: BF16 operands, FP32 sums, BF16 or FP32 results. It counts columns first: a row-major c = a b is
// its column-major c^T = b^T a^T, so that b is its first operand, and what is row-major [rows, columns] is
// its columns x rows with `columns` as leading dimension.
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
          g.a_transposed + 2 * g.b_transposed + 4 * g.accumulate,
          static_cast<int>(g.c.storage),
          alignment_of(g.a),
          alignment_of(g.b),
          alignment_of(g.c)};
}

// The descriptions of one product, for the length of a call.
class Description {
 public:
  Description(const Functions& functions, const Gemm& g) : f_(functions) {
    check(f_.create_product(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "MatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, g.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, g.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
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
  void set(cublasLtMatmulDescAttributes_t attribute, cublasOperation_t value) {
    check(f_.set_product(product, attribute, &value, sizeof value), "MatmulDescSetAttribute");
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
    const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithm_of(g, d);
    if (!algorithm) return false;
    const float one = 1, before = g.accumulate ? 1 : 0;
    check(f_.matmul(handle_, d.product, &one, first_element(g.b), d.first, first_element(g.a), d.second,
                    &before, first_element(g.c), d.result, first_element(g.c), d.result, &*algorithm,
                    workspace, workspace_bytes(), reinterpret_cast<cudaStream_t>(stream)),
          "Matmul");
    return true;
  }

 private:
  std::optional<cublasLtMatmulAlgo_t> algorithm_of(const Gemm& g, const Description& d) {
    std::lock_guard lock(mutex_);
    const auto [found, fresh] = algorithms_.try_emplace(key_of(g));
    if (fresh) found->second = choose(g, d);
    return found->second;
  }

  std::optional<cublasLtMatmulAlgo_t> choose(const Gemm& g, const Description& d) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(f_.create_preference(&preference), "MatmulPreferenceCreate");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(f_.set_preference(preference, attribute, &value, sizeof value), "MatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes()));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment_of(g.b)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment_of(g.a)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment_of(g.c)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment_of(g.c)));
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
