// The catalogs: accelerators, nodes, fabrics and storage by id or alias. They are embedded in the binary;
// --data DIR adds files of the same form that extend or override entries: an entry of a known id is laid over
// the one it names, key by key. Names are compared without case, and '_' and ' ' count as '-'.
//
// A file is {"sources": {key: text}, "announced": {name: why it has no figures}, "accelerators": {id:
// entry}}. An entry has "aliases" (names people use), "labels" (what tables of measurements write for it),
// "base" (the entry it is laid over) and one fact a line: see facts.h. hw/catalog_entries.cpp says which
// facts each kind of entry has.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/document.h"
#include "hw/fabric/fabric.h"
#include "hw/facts.h"
#include "hw/node.h"
#include "hw/reader.h"

namespace moebius {

// A file compiled into the binary: "hw/catalog/accelerators.json" and its text.
struct EmbeddedFile {
  std::string_view path;
  std::string_view text;
};
std::span<const EmbeddedFile> embedded_files();
// Of one of them, called "<path>" where it is at fault; CHECKs that it is there.
Document embedded_document(std::string_view path);

class Catalog {
 public:
  // The embedded catalogs and, when `data_dir` is not empty, DIR/{accelerators,nodes,fabrics,storage}.json
  // over them. Entries of DIR are checked here, all of them; embedded ones when they are asked for (a test
  // asks for all).
  explicit Catalog(const std::string& data_dir = "");

  // A catalog name, or {"base": NAME, ...changes}, as it stands in a scenario. Unknown names suggest the
  // nearest.
  Accelerator accelerator(const Value& value, const Place& place) const;
  Node node(const Value& value, const Place& place) const;
  FabricSpec fabric(const Value& value, const Place& place,
                    ByteRate default_nic) const;  // {"type": ..., ...}
  Storage storage(const Value& value, const Place& place) const;

  Accelerator accelerator(const std::string& name) const;  // by id or alias; input_error when unknown
  Node node(const std::string& name) const;
  FabricSpec fabric(const std::string& name) const;  // nic zero unless the catalog states it
  Storage storage(const std::string& name) const;

  const std::vector<std::string>& accelerator_ids() const { return accelerators_.ids; }
  const std::vector<std::string>& node_ids() const { return nodes_.ids; }
  const std::vector<std::string>& fabric_ids() const { return fabrics_.ids; }
  const std::vector<std::string>& storage_ids() const { return storage_.ids; }
  // Whether accelerator(name) and the others find an entry.
  bool has_accelerator(const std::string& name) const;
  bool has_node(const std::string& name) const;
  bool has_fabric(const std::string& name) const;
  bool has_storage(const std::string& name) const;
  // What a fact's source key stands for: as its own file says, else as one that is built in; empty when
  // unknown.
  std::string source_text(const Fact& fact) const;

 private:
  // One catalog entry as it stands in a file. `below`: the entry of the same id in an earlier file, or -1.
  struct Entry {
    std::string id;
    const Value* value;
    Place place;
    int below;
  };

  // One catalog: its entries and the names (normalised) that lead to each.
  struct Shelf {
    std::string root;  // "accelerators"
    std::string noun;  // "an accelerator", for error sentences
    std::vector<std::string> ids;
    std::vector<Entry> entries;
    std::map<std::string, int, std::less<>> names;
    std::map<std::string, std::string, std::less<>> announced;  // names known without figures: why
  };

  void load(Shelf& shelf, Document document);
  void read_sources(const Value& root, const Place& place);
  void add_entry(Shelf& shelf, const std::string& id, const Value& value, Place place);
  void check_all() const;
  int find(const Shelf& shelf, const Value& name, const Place& place) const;
  void stack(const Shelf& shelf, int entry, Layers& layers) const;
  int open(const Shelf& shelf, const Value& value, const Place& place, std::string_view key,
           Layers& layers) const;
  std::vector<std::string> aliases(const Shelf& shelf, int entry) const;
  int below_in(const Shelf& shelf, int entry) const;
  std::vector<std::string> bases(const Shelf& shelf, int entry) const;
  std::vector<std::string> but_for_price(const Shelf& shelf, int entry) const;
  void count_uplinks(const Value& value, const Place& place, FabricSpec& spec) const;

  Shelf accelerators_{"accelerators", "an accelerator", {}, {}, {}, {}};
  Shelf nodes_{"nodes", "a node", {}, {}, {}, {}};
  Shelf fabrics_{"fabrics", "a fabric", {}, {}, {}, {}};
  Shelf storage_{"storage", "a storage device", {}, {}, {}, {}};
  std::vector<std::unique_ptr<Document>> documents_;  // entries point into them
  Sources sources_;
};

}  // namespace moebius
