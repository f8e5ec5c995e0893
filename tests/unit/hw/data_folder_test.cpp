// Folders of --data: what they add to the catalogs, and what their reader refuses.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include "tests/catch.h"
#include "tests/process.h"
#include "tests/unit/hw/sentence_of.h"
#include "tests/unit/hw/shipped_catalog.h"

using namespace moebius;

namespace {

// A folder for --data that lives as long as the test.
class DataFolder {
 public:
  explicit DataFolder(const std::string& accelerators) {
    std::filesystem::create_directories(path_);
    std::ofstream(path_ / "accelerators.json") << accelerators;
  }
  ~DataFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("moebius-data-" + std::to_string(getpid()));
};

// What the reader says of a --data file, without the folder.
std::string data_refusal(const std::string& accelerators) {
  const DataFolder folder(accelerators);
  const std::string text = sentence_of([&] { Catalog with(folder.path()); });
  const std::string prefix = folder.path() + "/";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

TEST_CASE("A data folder adds entries, and lays its own over those of the same id") {
  const DataFolder folder(R"({
    "sources": {"LAB": "our own measurement"},
    "accelerators": {
      "h100-sxm": {"aliases": ["our-h100"], "memory": {"value": "94 GB", "source": "LAB", "status": "measured"}},
      "my-chip": {"base": "h100-sxm", "cores": {"value": 100, "source": "LAB", "status": "measured"}}
    }
  })");
  const Catalog with(folder.path());
  REQUIRE(with.accelerator("our-h100").id == "h100-sxm");
  REQUIRE(with.accelerator("H100").memory.value == 94e9);  // the embedded alias leads to the new entry
  REQUIRE(with.accelerator("h100-sxm").cores == 132);
  REQUIRE(with.accelerator("my-chip").memory.value == 94e9);  // bases see the new entry too
  REQUIRE(with.accelerator("my-chip").cores == 100);
  REQUIRE(with.accelerator("h800-sxm").link_rate.value == 200e9);
  for (const Fact& fact : with.accelerator("my-chip").facts)
    if (fact.source == "LAB") REQUIRE(with.source_text(fact) == "our own measurement");
  REQUIRE(with.accelerator_ids().size() == catalog().accelerator_ids().size() + 1);
}

TEST_CASE("An entry that differs in price alone is the chip that it stands on") {
  const DataFolder folder(R"({
    "sources": {"LAB": "our own measurement"},
    "accelerators": {
      "ours": {"base": "gb200-nvl72", "aliases": ["our-gb200"],
               "price": {"value": "8 USD/h", "source": "LAB", "status": "measured"}},
      "dearer": {"base": "ours", "price": {"value": "9 USD/h", "source": "LAB", "status": "measured"}},
      "larger": {"base": "ours", "cores": {"value": 160, "source": "LAB", "status": "measured"}}
    }
  })");
  const Catalog with(folder.path());
  CHECK(with.accelerator("ours").is("gb200-nvl72"));
  CHECK(with.accelerator("ours").is("our-gb200"));
  CHECK(with.accelerator("dearer").is("gb200-nvl72"));
  CHECK(!with.accelerator("larger").is("gb200-nvl72"));
  CHECK(!with.accelerator("gb300-nvl72").is("gb200-nvl72"));
  CHECK(!with.accelerator("gb200-nvl72").is("b200-sxm"));
}

TEST_CASE("A source key means what the file of its fact says, built-in files' facts keep theirs") {
  const Fact memory = catalog().accelerator("h100-sxm").facts.front();
  const std::string built_in = catalog().source_text(memory);
  const DataFolder folder(
      fmt::format(R"({{"sources": {{"{0}": "another text"}}, "accelerators": {{
    "my-chip": {{"base": "h100-sxm", "{1}": {{"value": {2}, "source": "{0}", "status": "measured"}}}}}}}})",
                  memory.source, memory.name,
                  memory.text.find(' ') == std::string::npos ? memory.text : '"' + memory.text + '"'));
  const Catalog with(folder.path());
  REQUIRE(with.source_text(with.accelerator("h100-sxm").facts.front()) == built_in);
  REQUIRE(with.source_text(with.accelerator("my-chip").facts.front()) == "another text");
}

