// Opens whatever bytes come as a safetensors file and, when they pass, reads all that it gives out: damaged
// files are an input error, never more.
#include <span>

#include "hw/error.h"
#include "models/weights/safetensors.h"
#include "tests/fuzz/target.h"

namespace moebius::fuzz {

namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i * 37);
  return bytes;
}

// Every byte of every tensor, as numbers where they are numbers.
double read_all(const SafetensorsFile& file) {
  double sum = static_cast<double>(file.metadata().size());
  for (const StoredTensor& tensor : file.tensors()) {
    CHECK(file.find(tensor.name) != nullptr, tensor.name);
    const std::span<const std::byte> bytes = file.bytes(tensor);
    if (is_floating(tensor.type)) {
      sum += static_cast<double>(to_floats(tensor.type, bytes).size());
    } else {
      for (const std::byte byte : bytes) sum += static_cast<double>(byte);
    }
  }
  return sum;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  return {
      file_of("{}", 0),
      file_of(R"({"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}      )", 12),
      file_of(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
          R"("b":{"dtype":"F8_E4M3","shape":[3,5],"data_offsets":[4,19]},)"
          R"("c":{"dtype":"I64","shape":[2],"data_offsets":[19,35]},"d":{"dtype":"F16","shape":[0,7],"data_offsets":[35,35]}})",
          35),
      file_of(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
  };
}

}  // namespace moebius::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace moebius;
  try {
    const SafetensorsFile file(std::as_bytes(std::span(data, size)), "fuzz");
    CHECK(fuzz::read_all(file) >= 0, "a sum");
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput, std::string(error.what()));
  }
  return 0;
}
