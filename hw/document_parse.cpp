// Two lexers. RapidJSON's takes texts that are right, some ten times as fast; where it does not, nlohmann's
// reads again from the start and says why a string or a number is broken. It does not tell where a value
// stood, so it reads through an iterator of ours that leaves a mark at the last character taken.
#include "hw/document_parse.h"

#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif
#include <fmt/format.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "hw/document_builder.h"
#include "hw/error.h"

namespace moebius {

namespace {

// Recursion over a Value (its destructor, to_json, merged) then fits any stack.
constexpr int kDeepest = 1000;

// What there is in a text that the fast lexer must know or cannot read.
struct Characters {
  bool unusual = false;  // control characters besides line ends and tabs: a return or zero ends a comment for
                         // nlohmann alone, and RapidJSON takes some that no string may hold
  bool beyond_ascii = false;
};

Characters characters_of(std::string_view text) {
  std::uint8_t unusual = 0, all = 0;  // of bytes alone the compiler makes a loop over sixteen at once
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    unusual |= static_cast<std::uint8_t>((byte < 0x20) & (byte != '\n') & (byte != '\t'));
    all |= byte;
  }
  return {.unusual = unusual != 0, .beyond_ascii = all >= 0x80};
}

// RapidJSON takes half a surrogate for a character.
bool has_code_units(std::string_view text) {
  return text.find("\\u") != std::string_view::npos;
}

// RapidJSON's events. Numbers come as they stand, for they are to be the nearest doubles.
class FastLexer {
 public:
  FastLexer(std::string_view text, bool beyond_ascii, DocumentBuilder& builder)
      : text_(text), beyond_ascii_(beyond_ascii), builder_(builder), padded_(text), stream_(nullptr) {
    padded_.append(16, '\0');  // it looks at 16 bytes at once
    stream_ = rapidjson::StringStream(padded_.c_str());
  }

  // False: not read to the end.
  bool read() {
    constexpr unsigned kFlags = rapidjson::kParseCommentsFlag | rapidjson::kParseNumbersAsStringsFlag;
    rapidjson::Reader reader;
    const bool read =
        beyond_ascii_
            ? !reader.Parse<kFlags | rapidjson::kParseValidateEncodingFlag>(stream_, *this).IsError()
            : !reader.Parse<kFlags>(stream_, *this).IsError();
    return read && stream_.Tell() == text_.size();
  }

  bool Null() { return builder_.null(end()); }
  bool Bool(bool value) { return builder_.boolean(value, end()); }
  bool RawNumber(const char* token, rapidjson::SizeType size, bool) {
    const char* const behind = token + size;
    if (std::none_of(token, behind, [](char c) { return c == '.' || c == 'e' || c == 'E'; })) {
      std::int64_t integer = 0;
      if (std::from_chars(token, behind, integer).ec == std::errc()) return builder_.integer(integer, end());
    }
    double number = 0;
    const auto [stop, error] = std::from_chars(token, behind, number);
    return error == std::errc() && stop == behind && builder_.number(number, {token, size}, end());
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return builder_.string({text, size}, end());
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return builder_.key({text, size}, end()); }
  bool StartObject() { return builder_.start_object(end()); }
  bool EndObject(rapidjson::SizeType) { return builder_.end_object(end()); }
  bool StartArray() { return builder_.start_array(end()); }
  bool EndArray(rapidjson::SizeType) { return builder_.end_array(end()); }
  bool Int(int) { return false; }  // numbers come raw
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  // At a string or a number the stream still stands where that begins: on the line on which it ends.
  const char* end() const { return text_.data() + stream_.Tell(); }

  std::string_view text_;
  bool beyond_ascii_;
  DocumentBuilder& builder_;
  std::string padded_;
  rapidjson::StringStream stream_;
};

class MarkingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  MarkingIterator(const char* at, const char** mark) : at_(at), mark_(mark) {}
  reference operator*() const { return *at_; }
  MarkingIterator& operator++() {
    ++at_;
    return *this;
  }
  // The lexer compares with the end once before each character that it takes, and also when none is left: the
  // only moment at which both can be marked.
  bool operator!=(const MarkingIterator& other) const {
    *mark_ = at_;
    return at_ != other.at_;
  }
  bool operator==(const MarkingIterator& other) const { return !(*this != other); }

 private:
  const char* at_;
  const char** mark_;
};

// nlohmann's events; false stops it.
class ExactLexer {
 public:
  ExactLexer(std::string_view text, DocumentBuilder& builder)
      : text_(text), builder_(builder), mark_(text.data()) {}

  void read() {
    const MarkingIterator first(text_.data(), &mark_);
    const MarkingIterator end(text_.data() + text_.size(), &mark_);
    // To it a zero byte is the end of a text.
    const bool ended =
        nlohmann::json::sax_parse(first, end, this, nlohmann::json::input_format_t::json, true, true);
    if (ended && mark_ != text_.data() + text_.size()) builder_.fault(mark_, {});
  }

  bool null() { return builder_.null(mark_ + 1); }
  bool boolean(bool value) { return builder_.boolean(value, mark_ + 1); }
  // A number is over only when the lexer has seen what follows it.
  bool number_integer(std::int64_t value) { return builder_.integer(value, mark_); }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (value <= kLargest) return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(double value, const std::string& token) { return builder_.number(value, token, mark_); }
  bool string(const std::string& value) { return builder_.string(value, mark_ + 1); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }  // JSON texts hold none
  bool start_object(std::size_t) { return builder_.start_object(mark_ + 1); }
  bool start_array(std::size_t) { return builder_.start_array(mark_ + 1); }
  bool key(const std::string& name) { return builder_.key(name, mark_ + 1); }
  bool end_object() { return builder_.end_object(mark_ + 1); }
  bool end_array() { return builder_.end_array(mark_ + 1); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& why) {
    return builder_.fault(mark_, why.what());
  }

 private:
  std::string_view text_;
  DocumentBuilder& builder_;
  const char* mark_;  // the last character that the lexer took; the end of the text when none was left
};

}  // namespace

std::optional<ParseFailure> parse_value(std::string_view text, const DocumentLimits& limits, Value& root) {
  CHECK(limits.depth <= kDeepest, fmt::format("depth={}", limits.depth));
  if (text.size() > limits.bytes)
    return ParseFailure{1, fmt::format("expected at most {} bytes, found {}", limits.bytes, text.size())};
  if (const Characters found = characters_of(text); !found.unusual && !has_code_units(text)) {
    DocumentBuilder builder(text, limits, root);
    const bool read = FastLexer(text, found.beyond_ascii, builder).read();
    if (read || builder.failure()) return builder.failure();
    root = {};
  }
  return parse_value_exactly(text, limits, root);
}

std::optional<ParseFailure> parse_value_exactly(std::string_view text, const DocumentLimits& limits,
                                                Value& root) {
  DocumentBuilder builder(text, limits, root);
  ExactLexer(text, builder).read();
  return builder.failure();
}

Document parse_document(std::string_view text, std::string file, DocumentLimits limits) {
  Document document{.file = std::move(file), .root = {}};
  if (const auto failure = parse_value(text, limits, document.root))
    throw input_error(fmt::format("{}:{}: {}", document.file, failure->line, failure->sentence));
  return document;
}

}  // namespace moebius
