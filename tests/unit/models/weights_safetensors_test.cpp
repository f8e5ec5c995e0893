// Safetensors files: what is written is read back, and every damage is one sentence.
#include "hw/error.h"
#include "models/weights/safetensors_writer.h"
#include "tests/process.h"

#include <cmath>
#include <cstring>
#include <limits>
#include "tests/catch.h"

using namespace moebius;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file + header + std::string(data_bytes, '\1');
}

std::string fault(const std::string& file) {
  try {
    const SafetensorsFile read(bytes_of(file), "x");
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no fault";
}

std::string fault_of_tensor(const std::string& tensor, std::size_t data_bytes) {
  return fault(file_of("{\"w\":" + tensor + "}", data_bytes));
}

}  // namespace

TEST_CASE("what is written is read back, by name, from an aligned header") {
  const test::Scratch scratch;
  const std::string path = scratch.path("a.safetensors");
  const std::map<std::string, std::vector<std::byte>> bytes{
      {"b", bytes_of("12345678")}, {"a", bytes_of("xyz")}, {"empty", {}}, {"scalar", bytes_of("abcd")}};
  write_safetensors(path,
                    {{.name = "b", .type = StoredType::kBf16, .shape = {2, 2}},
                     {.name = "a", .type = StoredType::kI8, .shape = {3}},
                     {.name = "scalar", .type = StoredType::kF32, .shape = {}},
                     {.name = "empty", .type = StoredType::kF32, .shape = {0, 7}}},
                    bytes, {{"format", "pt"}});
  const SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  for (const auto& [name, expected] : bytes) {
    const StoredTensor* tensor = file.find(name);
    REQUIRE(tensor != nullptr);
    const auto found = file.bytes(*tensor);
    CHECK(std::vector<std::byte>(found.begin(), found.end()) == expected);
  }
  CHECK(file.find("c") == nullptr);
  CHECK(file.find("b")->shape == std::vector<std::int64_t>{2, 2});
  std::uint64_t length = 0;
  const std::string text = test::text_of(path);
  std::memcpy(&length, text.data(), sizeof length);
  CHECK(length % 8 == 0);
}

TEST_CASE("a writer that is not committed leaves nothing") {
  const test::Scratch scratch;
  const std::string path = scratch.path("a.safetensors");
  { SafetensorsWriter writer(path, {{.name = "a", .type = StoredType::kI8, .shape = {3}}}, {}); }
  CHECK(std::filesystem::is_empty(scratch.path("")));
  CHECK_THROWS_WITH(SafetensorsWriter(scratch.path("none/a"), {}, {}),
                    scratch.path("none/a") + ": cannot be written: No such file or directory");
}

TEST_CASE("a header that does not go with its file is refused in one sentence") {
  CHECK(fault("short") == "x: expected a safetensors file of at least 8 bytes, found 5");
  CHECK(fault(file_of("{}", 0).substr(0, 9)) == "x: expected a header of at most 1 bytes, found length 2");
  CHECK(fault(file_of("[]", 0)) == "x: expected an object as header, found an array");
  CHECK(fault(file_of("{", 0)) == "x:1: expected a key in double quotes or '}', found the end of the file");
  CHECK(fault(file_of("{}", 3)) == "x: expected 0 bytes of data behind the header, found 3");
  CHECK(fault(file_of(R"({"__metadata__":{"a":1}})", 0)) == "x: __metadata__: expected texts, found 1");
  const std::string one = R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  CHECK(fault(file_of("{" + one + "," + one + "}", 1)) == "x:1: /a: expected each key once, found \"a\" again");
}

