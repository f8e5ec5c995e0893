// Every name that tables of measurements and papers give a chip leads to a catalog entry. The names stand
// here; a second test reads the tables themselves where they are at hand.
#include "hw/document.h"
#include "tests/unit/hw/shipped_catalog.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace moebius;

namespace {

struct Name {
  const char* written;
  const char* id;
};

const Name kNames[] = {
    // Keys of a chip list.
    {"A100-SXM4-80GB", "a100-sxm"},
    {"A100-SXM4-40GB", "a100-sxm-40gb"},
    {"A800-SXM4-80GB", "a800-sxm"},
    {"H100-SXM5-80GB", "h100-sxm"},
    {"H800-SXM5-80GB", "h800-sxm"},
    {"H200-SXM-141GB", "h200-sxm"},
    {"H20-SXM-96GB", "h20-sxm"},
    {"L20-48GB", "l20"},
    {"L40S-48GB", "l40s"},
    {"B200-SXM-180GB", "b200-sxm"},
    {"B300-SXM-288GB", "b300-sxm"},
    {"GB200-NVL72", "gb200-nvl72"},
    {"GB300-NVL72", "gb300-nvl72"},
    {"MI300X", "mi300x"},
    {"Kunlun-K200", "kunlun-k200"},
    {"Kunlun-R200", "kunlun-r200"},
    {"Kunlun-P800", "kunlun-p800"},
    {"Ascend-910A", "ascend-910a"},
    {"Ascend-910B1", "ascend-910b1"},
    {"Ascend-910B2", "ascend-910b2"},
    {"Ascend-910B3", "ascend-910b3"},
    {"Ascend-910B4", "ascend-910b4"},
    {"Ascend-910C", "ascend-910c"},
    {"Ascend-950PR", "ascend-950pr"},
    {"Ascend-950DT", "ascend-950dt"},
    // Systems of kernel tables.
    {"a100_sxm", "a100-sxm"},
    {"h100_sxm", "h100-sxm"},
    {"h200_sxm", "h200-sxm"},
    {"b200_sxm", "b200-sxm"},
    {"b300_sxm", "b300-sxm"},
    {"gb300", "gb300-nvl72"},
    {"l40s", "l40s"},
    {"rtx_pro_6000_server", "rtx-pro-6000"},
    {"b60", "arc-b60"},
    // Hardware columns of measured tables and published results.
    {"H800", "h800-sxm"},
    {"H20", "h20-sxm"},
    {"B200", "b200-sxm"},
    {"SM100", "b200-sxm"},
    {"SM100 + CX7", "b200-sxm"},
    {"SM90 + CX7", "h800-sxm"},
    {"H800 8/node NVLink~160GB/s, CX7 400Gb/s IB per GPU", "h800-sxm"},
    {"H800 SXM5", "h800-sxm"},
    {"H800-SXM x2048", "h800-sxm"},
    {"H800-SXM x64 (traced rank 0 of 64)", "h800-sxm"},
    {"H800 MPFT", "h800-sxm"},
    {"H800 nodes (8 GPU), average 226.75 nodes, peak 278", "h800-sxm"},
    {"2x8 H800, 8x CX7 RoCE (200 GB/s class)", "h800-sxm"},
    {"2x8 H20-3e, 4x400GbE RoCE per node", "h20-sxm-141gb"},
    {"H100 80GB HBM3", "h100-sxm"},
    {"H100 80GB HBM3, GCP A3 Mega (per repository name)", "h100-sxm"},
    {"H100-SXM (Eos: NVLink 450 GB/s, 400 Gb/s IB per GPU)", "h100-sxm"},
    {"H100 x96 (12 nodes, IB)", "h100-sxm"},
    {"H100 x64, 400 Gb/s IB", "h100-sxm"},
    {"H100 x32, 400 Gb/s IB", "h100-sxm"},
    {"8x H200", "h200-sxm"},
    {"A100-80GB", "a100-sxm"},
    {"A100-80GB DGX (Selene)", "a100-sxm"},
    {"A100-80GB SXM (DGX A100, Selene)", "a100-sxm"},
    {"A100-80GB SXM", "a100-sxm"},
    {"A100 NVLink3", "a100-sxm"},
    {"8x A100 NVLink, 1 GiB", "a100-sxm"},
    {"8x A100-40GB DGX", "a100-sxm-40gb"},
    {"2x8 A100-40GB DGX, 200 Gb/s IB", "a100-sxm-40gb"},
    {"A800 x8", "a800-sxm"},
    {"10-20 nodes of 8x A800, 4x200 Gb/s RDMA, 1 TB DRAM per node", "a800-sxm"},
    {"Kunlun P800 x1", "kunlun-p800"},
    {"Ascend 910C (CloudMatrix384, 256 NPUs used)", "ascend-910c"},
    {"Ascend A3 384 SuperPOD (910C, HCCS)", "ascend-910c"},
    {"Atlas 800T A2 (Ascend 910B)", "ascend-910b3"},
};

// Hardware columns that name no chip of one kind.
const std::set<std::string> kNoChip{
    "mixed",                                                  // a cluster of unlike chips
    "H800 / H20",                                             // two chips
    "32 GPUs on 4 nodes (model not stated)",                  // unknown
    "IB NDR / RoCE 400G / NVLink",                            // links
    "3FS: 180 storage nodes (2x200 Gb/s IB, 16x14TiB NVMe)",  // storage
    "Alibaba HPN",                                            // a fabric
    "Kunlun-M100",
    "Kunlun-M300",  // announced without figures
};

const std::filesystem::path kShared = std::filesystem::path(MOEBIUS_SOURCE_DIR) / ".." / "shared" / "data";

// The first field of a CSV line; quotes may hold commas.
std::string first_field(const std::string& line) {
  if (!line.starts_with('"')) return line.substr(0, line.find(','));
  return line.substr(1, line.find('"', 1) - 1);
}

// Field `index` of a CSV line.
std::string field(const std::string& line, int index) {
  std::string rest = line;
  for (int i = 0; i < index; ++i) {
    const std::size_t past = rest.starts_with('"') ? rest.find('"', 1) + 1 : 0;
    rest = rest.substr(rest.find(',', past) + 1);
  }
  return first_field(rest);
}

int column_of(const std::string& header, const std::string& name) {
  for (int i = 0;; ++i) {
    const std::string title = field(header, i);
    if (title == name) return i;
    if (header.ends_with(title)) return -1;
  }
}

void read_csv(std::set<std::string>& names, std::istream& lines, const std::string& title) {
  std::string line;
  std::getline(lines, line);
  const int column = column_of(line, title);
  if (column < 0) return;
  while (std::getline(lines, line)) names.insert(field(line, column));
}

void read_gzip_systems(std::set<std::string>& names, const std::filesystem::path& path) {
  const std::string command = "gzip -dc '" + path.string() + "' | cut -d, -f1 | sort -u";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[256];
  while (pipe && std::fgets(line, sizeof line, pipe.get())) {
    std::string name(line, std::string_view(line).find_last_not_of('\n') + 1);
    if (name != "system") names.insert(name);
  }
}

void read_published(std::set<std::string>& names) {
  const Document document = load_document((kShared / "published.json").string());
  for (const Value& row : document.root.items)
    if (const Value* hardware = row.find("hardware")) names.insert(hardware->text);
}

void read_chip_list(std::set<std::string>& names) {
  const Document document = load_document((kShared / "accelerators.json").string());
  for (const std::string& key : document.root.find("accelerators")->keys) names.insert(key);
}

}  // namespace

TEST_CASE("Every name in use for a chip leads to it") {
  for (const Name& name : kNames) {
    INFO(name.written);
    REQUIRE(catalog().accelerator(name.written).id == name.id);
  }
}

TEST_CASE("Every hardware name of the tables beside the project leads to a chip") {
  if (!std::filesystem::exists(kShared)) {
    WARN("skipped: " << kShared.string() << " is not there");
    return;
  }
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kShared))
    if (file.path().extension() == ".csv") {
      std::ifstream lines(file.path());
      read_csv(names, lines, "hardware");
    }
  // The larger tables name the same systems.
  for (const char* table : {"nccl", "custom_allreduce", "deepep_ll", "megamoe", "quantize", "wideep_mla"})
    read_gzip_systems(names, kShared / "kernels" / (std::string(table) + ".csv.gz"));
  read_published(names);
  read_chip_list(names);
  REQUIRE(names.size() > 60);
  for (const std::string& name : names) {
    if (kNoChip.contains(name)) continue;
    INFO(name);
    REQUIRE_NOTHROW(catalog().accelerator(name));
  }
}
