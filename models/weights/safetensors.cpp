#include "models/weights/safetensors.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/document.h"
#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMostValues = std::size_t{8} << 20;
constexpr std::size_t kMostDimensions = 16;

class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::size_t data_bytes) : path_(path), data_bytes_(data_bytes) {}

  StoredTensor tensor(const std::string& name, const Value& value) {
    name_ = &name;
    if (value.kind != Value::Kind::kObject) fail("an object", value.excerpt());
    for (const std::string& key : value.keys) {
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("dtype, shape and data_offsets", fmt::format("key {}", json_excerpt(key)));
    }
    StoredTensor tensor{.name = name, .type = type(required(value, "dtype")), .shape = {}};
    tensor.shape = integers(required(value, "shape"), "shape", kMostDimensions);
    const std::vector<std::int64_t> offsets = integers(required(value, "data_offsets"), "data_offsets", 2);
    if (offsets.size() != 2) fail("two data_offsets", fmt::format("{}", offsets.size()));
    tensor.begin = static_cast<std::size_t>(offsets[0]);
    tensor.end = static_cast<std::size_t>(offsets[1]);
    check_size(tensor);
    return tensor;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw input_error(
        fmt::format("{}: tensor {}: expected {}, found {}", path_, json_excerpt(*name_), expected, found));
  }

  const Value& required(const Value& value, std::string_view key) const {
    const Value* found = value.find(key);
    if (found == nullptr) fail(fmt::format("key \"{}\"", key), "none");
    return *found;
  }

  StoredType type(const Value& value) const {
    const std::vector<std::string> names = stored_type_names();
    const auto type = value.kind == Value::Kind::kString ? parse_stored_type(value.text) : std::nullopt;
    if (!type)
      fail(fmt::format("a dtype out of {}", fmt::join(names, ", ")),
           value.excerpt() + suggestion(value.text, names));
    return *type;
  }

  std::vector<std::int64_t> integers(const Value& value, std::string_view key, std::size_t most) const {
    const bool fits = value.kind == Value::Kind::kArray && value.items.size() <= most;
    if (!fits) fail(fmt::format("{} as an array of at most {} integers", key, most), value.excerpt());
    std::vector<std::int64_t> result;
    for (const Value& item : value.items) {
      if (item.kind != Value::Kind::kInteger || item.integer < 0)
        fail(fmt::format("{} of integers from 0", key), item.excerpt());
      result.push_back(item.integer);
    }
    return result;
  }

  void check_size(const StoredTensor& tensor) const {
    if (tensor.begin > tensor.end || tensor.end > data_bytes_) {
      fail(fmt::format("data_offsets inside the {} bytes of data", data_bytes_),
           fmt::format("[{}, {}]", tensor.begin, tensor.end));
    }
    // Compared by division, so that no product overflows.
    std::size_t left = tensor.end - tensor.begin;
    const auto width = static_cast<std::size_t>(stored_bytes(tensor.type));
    const bool empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
    bool same = empty ? left == 0 : left % width == 0;
    left /= width;
    for (const std::int64_t size : tensor.shape) {
      if (empty || !same) break;
      same = left % static_cast<std::size_t>(size) == 0;
      left /= static_cast<std::size_t>(size);
    }
    if (!same || (!empty && left != 1)) {
      fail(fmt::format("the bytes of {} elements of {}", shape_text(tensor.shape), to_string(tensor.type)),
           fmt::format("{} bytes", tensor.end - tensor.begin));
    }
  }

  const std::string& path_;
  std::size_t data_bytes_;
  const std::string* name_ = nullptr;
};

std::map<std::string, std::string> read_metadata(const std::string& path, const Value& value) {
  std::map<std::string, std::string> metadata;
  if (value.kind != Value::Kind::kObject)
    throw input_error(fmt::format("{}: __metadata__: expected an object, found {}", path, value.excerpt()));
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    if (value.items[i].kind != Value::Kind::kString) {
      throw input_error(
          fmt::format("{}: __metadata__: expected texts, found {}", path, value.items[i].excerpt()));
    }
    metadata[value.keys[i]] = value.items[i].text;
  }
  return metadata;
}

// Tensors fill the data, one after the other.
void check_order(const std::string& path, std::vector<StoredTensor> tensors, std::size_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::size_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != end) {
      throw input_error(fmt::format(
          "{}: tensor {}: expected data from byte {}, where the one before ends, found {} at {}", path,
          json_excerpt(tensor.name), end, tensor.begin < end ? "an overlap" : "a hole", tensor.begin));
    }
    end = tensor.end;
  }
  if (end != data_bytes) {
    throw input_error(
        fmt::format("{}: expected {} bytes of data behind the header, found {}", path, end, data_bytes));
  }
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(path) {
  read_header();
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, std::string name)
    : path_(std::move(name)), file_(bytes) {
  read_header();
}

void SafetensorsFile::read_header() {
  if (file_.size() < kLengthBytes) {
    throw input_error(fmt::format("{}: expected a safetensors file of at least {} bytes, found {}", path_,
                                  kLengthBytes, file_.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file_.data(), kLengthBytes);
  const std::size_t most = std::min(kLongestHeader, file_.size() - kLengthBytes);
  if (length > most) {
    throw input_error(
        fmt::format("{}: expected a header of at most {} bytes, found length {}", path_, most, length));
  }
  data_start_ = kLengthBytes + static_cast<std::size_t>(length);
  const std::size_t data_bytes = file_.size() - data_start_;
  const Document header = parse_document({file_.data() + kLengthBytes, static_cast<std::size_t>(length)},
                                         path_, {.bytes = kLongestHeader, .depth = 8, .values = kMostValues});
  if (header.root.kind != Value::Kind::kObject) {
    throw input_error(
        fmt::format("{}: expected an object as header, found {}", path_, header.root.excerpt()));
  }
  HeaderReader reader(path_, data_bytes);
  for (std::size_t i = 0; i < header.root.keys.size(); ++i) {
    const std::string& name = header.root.keys[i];
    if (name == "__metadata__") {
      metadata_ = read_metadata(path_, header.root.items[i]);
    } else {
      tensors_.push_back(reader.tensor(name, header.root.items[i]));
    }
  }
  check_order(path_, tensors_, data_bytes);
  // From here every offset lies inside the file and every size is that of its shape.
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

void SafetensorsFile::forget(const StoredTensor& tensor) const {
  file_.forget(data_start_ + tensor.begin, tensor.end - tensor.begin);
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return std::as_bytes(std::span(file_.data() + data_start_ + tensor.begin, tensor.end - tensor.begin));
}

}  // namespace moebius