TEST_CASE("a tensor that does not go with its file is named") {
  CHECK(fault_of_tensor("7", 0) == R"(x: tensor "w": expected an object, found 7)");
  CHECK(fault_of_tensor(R"({"dtype":"BF16","shape":[2]})", 0) ==
        R"(x: tensor "w": expected key "data_offsets", found none)");
  CHECK(fault_of_tensor(R"({"dtype":"BF16","shape":[1],"data_offsets":[0,2],"strides":[1]})", 2) ==
        R"(x: tensor "w": expected dtype, shape and data_offsets, found key "strides")");
  const std::string types =
      "x: tensor \"w\": expected a dtype out of F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, "
      "U8, BOOL, found ";
  CHECK(fault_of_tensor(R"({"dtype":"complex","shape":[1],"data_offsets":[0,2]})", 2) ==
        types + "\"complex\"");
  CHECK(fault_of_tensor(R"({"dtype":"F8_E4M","shape":[1],"data_offsets":[0,1]})", 1) ==
        types + R"("F8_E4M" (did you mean "F8_E4M3"?))");
  CHECK(fault_of_tensor(R"({"dtype":"BF16","shape":[-1],"data_offsets":[0,2]})", 2) ==
        R"(x: tensor "w": expected shape of integers from 0, found -1)");
  CHECK(fault_of_tensor(R"({"dtype":"BF16","shape":[2],"data_offsets":[0,6]})", 4) ==
        R"(x: tensor "w": expected data_offsets inside the 4 bytes of data, found [0, 6])");
  CHECK(fault_of_tensor(R"({"dtype":"BF16","shape":[3],"data_offsets":[0,4]})", 4) ==
        R"(x: tensor "w": expected the bytes of [3] elements of BF16, found 4 bytes)");
  // 2^32 * 2^32 elements are 2^64, which is 0 in 64 bits.
  CHECK(fault_of_tensor(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0) ==
        R"(x: tensor "w": expected the bytes of [4294967296, 4294967296] elements of U8, found 0 bytes)");
}

TEST_CASE("tensors neither overlap nor leave holes") {
  const auto two = [](const std::string& second, std::size_t bytes) {
    return fault(
        file_of(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":)" + second + "}", bytes));
  };
  CHECK(two(R"({"dtype":"I8","shape":[4],"data_offsets":[4,8]})", 8) == "no fault");
  CHECK(two(R"({"dtype":"I8","shape":[4],"data_offsets":[2,6]})", 6) ==
        R"(x: tensor "b": expected data from byte 4, where the one before ends, found an overlap at 2)");
  CHECK(two(R"({"dtype":"I8","shape":[4],"data_offsets":[5,9]})", 9) ==
        R"(x: tensor "b": expected data from byte 4, where the one before ends, found a hole at 5)");
}

TEST_CASE("numbers are what their formats say") {
  const auto values = [](StoredType type, const std::string& bytes) {
    return to_floats(type, bytes_of(bytes));
  };
  // FP16: 0x3c00 is 1, 0x0001 is 2^-24, 0xfbff is -65504.
  CHECK(values(StoredType::kF16, std::string("\x00\x3c\x01\x00\xff\xfb", 6)) ==
        std::vector<float>{1, 0x1p-24f, -65504});
  // BF16: 0x3f80 is 1, 0xc040 is -3.
  CHECK(values(StoredType::kBf16, "\x80\x3f\x40\xc0") == std::vector<float>{1, -3});
  // E4M3: 0x38 is 1, 0x7e is 448, 0x01 is 2^-9, 0x81 is its negative.
  CHECK(values(StoredType::kFp8E4m3, "\x38\x7e\x01\x81") == std::vector<float>{1, 448, 0x1p-9f, -0x1p-9f});
  CHECK(std::isnan(values(StoredType::kFp8E4m3, "\x7f")[0]));
  // To BF16: ties go to even; 1 + 2^-8 lies between 1 and 1 + 2^-7.
  const std::vector<float> given{1 + 0x1p-8f, 1 + 0x1p-7f + 0x1p-8f, -3,
                                 std::numeric_limits<float>::infinity()};
  CHECK(to_floats(StoredType::kBf16, from_floats(StoredType::kBf16, given)) ==
        std::vector<float>{1, 1 + 0x1p-6f, -3, std::numeric_limits<float>::infinity()});
  CHECK(to_floats(StoredType::kF32, from_floats(StoredType::kF32, given)) == given);
}
