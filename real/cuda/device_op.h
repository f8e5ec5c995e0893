// What the implementation of one op on a device sees: its operands, where its results go, its stream. It also
// keeps the order: work of an op waits for whoever wrote what it reads and touched what it writes, on
// whatever lane that was.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "real/cuda/device_route.h"
#include "real/cuda/device_store.h"
#include "real/cuda/gemm_library.h"
#include "real/cuda/kernels.h"
#include "real/host/op_context.h"
#include "workloads/schedule/layout.h"

namespace moebius::cuda {

// How the products of all experts are given to the device.
enum class GroupedPath : std::uint8_t {
  kLoop,     // one after the other, each as a product of its own
  kGraph,    // kLoop as one CUDA graph; BF16 only, since 8-bit products take memory on their way
  kGrouped,  // one launch of the kernel on tensor cores; kLoop where it does not take the formats
};

// Who moves what members of a group on several devices exchange.
enum class ExchangeBy : std::uint8_t {
  kOwn,   // own copies and sums, members in order: the bits of one device
  kNccl,  // NCCL, where it is there and every member of a group has a device of its own; else kOwn
};

struct CudaOptions {
  std::uint64_t seed = 1;  // of parameters and data
  AdamSettings adam = {};
  Constants constants = {};
  const PromptBook* prompts = nullptr;  // serving: which prompts begin alike; null: none do
  StartingValues weights = {};          // of parameters; empty: drawn from the seed
  StackedRowsOf stacked = {};           // of parameters that are drawn; empty: each is one matrix
  StartingStates states = {};           // of a run that goes on
  OpObserver observer = {};  // hears of every op once the device has done it, in the threads of the ranks
  bool library_gemm = true;  // cuBLASLt where it has the product
  bool tensor_cores = true;  // own kernels on tensor cores; without: the plain ones
  std::optional<GroupedPath> grouped = {};  // not said: see grouped_path()
  ExchangeBy exchange = ExchangeBy::kNccl;
  bool turns = false;   // ranks of a device compute one op at a time, so that each op's time is its own
  bool poison = false;  // new memory holds NaN, so that what no kernel writes shows
};

StoreOptions store_options(std::int32_t rank, const RankClass* place, const CudaOptions& options);

// Doubles in the host's memory that the device writes to.
class LossSlots {
 public:
  ~LossSlots();
  double* take();
  void give(double* slot);

 private:
  std::mutex mutex_;
  std::vector<void*> pages_;
  std::vector<double*> free_;
};

// Who computes on a device when its ranks take turns: the kernels of an op begin when those of the op before
// are done.
struct DeviceTurns {
  std::mutex mutex;  // held while an op's kernels are given
  EventRef last;     // of the op before
};

// One rank's share of a device. Touched by its own thread only, but for what says otherwise.
struct DeviceRank {
  DeviceRank(std::int32_t number, const RankClass& its_place, const CudaOptions& given_options,
             GemmLibrary* gemms);
  ~DeviceRank();
  Stream stream(Lane lane);  // made when first asked for

  std::int32_t rank;
  int device = 0;                             // where it stands
  const std::vector<int>* devices = nullptr;  // where every rank stands; null: all on this device
  int device_of(std::int32_t other) const { return devices == nullptr ? device : (*devices)[other]; }
  const RankClass* place;
  const CudaOptions* options;
  GemmLibrary* library;            // null: none
  DeviceTurns* turns = nullptr;    // shared by the ranks of the device; null: they compute side by side
  EventPool events;                // any thread
  DeviceMemory memory;             // any thread
  DeviceMemory host_memory{true};  // any thread: of tensors that stand in the memory of the host
  LossSlots losses;                // any thread
  DeviceStore store;
  DeviceRoutes routes;
  Stream upload = nullptr;
  std::array<Stream, kNumLanes> streams = {};
  std::array<TensorRef, kNumLanes> workspaces = {};  // of the library
  std::map<std::array<int, 3>, Graph> graphs;        // by kind, layer and role of an op
};

// An op that has been given to the device.
struct IssuedOp {
  EventRef start, end;
  EventRef met;            // communication: all members are there
  double* loss = nullptr;  // a slot that holds what it adds to the loss
  double sent_bytes = 0;
};

class DeviceOp {
 public:
  DeviceOp(DeviceRank& rank, const Submission& submission, std::int32_t index);

  const Op& op() const { return op_; }
  const Shape& shape() const { return op_.shape; }
  const Submission& submission() const { return submission_; }
  const CudaOptions& options() const { return *rank_.options; }
  DeviceRank& rank() { return rank_; }
  Stream stream() const { return stream_; }
  IssuedOp& issued() { return issued_; }

  // An absent group is the rank alone.
  const Group& group(GroupRole role) const { return rank_.place->group(role); }
  int index_in(GroupRole role) const { return group(role).my_index; }
  int size_of(GroupRole role) const { return std::max<int>(1, static_cast<int>(group(role).ranks.size())); }

