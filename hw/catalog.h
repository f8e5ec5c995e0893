// The catalogs: accelerators, nodes, fabrics and storage by id or alias. They are embedded in the binary; --data DIR
// adds files of the same form that extend or override entries.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/document.h"
#include "hw/fabric.h"
#include "hw/node.h"
#include "hw/reader.h"

namespace moebius {

// A file compiled into the binary: "hw/catalog/accelerators.json" and its text.
struct EmbeddedFile { std::string_view path; std::string_view text; };
std::span<const EmbeddedFile> embedded_files();

class Catalog {
 public:
  // The embedded catalogs and, when `data_dir` is not empty, DIR/{accelerators,nodes,fabrics,storage}.json over them.
  explicit Catalog(const std::string& data_dir = "");

  // A catalog name, or {"base": NAME, ...changes}, as it stands in a scenario. Unknown names suggest the nearest.
  Accelerator accelerator(const Value& value, const Place& place) const;
  Node node(const Value& value, const Place& place) const;
  FabricSpec fabric(const Value& value, const Place& place, ByteRate default_nic) const;  // {"type": ..., ...}
  Storage storage(const Value& value, const Place& place) const;

  Accelerator accelerator(const std::string& name) const;  // by id or alias; input_error when unknown
  Node node(const std::string& name) const;

  const std::vector<std::string>& accelerator_ids() const { return accelerators_.ids; }
  const std::vector<std::string>& node_ids() const { return nodes_.ids; }
  const std::vector<std::string>& fabric_ids() const { return fabrics_.ids; }
  const std::vector<std::string>& storage_ids() const { return storage_.ids; }
  std::string source_text(const std::string& key) const;   // what a source key stands for

 private:
  // Entries of one catalog file, resolved (`base` already merged), with the names that lead to each.
  struct Shelf {
    std::vector<std::string> ids;
    std::vector<Value> entries;
    std::vector<std::pair<std::string, int>> names;  // id or alias (lower case) -> entry
    std::string file;
  };
  static void load(Shelf& shelf, const Document& document);
  const Value& entry(const Shelf& shelf, const Value& value, const Place& place, Value& storage) const;

  Shelf accelerators_, nodes_, fabrics_, storage_;
  std::vector<std::pair<std::string, std::string>> sources_;
};

}  // namespace moebius