TEST_CASE("Entries have names") {
  const std::string chip = R"({"base": "h100-sxm"})";
  REQUIRE(data_refusal(R"({"accelerators": {"": )" + chip + "}}") ==
          "accelerators.json:1: /accelerators/: expected a name of at least one character, found \"\"");
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm", "aliases": [""]}}})") ==
          "accelerators.json:1: /accelerators/x: expected a name of at least one character, found \"\"");
}

TEST_CASE("An entry that names itself as its base stands on the one it replaces") {
  const DataFolder folder(R"({"sources": {"LAB": "our own measurement"}, "accelerators": {
    "h100-sxm": {"base": "h100-sxm", "memory": {"value": "94 GB", "source": "LAB", "status": "measured"}}}})");
  const Accelerator chip = Catalog(folder.path()).accelerator("h100-sxm");
  REQUIRE(chip.memory.value == 94e9);
  REQUIRE(chip.cores == 132);
}

TEST_CASE("A data folder may hold nothing but profiles") {
  const test::Scratch folder;
  std::filesystem::create_directories(folder.path("data/profiles"));
  REQUIRE(Catalog(folder.path("data")).accelerator("h100-sxm").cores == 132);
}

TEST_CASE("A data folder without catalogs is refused") {
  REQUIRE(sentence_of([] { Catalog with("/nowhere"); }) ==
          "/nowhere: expected accelerators.json, nodes.json, fabrics.json, storage.json, models.json or "
          "profiles/ "
          "in this folder, found none");
}

TEST_CASE("A catalog's fact without source or status is refused") {
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm", "memory": "96 GB"}}})") ==
          "accelerators.json:1: /accelerators/x/memory: expected {\"value\": ..., \"source\": ..., "
          "\"status\": ...}, found "
          "\"96 GB\"");
  REQUIRE(
      data_refusal(
          R"({"accelerators": {"x": {"base": "h100-sxm", "memory": {"value": "96 GB", "status": "measured"}}}})") ==
      "accelerators.json:1: /accelerators/x/memory: expected key \"source\", found none");
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm",
    "memory": {"value": "96 GB", "source": "STAZ", "status": "measured"}}}})") ==
          "accelerators.json:2: /accelerators/x/memory/source: expected a key of \"sources\", found \"STAZ\" "
          "(did you mean "
          "\"STAS\"?)");
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm",
    "memory": {"value": "96 GB", "source": "STAS", "status": "guess"}}}})") ==
          "accelerators.json:2: /accelerators/x/memory/status: expected one of \"published\", \"measured\", "
          "\"vendor claim\", \"third party\", \"from memory\", \"estimate\", found \"guess\"");
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm",
    "memory": {"value": "96 GB", "source": "STAS", "status": "estimate", "range": ["97 GB", "99 GB"]}}}})") ==
          "accelerators.json:2: /accelerators/x/memory/range: expected a range that holds the value, the low "
          "end first");
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"base": "h100-sxm",
    "memory": {"value": "96 GB", "source": "STAS", "state": "estimate"}}}})") ==
          "accelerators.json:2: /accelerators/x/memory: expected key \"status\", found none (is \"state\" "
          "meant?)");
}

TEST_CASE("A base that leads back to itself is refused with the way round") {
  REQUIRE(data_refusal(R"({"accelerators": {
    "a": {"base": "b"},
    "b": {"base": "c"},
    "c": {"base": "a"}
  }})") == "accelerators.json:2: /accelerators/a: cyclic base: a -> b -> c -> a");
}

TEST_CASE("An entry that lacks a figure, takes another's name or has a name in capitals is refused") {
  REQUIRE(data_refusal(R"({"accelerators": {"x": {"vendor": "V"}}})") ==
          "accelerators.json:1: /accelerators/x: expected key \"architecture\", found none");
  REQUIRE(data_refusal(R"({"accelerators": {
    "x": {"base": "h100-sxm", "aliases": ["z"]},
    "y": {"base": "h100-sxm", "aliases": ["Z"]}
  }})") == "accelerators.json:3: /accelerators/y: the name \"Z\" already leads to \"x\"");
  REQUIRE(
      data_refusal(R"({"accelerators": {"My Chip": {"base": "h100-sxm"}}})") ==
      "accelerators.json:1: /accelerators/My Chip: expected a lower-case id with hyphens, found \"My Chip\"");
  REQUIRE(data_refusal(R"({"accelerator": {}})") ==
          "accelerators.json:1: /accelerator: unknown key \"accelerator\": expected one of sources, "
          "announced, accelerators (did you mean \"accelerators\"?)");
}