  std::int32_t input_id(int i) const { return submission_.fragment->input(op_, i); }
  std::int32_t output_id(int i) const { return submission_.fragment->output(op_, i); }
  const Tensor& input_tensor(int i) const { return rank_.store.describe(input_id(i)); }
  const Tensor& output_tensor(int i) const { return rank_.store.describe(output_id(i)); }

  // An input as it is stored; parameters appear with their initial values when first touched.
  Operand in(int i) { return in_tensor(input_id(i)); }
  Operand in_tensor(std::int32_t tensor);
  // The same without scales: a copy in FP32 where the tensor has some.
  Operand plain_in(int i) { return plain(in(i)); }
  Operand plain(const Operand& x);
  // Where a kernel puts a result, in FP32 or BF16. It becomes the output, in its own format, at finish().
  Operand out(int i, std::int64_t rows, std::int64_t columns);
  Operand out(int i, const Operand& like) { return out(i, like.rows, like.columns); }
  // The same for kernels that write `storage` themselves, when that is the output's format (or its other
  // orientation).
  Operand out_stored(int i, std::int64_t rows, std::int64_t columns, Storage storage);
  // What a tensor holds, zeros or its initial value, to be changed in place (without scales: see out()).
  Operand edit(int i) { return edit_tensor(output_id(i)); }
  Operand edit_tensor(std::int32_t tensor);
  Operand edit_stored(std::int32_t tensor);  // as it is stored, with its scales
  bool holds(std::int32_t tensor) const { return rank_.store.find(tensor) != nullptr; }
  Operand scratch(std::int64_t rows, std::int64_t columns, Storage storage = Storage::kFp32);
  // A tensor like `x` on the device or in the memory of the host, for output i.
  Operand out_like(int i, const Operand& x);
  TensorRef make(std::int64_t rows, std::int64_t columns, Storage storage, std::int64_t period = 0);
  // y, without scales, = what a parameter starts from, before rounding: the elements of all of it from
  // `first` on.
  void initial_part(const Tensor& parameter, std::int64_t first, const Operand& y);
  void upload(const std::vector<float>& values, const Operand& to);  // FP32
  // Keeps a tensor of the caller's until the op has run.
  void touch(const TensorRef& tensor) { touched_.push_back(tensor); }

  // The route as this member of the expert group executes it.
  const DeviceRoute& route();

  EventRef mark() { return rank_.events.recorded(stream_); }
  // Makes outputs of what was written, and records the end. From here the tensors may be used by others.
  IssuedOp finish();

 private:
  struct Result {
    std::int32_t tensor;
    TensorRef value;
    Operand written;  // by kernels; quantised into value when that is another place
  };
  void wait_for_writer(const DeviceTensor& tensor);
  void wait_for_users(const DeviceTensor& tensor);
  void wait_for_operands();
  TensorRef ensure(std::int32_t tensor);
  void fill_initial(const Tensor& description, const TensorRef& value);
  void draw(const Tensor& parameter, std::int64_t first, const Operand& y);  // from the seed
  TensorRef to_host(const TensorRef& value);

  DeviceRank& rank_;
  const Submission& submission_;
  const Op& op_;
  Stream stream_;
  std::unique_lock<std::mutex> turn_;
  IssuedOp issued_;
  std::vector<TensorRef> touched_, written_;
  std::vector<Result> results_;
  DeviceRoutePtr route_;
};

// Gives a compute op to the device.
void compute(DeviceOp& c);
// Kinds of attention, of routed experts, the optimizer, of serving and where tokens enter and leave;
// compute() calls them.
void compute_attention(DeviceOp& c);
void compute_routed(DeviceOp& c);
void compute_tokens(DeviceOp& c);
void compute_adam(DeviceOp& c);
void compute_sum_squares(DeviceOp& c);
void compute_batch(DeviceOp& c);
// kInput and kAttention of a batch; the positions of its rows on the device, null when the op has none.
void input_of_batch(DeviceOp& c);
void attend_in_batch(DeviceOp& c);
// On tensor cores where those take it.
void attend_by_shape(DeviceOp& c, const Attention& a, const Operand& o, const Operand& lse);
// kConvolution and kDeltaRule.
void convolve_batch(DeviceOp& c);
void delta_rule_of_batch(DeviceOp& c);
// Indices in the device's memory until the op has run.
const std::int32_t* on_device(DeviceOp& c, const std::vector<std::int32_t>& indices);
const std::int32_t* positions_of_batch(DeviceOp& c);
// What was asked for; else one launch for 8 bits, whose experts seldom begin where a block of scales does, as
// the library wants, and the loop for BF16, where the library's kernels are faster than ours once experts are
// large.
GroupedPath grouped_path(const CudaOptions& options, const Gemm& product);
// Takes what multiply() will need beside its operands, where they are BF16.
void reserve_workspace(DeviceOp& c);
// c = a b by the library where it can, else by the plain kernel.
void multiply(DeviceOp& c, const Gemm& product);

}  // namespace moebius::cuda
