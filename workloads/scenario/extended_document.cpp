#include "workloads/scenario/extended_document.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/reader.h"

namespace moebius {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 8;

void come_from(const std::shared_ptr<const std::string>& file, Value& value) {
  value.origin = file;
  for (Value& item : value.items) come_from(file, item);
}

void remove_key(std::string_view key, Value& object) {
  const auto at = std::find(object.keys.begin(), object.keys.end(), key);
  if (at == object.keys.end()) return;
  object.items.erase(object.items.begin() + (at - object.keys.begin()));
  object.keys.erase(at);
}

Document load(const std::string& path, std::vector<std::string> files) {
  Document document = load_document(path);
  files.push_back(path);
  if (document.root.kind != Value::Kind::kObject || document.root.find("extends") == nullptr) return document;
  Reader top(document);
  const std::string base_path = (fs::path(path).parent_path() / top.text("extends")).string();
  std::error_code error;
  if (!fs::exists(base_path, error))
    top.place_of("extends").fail(fmt::format("expected a file, found none at {}", base_path));
  const auto same = [&](const std::string& file) { return fs::equivalent(file, base_path, error); };
  if (std::any_of(files.begin(), files.end(), same))
    top.place_of("extends").fail(
        fmt::format("expected files that do not extend each other in a circle, found {}, {}",
                    fmt::join(files, ", "), base_path));
  if (files.size() == kMostFiles)
    top.place_of("extends").fail(
        fmt::format("expected at most {} files, each of which extends another, found {}, {}", kMostFiles,
                    fmt::join(files, ", "), base_path));
  Document base = load(base_path, files);
  if (base.root.kind != Value::Kind::kObject)
    top.place_of("extends").fail(
        fmt::format("expected a file with an object, found {}", base.root.excerpt()));
  if (!base.root.origin) come_from(std::make_shared<const std::string>(base.file), base.root);
  come_from(std::make_shared<const std::string>(document.file), document.root);
  remove_key("extends", document.root);
  remove_key("expect", base.root);
  return {document.file, merged(base.root, document.root)};
}

}  // namespace

Document load_scenario(const std::string& path) {
  return load(path, {});
}

void forget_expected(Document& document) {
  remove_key("expect", document.root);
}

}  // namespace moebius
