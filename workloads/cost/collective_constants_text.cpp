// How hw/catalog/collectives.json is written.
#include <fmt/format.h>

#include "hw/json_text.h"
#include "workloads/cost/collective_constants.h"
#include "workloads/cost/collective_fields.h"

namespace moebius {
namespace {

constexpr const char* kCollectiveNotes = R"(  "notes": [
    "Written by `moebius calibrate --from DIR --fit links --out FILE`, which fits the constants to the all-reduce between 2 and between 8 devices that DIR has (between 2 only where a row names whose steps, and whose switch, it takes) and keeps the rest. What the constants mean: workloads/cost/collective_constants.h and collective_model.cpp.",
    "achieved: link_rate x link_efficiency of the chip's catalog entry when the rates were fitted; a chip whose link achieves more or less has its rates in proportion.",
    "tuner_rate, tuner_ll_most, ll128, in_switch_share: what NCCL 2.28 (src/graph/topo.h, tuning.cc) takes the link for when it chooses a protocol: links x 20, 20.6 or 40.1 GB/s; most of LL 87.7, 141 or 282 GB/s; all-reduce in the switch at 0.85 or 0.74 of the link. LL128 is left out on Blackwell, whose tables show Simple in its place.",
    "copy_rate: 18.6 bytes a cycle and channel, what all-reduce between 2 and between 8 A100 differ by, times the channels and the boost clock of the chip: 24 channels at 1.41 and 1.98 GHz, 32 at 1.965, 2 over PCIe.",
    "latency: of a message between two devices of the node that was measured, as hw/catalog/nodes.json has it (scale_up_latency of hgx-8, gb200-nvl72, pcie-8): steps are as much longer as messages of another node are.",
    "channels: thread blocks of a call with many bytes, a multiprocessor each, as the library's own logs name them: 24 coll channels of DGX A100 (NVIDIA/nccl-tests 228) and HGX H100, 16 of H800 (NVIDIA/nccl 892).",
    "alike: chips without tables, and whose constants theirs are derived from, rates in proportion to what their links achieve: estimates.",
    "error: median relative error on the rows that the constants were fitted to."
  ],
)";

std::string rate_text(double rate) {
  return json_string(fmt::format("{:.6g} GB/s", rate / 1e9));
}

template <class Row>
std::string constants_text(std::span<const ConstantField<Row>> fields, const Row& row) {
  std::string text;
  for (const auto& field : fields)
    text += fmt::format("{}\"{}\": {:.4g}", text.empty() ? "" : ", ", field.key,
                        row.*field.field / in_si(field.unit));
  return "{" + text + "}";
}

std::string head(const std::string& accelerator, const char* key, const std::string& name, bool estimated,
                 const std::string& source) {
  return fmt::format(
      "    {{\n      \"accelerator\": {}, \"{}\": {}, \"constants_are\": \"{}\",\n      \"source\": {},\n",
      json_string(accelerator), key, json_string(name), estimated ? "estimates" : "fitted",
      json_string(source));
}

std::string link_text(const LinkConstants& row) {
  std::string text = head(row.accelerator, "library", row.library, row.estimated, row.source);
  if (!row.steps_like.empty())
    text += fmt::format("      \"steps_like\": {},\n", json_string(row.steps_like));
  text += fmt::format("      \"achieved\": {}, \"own_ports\": {}, ", rate_text(row.achieved), row.own_ports);
  if (row.channels > 0) text += fmt::format("\"channels\": {}, ", row.channels);
  text += fmt::format("\"copy_rate\": {}, \"latency\": {},\n", rate_text(row.copy_rate),
                      json_string(fmt::format("{:.4g} us", row.latency * 1e6)));
  if (row.one_protocol) text += "      \"one_protocol\": true,\n";
  if (row.nominal > 0) text += fmt::format("      \"tuner_rate\": {},\n", rate_text(row.nominal));
  text += fmt::format("      \"tuner_ll_most\": {}, \"ll128\": {}, \"in_switch_share\": {},\n",
                      rate_text(row.ll_most), row.has_ll128, row.in_switch_share);
  return text + fmt::format("      \"constants\": {},\n      \"error\": {:.2g}\n    }}",
                            constants_text(link_fields(), row), row.error);
}

std::string framework_text(const FrameworkConstants& row) {
  return head(row.accelerator, "framework", row.framework, row.estimated, row.source) +
         fmt::format("      \"achieved\": {},\n      \"constants\": {},\n      \"error\": {:.2g}\n    }}",
                     rate_text(row.achieved), constants_text(framework_fields(), row), row.error);
}

}  // namespace

std::string collective_constants_text(const CollectiveConstants& constants) {
  std::string links, frameworks, alike;
  for (const LinkConstants& row : constants.links) links += (links.empty() ? "" : ",\n") + link_text(row);
  for (const FrameworkConstants& row : constants.frameworks)
    frameworks += (frameworks.empty() ? "" : ",\n") + framework_text(row);
  for (const auto& [name, like] : constants.alike)
    alike += fmt::format("{}    {}: {}", alike.empty() ? "" : ",\n", json_string(name), json_string(like));
  return fmt::format(
      "{{\n{}  \"links\": [\n{}\n  ],\n  \"frameworks\": [\n{}\n  ],\n  \"alike\": {{\n{}\n  }}\n}}\n",
      kCollectiveNotes, links, frameworks, alike);
}

}  // namespace moebius
