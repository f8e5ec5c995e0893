#include "real/cuda/cuda_case.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/bench/case_tensors.h"
#include "workloads/routing/routing.h"
#include "workloads/training/layers/builder.h"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kPatternRows = 512, kPatternColumns = kScaleBlock;

std::vector<float> random_pattern(std::uint64_t seed, Contents contents) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kPatternRows * kPatternColumns; ++i) {
    const auto unit = static_cast<float>(random_unit(random_bits(seed, i)));
    values.push_back(contents == Contents::kPositive ? 0.05f + 0.9f * unit : 2 * unit - 1);
  }
  return values;
}

std::vector<float> random_ids(const OperandSpec& spec, std::uint64_t seed) {
  std::vector<float> ids;
  for (std::int64_t i = 0; i < spec.rows * spec.columns; ++i) {
    const double number = random_unit(random_bits(seed, i)) * static_cast<double>(spec.below);
    ids.push_back(static_cast<float>(std::floor(number)));
  }
  return ids;
}

// `from` again and again: what is there already is copied, twice as much each time.
void tile(Stream stream, void* to, std::size_t bytes, const void* from, std::size_t from_bytes) {
  char* first = static_cast<char*>(to);
  std::size_t done = std::min(bytes, from_bytes);
  copy_on_device(stream, first, from, done);
  while (done < bytes) {
    const std::size_t more = std::min(done, bytes - done);
    copy_on_device(stream, first + done, first, more);
    done += more;
  }
}

RankClass alone() {
  RankClass place;
  place.ranks = {0};
  return place;
}

Storage storage_in(const OperandSpec& spec) {
  const Storage storage = storage_of(spec.dtype);
  if (!is_scaled(storage)) return storage;
  return spec.by_columns ? Storage::kFp8Columns : spec.weight ? Storage::kFp8Blocks : storage;
}

}  // namespace

CudaCase::CudaCase(OpOperands operands, const CudaOptions& options, GemmLibrary* library)
    : operands_(std::move(operands)),
      place_(alone()),
      options_(options),
      rank_(0, place_, options_, library) {
  make_fragment();
  rank_.store.begin(submission_);
  fill();
}

CudaCase::~CudaCase() {
  try {
    synchronise(stream());
  } catch (const Error&) {  // a device that failed has said so before
  }
}

void CudaCase::make_fragment() {
  FragmentBuilder builder("one op", Phase::kForward);
  std::uint32_t key = 0;
  for (const OperandSpec& spec : operands_.inputs)
    inputs_.push_back(builder.add(tensor_of(spec, ++key, true)));
  for (const OperandSpec& spec : operands_.outputs)
    outputs_.push_back(builder.add(tensor_of(spec, ++key, spec.changed)));
  if (operands_.in_place) outputs_ = inputs_;
  if (operands_.route) {
    route_ = stand_in_route();
    operands_.op.route = builder.add_route(route_);
  }
  if (operands_.batch) operands_.op.batch = builder.add_batch(operands_.batch);
  builder.transfer = operands_.transfer;
  builder.emit(operands_.op, inputs_, outputs_);
  submission_.fragment = builder.freeze_it();
}

void CudaCase::fill() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) rank_.store.put(inputs_[i], filled(operands_.inputs[i]));
  for (std::size_t i = 0; i < operands_.outputs.size(); ++i) {
    if (operands_.outputs[i].changed) rank_.store.put(outputs_[i], filled(operands_.outputs[i]));
  }
  if (operands_.route) {
    rank_.routes.put(
        route_, std::make_shared<const DeviceRoute>(std::move(*operands_.route), rank_.memory, rank_.upload));
  }
  synchronise(stream());
}

TensorRef CudaCase::filled(const OperandSpec& spec) {
  const auto make = [&](std::int64_t rows, std::int64_t columns, Storage storage) {
    return std::make_shared<DeviceTensor>(rank_.memory, stream(), rows, columns, storage);
  };
  auto tensor = std::make_shared<DeviceTensor>(rank_.memory, stream(), spec.rows, spec.columns,
                                               storage_in(spec), spec.expert_rows);
  const Operand& to = tensor->operand;
  if (spec.contents == Contents::kIds) {
    const std::vector<float> ids = random_ids(spec, options_.seed);
    copy_to_device(stream(), to.data, ids.data(), ids.size() * sizeof(float));
    synchronise(stream());
    return tensor;
  }
  const std::vector<float> values = random_pattern(options_.seed, spec.contents);
  const TensorRef exact = make(kPatternRows, kPatternColumns, Storage::kFp32);
  const TensorRef pattern =
      make(kPatternRows, kPatternColumns, is_scaled(to.storage) ? Storage::kFp8Rows : to.storage);
  copy_to_device(stream(), exact->operand.data, values.data(), values.size() * sizeof(float));
  const Operand& from = pattern->operand;
  is_scaled(to.storage) ? quantise(stream(), exact->operand, from) : convert(stream(), exact->operand, from);
  const auto size = static_cast<std::size_t>(element_size(to.storage));
  tile(stream(), to.data, static_cast<std::size_t>(to.elements()) * size, from.data, values.size() * size);
  if (is_scaled(to.storage)) {
    tile(stream(), to.scales, static_cast<std::size_t>(num_scales(to)) * sizeof(float), from.scales,
         kPatternRows * sizeof(float));
  }
  synchronise(stream());  // the patterns go
  return tensor;
}

// Results of the last execution go first, as a schedule frees what nobody reads any more.
IssuedOp CudaCase::issue() {
  rank_.store.release(0);
  DeviceOp op(rank_, submission_, 0);
  compute(op);
  IssuedOp issued = op.finish();
  if (issued.loss != nullptr) rank_.losses.give(issued.loss);
  issued.loss = nullptr;
  return issued;
}

std::vector<float> CudaCase::output(int i) {
  const TensorRef tensor = rank_.store.find(outputs_[i]);
  CHECK(tensor != nullptr, fmt::format("output {} before an execution", i));
  const Operand& x = tensor->operand;
  const DeviceTensor plain(rank_.memory, stream(), x.rows, x.columns, Storage::kFp32);
  convert(stream(), x, plain.operand);
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  copy_to_host(stream(), values.data(), plain.operand.data, values.size() * sizeof(float));
  synchronise(stream());
  return values;
}

}  // namespace moebius::cuda
