#include "real/cuda/device_op.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/kernels_initial.h"
#include "real/initial_values.h"

namespace moebius::cuda {

LossSlots::~LossSlots() {
  for (void* page : pages_) release_pinned(page);
}

double* LossSlots::take() {
  constexpr int kSlots = 512;
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    pages_.push_back(allocate_pinned(kSlots * sizeof(double)));
    for (int i = 0; i < kSlots; ++i) free_.push_back(static_cast<double*>(pages_.back()) + i);
  }
  double* slot = free_.back();
  free_.pop_back();
  return slot;
}

void LossSlots::give(double* slot) {
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

namespace {

std::size_t value_bytes(const Operand& x) {
  return static_cast<std::size_t>(x.elements() * element_size(x.storage));
}
std::size_t scale_bytes(const Operand& x) {
  return sizeof(float) * static_cast<std::size_t>(num_scales(x));
}

}  // namespace

StoreOptions store_options(std::int32_t rank, const RankClass* place, const CudaOptions& options) {
  StoreOptions store{options.seed, false, options.weights, options.stacked, {}, place};
  if (options.states)
    store.states = [&states = options.states, rank](const Tensor& state) { return states(rank, state); };
  return store;
}

DeviceRank::DeviceRank(std::int32_t number, const RankClass& its_place, const CudaOptions& given_options,
                       GemmLibrary* gemms)
    : rank(number),
      place(&its_place),
      options(&given_options),
      library(gemms),
      store(store_options(number, &its_place, given_options)),
      upload(make_stream()) {}

DeviceRank::~DeviceRank() {
  for (const Stream stream : streams) {
    if (stream != nullptr) destroy(stream);
  }
  destroy(upload);
  for (const auto& [op, graph] : graphs) destroy(graph);
}

Stream DeviceRank::stream(Lane lane) {
  Stream& stream = streams[static_cast<int>(lane)];
  if (stream == nullptr) stream = make_stream();
  return stream;
}

DeviceOp::DeviceOp(DeviceRank& rank, const Submission& submission, std::int32_t index)
    : rank_(rank),
      submission_(submission),
      op_(submission.fragment->ops[index]),
      stream_(rank.stream(op_.lane)) {
  wait_for_operands();
  if (rank_.turns != nullptr && !is_communication(op_.kind)) {
    turn_ = std::unique_lock(rank_.turns->mutex);
    if (rank_.turns->last) wait(stream_, rank_.turns->last);
  }
  issued_.start = mark();
}

void DeviceOp::wait_for_writer(const DeviceTensor& tensor) {
  if (tensor.written && tensor.writer_lane != op_.lane) wait(stream_, tensor.written);
}

void DeviceOp::wait_for_users(const DeviceTensor& tensor) {
  for (int lane = 0; lane < kNumLanes; ++lane) {
    if (tensor.used[lane] && lane != static_cast<int>(op_.lane)) wait(stream_, tensor.used[lane]);
  }
}

// What is there already; what appears later in the op is written on its own lane.
void DeviceOp::wait_for_operands() {
  for (int i = 0; i < op_.num_inputs; ++i) {
    if (const TensorRef x = rank_.store.find(input_id(i))) wait_for_writer(*x);
  }
  for (int i = 0; i < op_.num_outputs; ++i) {
    if (const TensorRef y = rank_.store.find(output_id(i))) wait_for_users(*y);
  }
}

TensorRef DeviceOp::make(std::int64_t rows, std::int64_t columns, Storage storage, std::int64_t period) {
  auto tensor = std::make_shared<DeviceTensor>(rank_.memory, stream_, rows, columns, storage, period);
  touched_.push_back(tensor);
  const Operand& x = tensor->operand;
  const auto bytes = static_cast<std::size_t>(x.elements() * element_size(storage));
  if (rank_.options->poison) fill(stream_, x.data, 0xff, bytes);  // NaN in all formats
  return tensor;
}

Operand DeviceOp::scratch(std::int64_t rows, std::int64_t columns, Storage storage) {
  return make(rows, columns, storage)->operand;
}

void DeviceOp::upload(const std::vector<float>& values, const Operand& to) {
  CHECK(static_cast<std::int64_t>(values.size()) == to.elements() && to.storage == Storage::kFp32,
        fmt::format("{} values into {} x {}", values.size(), to.rows, to.columns));
  copy_to_device(stream_, to.data, values.data(), values.size() * sizeof(float));
}

TensorRef DeviceOp::ensure(std::int32_t tensor) {
  if (TensorRef value = rank_.store.find(tensor)) return value;
  const Tensor& description = rank_.store.describe(tensor);
  const std::int64_t period = description.shards > 0 ? 0 : description.rows;
  TensorRef value =
      make(description.held_rows(), description.held_columns(), storage_of(description), period);
  fill_initial(description, value);
  if (description.on_host) value = to_host(value);
  written_.push_back(value);
  rank_.store.put(tensor, value);
  return value;
}

TensorRef DeviceOp::to_host(const TensorRef& value) {
  const Operand& x = value->operand;
  auto copy =
      std::make_shared<DeviceTensor>(rank_.host_memory, stream_, x.rows, x.columns, x.storage, x.period);
  touched_.push_back(copy);
  copy_to_host(stream_, copy->operand.data, x.data, value_bytes(x));
  if (is_scaled(x.storage)) copy_to_host(stream_, copy->operand.scales, x.scales, scale_bytes(x));
  return copy;
}

Operand DeviceOp::out_like(int i, const Operand& x) {
  const bool on_host = output_tensor(i).on_host;
  TensorRef value = on_host ? std::make_shared<DeviceTensor>(rank_.host_memory, stream_, x.rows, x.columns,
                                                             x.storage, x.period)
                            : make(x.rows, x.columns, x.storage, x.period);
  if (on_host) touched_.push_back(value);
  const Operand target = value->operand;
  results_.push_back({output_id(i), std::move(value), target});
  return target;
}

void DeviceOp::fill_initial(const Tensor& description, const TensorRef& value) {
  const Operand& to = value->operand;
  const bool cache = description.memory == MemoryKind::kCache;  // too large to be made on the host
  if (description.scope != Scope::kRank || cache) {
    if (is_scaled(to.storage)) {
      const Operand zeros = scratch(to.rows, to.columns);
      fill(stream_, zeros.data, 0, value_bytes(zeros));
      return quantise(stream_, zeros, to);
    }
    fill(stream_, to.data, 0, static_cast<std::size_t>(to.elements() * element_size(to.storage)));
    return;
  }
  if (rank_.store.drawn(description)) {
    const Operand values = is_scaled(to.storage) ? scratch(to.rows, to.columns) : to;
    draw(description, description.shards > 0 ? to.rows * rank_.store.shard_of(description) : 0, values);
    if (is_scaled(to.storage)) quantise(stream_, values, to);
    return;
  }
  const Operand values = to.storage == Storage::kFp32 ? to : scratch(to.rows, to.columns);
  upload(rank_.store.initial_held(description), values);
  if (is_scaled(to.storage)) {
    quantise(stream_, values, to);
  } else if (to.storage != Storage::kFp32) {
    convert(stream_, values, to);
  }
}

// Slots of experts hold all of them.
void DeviceOp::draw(const Tensor& parameter, std::int64_t first, const Operand& y) {
  const std::uint64_t seed = rank_.store.seed();
  const StackedRows stacked = rank_.store.stacked(parameter);
  if (!parameter.slots)
    return initial_values(stream_, initial_values_of(parameter, seed, stacked), {first, parameter.elements()},
                          y);
  Tensor one = parameter;
  one.experts = 1;
  std::int64_t slot = 0;
  for (const std::int32_t expert : *parameter.slots) {
    one.first_expert = expert;
    initial_values(stream_, initial_values_of(one, seed, stacked), {0, one.rows * one.columns},
                   y.some_rows(one.rows * slot++, one.rows));
  }
}

void DeviceOp::initial_part(const Tensor& parameter, std::int64_t first, const Operand& y) {
  if (rank_.store.drawn(parameter) && !parameter.slots) return draw(parameter, first, y);
  const std::vector<float> values = rank_.store.initial(parameter);
  const auto last = std::min(first + y.elements(), static_cast<std::int64_t>(values.size()));
  std::vector<float> part(values.begin() + std::min(first, last), values.begin() + last);
  part.resize(static_cast<std::size_t>(y.elements()), 0.0F);
  const Operand plain = y.storage == Storage::kFp32 ? y : scratch(y.rows, y.columns);
  upload(part, plain);
  if (y.storage != Storage::kFp32) convert(stream_, plain, y);
}

Operand DeviceOp::in_tensor(std::int32_t tensor) {
  const Tensor& description = rank_.store.describe(tensor);
  TensorRef value = rank_.store.find(tensor);
  CHECK(value || description.scope == Scope::kRank,
        fmt::format("{}: tensor {} ({}, layer {}) is read before it is written", submission_.fragment->name,
                    tensor, to_string(description.role), description.layer));
  if (!value) value = ensure(tensor);
  touched_.push_back(value);
  return value->operand;
}

Operand DeviceOp::plain(const Operand& x) {
  if (!is_scaled(x.storage)) return x;
  const Operand copy = scratch(x.rows, x.columns);
  convert(stream_, x, copy);
  return copy;
}

Operand DeviceOp::out(int i, std::int64_t rows, std::int64_t columns) {
  const Storage storage = storage_of(output_tensor(i));
  if (!is_scaled(storage)) return out_stored(i, rows, columns, storage);
  const Operand target = scratch(rows, columns);
  results_.push_back({output_id(i), make(rows, columns, storage, output_tensor(i).rows), target});
  return target;
}

Operand DeviceOp::out_stored(int i, std::int64_t rows, std::int64_t columns, Storage storage) {
  CHECK(columns == output_tensor(i).columns,
        fmt::format("{}: {} x {} for {} columns", submission_.fragment->name, rows, columns,
                    output_tensor(i).columns));
  TensorRef value = make(rows, columns, storage);
  const Operand target = value->operand;
  results_.push_back({output_id(i), std::move(value), target});
  return target;
}

Operand DeviceOp::edit_stored(std::int32_t tensor) {
  const TensorRef value = ensure(tensor);
  touched_.push_back(value);
  written_.push_back(value);
  return value->operand;
}

Operand DeviceOp::edit_tensor(std::int32_t tensor) {
  const TensorRef value = ensure(tensor);
  if (!is_scaled(value->operand.storage)) return edit_stored(tensor);
  touched_.push_back(value);
  const Operand copy = plain(value->operand);
  const Tensor& description = rank_.store.describe(tensor);
  results_.push_back(
      {tensor, make(copy.rows, copy.columns, storage_of(description), description.rows), copy});
  return copy;
}

const DeviceRoute& DeviceOp::route() {
  if (!route_) {
    route_ = rank_.routes.get(submission_.fragment->routes[op_.route], index_in(GroupRole::kExpert),
                              rank_.memory, rank_.upload);
    touch(route_->tensor());
  }
  return *route_;
}

IssuedOp DeviceOp::finish() {
  for (Result& result : results_) {
    if (result.written.data != result.value->operand.data)
      quantise(stream_, result.written, result.value->operand);
    written_.push_back(result.value);
    rank_.store.put(result.tensor, result.value);
  }
  issued_.end = mark();
  if (turn_.owns_lock()) {
    rank_.turns->last = issued_.end;
    turn_.unlock();
  }
  for (const TensorRef& tensor : touched_) tensor->used[static_cast<int>(op_.lane)] = issued_.end;
  for (const TensorRef& tensor : written_) {
    tensor->used[static_cast<int>(op_.lane)] = issued_.end;
    tensor->written = issued_.end;
    tensor->writer_lane = op_.lane;
  }
  return std::move(issued_);
}

namespace {

// In the order of the lane.
void* workspace_of(DeviceOp& c) {
  DeviceRank& rank = c.rank();
  TensorRef& workspace = rank.workspaces[static_cast<int>(c.op().lane)];
  if (!workspace) {
    const auto bytes = static_cast<std::int64_t>(rank.library->workspace_bytes());
    workspace = c.make(bytes / element_size(Storage::kFp32), 1, Storage::kFp32);
  }
  c.touch(workspace);
  return workspace->operand.data;
}

Fp8Side side_of(DeviceOp& c, const Operand& x, bool k_contiguous) {
  const Fp8Scratch need = scratch_of_side(x, k_contiguous);
  const auto room = [&](std::int64_t bytes) {
    return bytes == 0 ? nullptr : c.scratch((bytes + 3) / 4, 1).data;
  };
  return library_side(c.stream(), x, k_contiguous, static_cast<std::uint8_t*>(room(need.code_bytes)),
                      static_cast<float*>(room(need.scales * 4)));
}

bool multiply_codes(DeviceOp& c, const Gemm& g) {
  Fp8Product product = library_shape(g);
  if (!has_library_form(g) || !c.rank().library->takes(product)) return false;
  product.a = side_of(c, g.a, !g.a_transposed);
  product.b = side_of(c, g.b, g.b_transposed);
  c.rank().library->multiply(c.stream(), product, workspace_of(c));
  return true;
}

}  // namespace

GroupedPath grouped_path(const CudaOptions& options, const Gemm& product) {
  if (options.grouped) return *options.grouped;
  return is_scaled(product.a.storage) ? GroupedPath::kGrouped : GroupedPath::kLoop;
}

void reserve_workspace(DeviceOp& c) {
  if (c.rank().library != nullptr) workspace_of(c);
}

void multiply(DeviceOp& c, const Gemm& product) {
  const bool codes = is_scaled(product.a.storage) && is_scaled(product.b.storage);
  if (c.rank().library != nullptr) {
    // With blocks of scales the library promises no bias at the end: such products are our kernels'.
    if (codes && product.bias.data == nullptr && multiply_codes(c, product)) return;
    if (!codes && c.rank().library->multiply(c.stream(), product, workspace_of(c))) return;
  }
  if (c.options().tensor_cores && codes && tensor_cores_take(product)) return tile_gemm(c.stream(), product);
  gemm(c.stream(), product);
}

}  // namespace moebius::cuda
