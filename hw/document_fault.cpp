#include "hw/document_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "hw/json_text.h"

namespace moebius {

namespace {

using After = FaultContext::After;
using Inside = FaultContext::Inside;

constexpr const char* kEndOfFile = "the end of the file";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '+' ||
         c == '-' || c == '.';
}

// The offset of the next token at or behind `at`, past blanks and comments that are complete. A comment ends
// where it does for the lexer: also a zero byte ends a line, and none may stand in a block.
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    std::size_t end = std::string_view::npos;
    if (is_blank(rest[0])) {
      end = 1;
    } else if (rest.starts_with("//")) {
      const std::size_t stop = rest.find_first_of(std::string_view("\n\r\0", 3));
      end = stop == std::string_view::npos ? rest.size() : stop + 1;
    } else if (rest.starts_with("/*")) {
      const std::size_t close = rest.find("*/", 2);
      if (close != std::string_view::npos && rest.substr(0, close).find('\0') == std::string_view::npos)
        end = close + 2;
    }
    if (end == std::string_view::npos) return at;
    at += end;
  }
  return at;
}

std::string describe_byte(char c) {
  if (c == '\n' || c == '\r') return "the end of the line";
  if (c > ' ' && c <= '~') return fmt::format("'{}'", c);
  return fmt::format("byte 0x{:02X}", static_cast<unsigned char>(c));
}

// The token at the front of `text`. A string is known to be complete here: a broken one has its own
// sentences.
std::string describe_token(std::string_view text) {
  if (text.empty()) return kEndOfFile;
  if (text[0] == '"') {
    std::size_t end = 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    std::string token = shortened(text.substr(0, end + 1));
    std::erase(token, '\x7f');  // the one control character that a string may hold as it is
    return token;
  }
  if (is_word(text[0]))
    return shortened(text.substr(0, std::ranges::find_if_not(text, is_word) - text.begin()));
  return describe_byte(text[0]);
}

std::string expected_at(const FaultContext& context, bool separated) {
  switch (context.after) {
    case After::kNothing:
      return "a value";
    case After::kKey:
      return separated ? "a value" : "':' behind the key";
    case After::kObjectStart:
      return "a key in double quotes or '}'";
    case After::kArrayStart:
      return "a value or ']'";
    case After::kValue:
      break;
  }
  switch (context.inside) {
    case Inside::kFile:
      return kEndOfFile;
    case Inside::kObject:
      return separated ? "a key in double quotes behind the comma" : "',' or '}'";
    case Inside::kArray:
      return separated ? "a value behind the comma" : "',' or ']'";
  }
  std::abort();
}

// The bytes that end in the ill-formed one at `last`, from the one that began the character on.
std::string describe_bytes(std::string_view text, std::size_t last) {
  std::size_t first = last;
  while (first > 0 && last - first < 3 && static_cast<unsigned char>(text[first - 1]) >= 0x80) --first;
  std::string bytes;
  for (const char c : text.substr(first, last + 1 - first))
    bytes += fmt::format(" 0x{:02X}", static_cast<unsigned char>(c));
  return (first == last ? "byte" : "bytes") + bytes;
}

// Why the lexer gave the string up whose last character taken is at `last`.
std::string broken_string(std::string_view reason, std::string_view text, std::size_t last) {
  const auto says = [reason](std::string_view words) { return reason.find(words) != std::string_view::npos; };
  if (last >= text.size()) return "expected '\"' at the end of a string, found the end of the file";
  const std::string found = describe_byte(text[last]);
  if (says("must be escaped"))
    return fmt::format("expected '\"' at the end of a string or an escaped character, found {}", found);
  if (says("surrogate")) return "expected two \\u escapes, high surrogate first, found one half of the pair";
  if (says("4 hex digits"))
    return fmt::format("expected four hexadecimal digits behind \\u, found {}", found);
  if (says("backslash"))
    return fmt::format("expected an escape such as \\n, found a backslash and {}", found);
  return fmt::format("expected valid UTF-8, found {}", describe_bytes(text, last));
}

// The token that the parser stopped at: the last one it took, behind at most a separator that it accepted.
std::pair<std::size_t, bool> find_token(std::string_view text, const FaultContext& context) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const bool marked = context.after == After::kNothing && text.starts_with(kByteOrderMark);
  const std::size_t first = skip_blanks(text, marked ? kByteOrderMark.size() : context.from);
  if (first >= text.size()) return {text.size(), false};
  const bool inside = context.inside != Inside::kFile;
  const bool separator = context.after == After::kKey
                             ? text[first] == ':'
                             : context.after == After::kValue && inside && text[first] == ',';
  if (!separator) return {first, false};
  return {skip_blanks(text, first + 1), true};
}

// Where "032" or "-032" begins whose "32" stands at `token`: for the lexer, 0 is a number of its own.
std::optional<std::size_t> padded_number(std::string_view text, std::size_t token) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (token == 0 || token >= text.size() || !is_digit(text[token]) || text[token - 1] != '0')
    return std::nullopt;
  std::size_t begin = token - 1;
  if (begin > 0 && text[begin - 1] == '-') --begin;
  return begin == 0 || !is_word(text[begin - 1]) ? std::optional(begin) : std::nullopt;
}

}  // namespace

TextFault find_fault(std::string_view text, const FaultContext& context) {
  const auto [token, separated] = find_token(text, context);
  const std::string_view rest = text.substr(token);
  const std::string_view reason = context.lexer_message;
  const bool lexical = reason.find("invalid ") != std::string_view::npos;

  if (rest.starts_with('"') && lexical) return {token, broken_string(reason, text, context.last)};
  if (rest.starts_with("/*"))
    return {token, fmt::format("expected '*/' at the end of a comment, found {}",
                               context.last < text.size() ? describe_byte(text[context.last]) : kEndOfFile)};
  if (reason.find("number overflow") != std::string_view::npos)
    return {token, fmt::format("expected a number of at most 1.8e308, found {}", describe_token(rest))};
  if (const auto padded = padded_number(text, token))
    return {*padded,
            fmt::format("a number must not begin with 0, found {}", describe_token(text.substr(*padded)))};
  const bool number = !rest.empty() && (rest[0] == '-' || (rest[0] >= '0' && rest[0] <= '9'));
  if (lexical && number) return {token, fmt::format("expected a number, found {}", describe_token(rest))};
  return {token, fmt::format("expected {}, found {}", expected_at(context, separated), describe_token(rest))};
}

}  // namespace moebius
