// One object of a scenario file while it is read. Every key is declared in one line - name, range, default,
// help - and that line serves three readers: the program gets the value, `check` the setting in use, `schema`
// the description.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "hw/reader.h"
#include "workloads/scenario/schema.h"

namespace moebius {

// A key of a scenario with the value in use: as given, or the stated default.
struct Setting {
  std::string pointer;  // "/plan/pp/degree"
  std::string value;
  bool given = false;
};

// A row of a closed table of names.
template <class T>
struct Named {
  std::string_view name;
  T value;
  std::string_view help;
};

class Section {
 public:
  Section(Reader reader, std::vector<Setting>* settings);  // reads; notes every value in `settings`
  explicit Section(DescriptionPtr description);  // describes; the values it returns are placeholders

  // No default: the key is required.
  std::string text(std::string_view key, std::optional<std::string> otherwise, std::string_view help);
  bool boolean(std::string_view key, bool otherwise, std::string_view help);
  std::int64_t integer(std::string_view key, Range range, std::optional<std::int64_t> otherwise,
                       std::string_view help);
  int whole(std::string_view key, Range range, std::optional<std::int64_t> otherwise, std::string_view help);
  double number(std::string_view key, Range range, std::optional<double> otherwise, std::string_view help);
  Bytes bytes(std::string_view key, std::optional<Bytes> otherwise, std::string_view help,
              double low = kAboveZero);
  Time time(std::string_view key, std::optional<Time> otherwise, std::string_view help);

  // One of a few numbers.
  int one_of(std::string_view key, const std::vector<int>& values, std::optional<int> otherwise,
             std::string_view help);
  // A switch that stands in one position only so far; the other is refused with `reason`.
  void fixed(std::string_view key, bool available, std::string_view reason, std::string_view help);
  // One of a table of names.
  template <class T>
  T choice(std::string_view key, std::span<const Named<T>> table, std::optional<T> otherwise,
           std::string_view help) {
    std::optional<std::size_t> index;
    for (std::size_t i = 0; otherwise && i < table.size(); ++i) {
      if (table[i].value == *otherwise) index = i;
    }
    return table[name_index(key, names_of(table), index, help)].value;
  }
  // An array of different names of a table; empty when absent.
  template <class T>
  std::vector<T> choices(std::string_view key, std::span<const Named<T>> table, std::string_view help) {
    std::vector<T> chosen;
    for (const std::size_t index : name_indices(key, names_of(table), help))
      chosen.push_back(table[index].value);
    return chosen;
  }

  // One of rows that have a name and a help, the first one by default.
  template <class Row>
  const Row& row(std::string_view key, std::span<const Row> rows, std::string_view help) {
    std::vector<NamedRow> names;
    for (const Row& each : rows) names.push_back({each.name, each.help});
    return rows[name_index(key, names, 0, help)];
  }

  // A value that another reader takes (a catalog's), described by `form`. Null when describing, or absent and
  // not required; the default that the form states is in use then.
  const Value* value(std::string_view key, bool required, DescriptionPtr form);
  Section object(std::string_view key, bool required,
                 std::string_view help);  // absent: every key at its default
  std::vector<Section> objects(std::string_view key, bool required, std::string_view help);

  bool given(std::string_view key) const;
  // What stands there, of a key that defaults before it depend on and that is read in its turn; null when
  // describing, or absent.
  const Value* ahead(std::string_view key);
  // A key that counts for nothing otherwise may not be given: `with` says what it counts with.
  void allow_only(std::string_view key, bool counts, std::string_view with) const;
  Place place_of(std::string_view key) const;
  // Required keys in whose place another key may stand: the description cannot require them.
  void can_be_replaced(const std::vector<std::string_view>& keys);
  void finish();  // rejects unknown keys; closes the description

 private:
  struct NamedRow {
    std::string_view name, help;
  };
  template <class T>
  static std::vector<NamedRow> names_of(std::span<const Named<T>> table) {
    std::vector<NamedRow> rows;
    for (const Named<T>& row : table) rows.push_back({row.name, row.help});
    return rows;
  }
  std::size_t name_index(std::string_view key, const std::vector<NamedRow>& rows,
                         std::optional<std::size_t> otherwise, std::string_view help);
  std::vector<std::size_t> name_indices(std::string_view key, const std::vector<NamedRow>& rows,
                                        std::string_view help);
  void note(std::string_view key, std::string value);
  Description& describe(std::string_view key, bool required, DescriptionPtr form);

  std::optional<Reader> reader_;
  std::vector<Setting>* settings_ = nullptr;
  DescriptionPtr description_;
};

}  // namespace moebius
