// Plain values one after the other in a message between processes of one binary: no names, no conversion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace moebius {

using ByteString = std::vector<std::byte>;

[[noreturn]] void throw_cut_short();

class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    put_all(std::span<const T>(&value, 1));
  }
  // Without their number.
  template <class T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t before = bytes_.size();
    bytes_.resize(before + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + before, values.data(), values.size_bytes());
  }
  template <class T>
  void put_list(std::span<const T> values) {
    put(static_cast<std::uint64_t>(values.size()));
    put_all(values);
  }
  ByteString take() { return std::move(bytes_); }

 private:
  ByteString bytes_;
};

// run_error when the message ends before what is asked for. The bytes outlive the reader.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    T value;
    copy_to(&value, sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_list() {
    const auto count = get<std::uint64_t>();
    if (count > rest_.size() / sizeof(T)) throw_cut_short();
    std::vector<T> values(count);
    copy_to(values.data(), count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const std::vector<char> letters = get_list<char>();
    return {letters.begin(), letters.end()};
  }
  bool at_end() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  void copy_to(void* to, std::size_t bytes) {
    if (bytes > rest_.size()) throw_cut_short();
    if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }

  std::span<const std::byte> rest_;
};

}  // namespace moebius
