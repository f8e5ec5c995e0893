#include "workloads/listing/listing.h"

#include <fmt/format.h>

#include <filesystem>

#include "hw/error.h"
#include "hw/folder_files.h"
#include "hw/json_text.h"
#include "hw/new_file.h"
#include "workloads/listing/model_text.h"
#include "workloads/listing/policy_listing.h"
#include "workloads/listing/table_text.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/framework_settings.h"
#include "workloads/scenario/scenario.h"
#include "workloads/schedule/algorithms.h"
#include "workloads/serving/frameworks.h"
#include "workloads/set_option.h"
#include "workloads/training/frameworks.h"

namespace moebius {

namespace {

std::string or_dash(double value, const std::string& text) {
  return value > 0 ? text : "-";
}

std::string accelerators_text(const Shelves& shelves) {
  TextTable table{{"name", "memory", "memory rate", "bf16", "fp8", "scale-up link", "aliases"}};
  for (const std::string& id : shelves.hardware.accelerator_ids()) {
    const Accelerator chip = shelves.hardware.accelerator(id);
    const auto peak = [&](DType dtype) {
      return or_dash(chip.peak_of(dtype).value, to_text(chip.peak_of(dtype)));
    };
    table.push_back({chip.id, to_text(chip.memory), to_text(chip.memory_rate), peak(DType::kBf16),
                     peak(DType::kFp8), or_dash(chip.link_rate.value, to_text(chip.link_rate)),
                     fmt::format("{}", fmt::join(chip.aliases, ", "))});
  }
  return aligned(table);
}

std::string_view to_string(ScaleUp scale_up) {
  switch (scale_up) {
    case ScaleUp::kSwitch:
      return "switch";
    case ScaleUp::kFullMesh:
      return "full mesh";
    case ScaleUp::kPcie:
      return "PCIe";
  }
  return "";
}

std::string nodes_text(const Shelves& shelves) {
  TextTable table{{"name", "accelerators", "scale-up", "NICs", "host memory", "aliases"}};
  for (const std::string& id : shelves.hardware.node_ids()) {
    const Node node = shelves.hardware.node(id);
    table.push_back({node.id, std::to_string(node.accelerators), std::string(to_string(node.scale_up)),
                     std::to_string(node.nics), or_dash(node.host_memory.value, to_text(node.host_memory)),
                     fmt::format("{}", fmt::join(node.aliases, ", "))});
  }
  return aligned(table);
}

std::string fabrics_text(const Shelves& shelves) {
  TextTable table{{"name", "planes", "tiers", "rail-optimised", "oversubscription", "leaf ports"}};
  for (const std::string& id : shelves.hardware.fabric_ids()) {
    const FabricSpec spec = shelves.hardware.fabric(id);
    table.push_back({id, std::to_string(spec.planes), spec.tiers < 0 ? "auto" : std::to_string(spec.tiers),
                     spec.rail_optimised ? "yes" : "no", fmt::format("{}", spec.oversubscription),
                     std::to_string(spec.leaf_ports)});
  }
  return aligned(table);
}

std::string storage_text(const Shelves& shelves) {
  TextTable table{{"name", "read", "write", "read latency", "capacity"}};
  for (const std::string& id : shelves.hardware.storage_ids()) {
    const Storage device = shelves.hardware.storage(id);
    table.push_back({device.id, to_text(device.read_rate), to_text(device.write_rate),
                     to_text(device.read_latency), or_dash(device.capacity.value, to_text(device.capacity))});
  }
  return aligned(table);
}

std::string models_text(const Shelves& shelves) {
  TextTable table{{"name", "layers", "hidden", "experts", "parameters", "active", "runs"}};
  for (const std::string& id : shelves.models.ids()) {
    const Model model = shelves.models.model(id);
    const bool runs = model.unsupported.empty();
    const std::string experts =
        model.experts.routed > 0 ? fmt::format("{} of {}", model.experts.active, model.experts.routed) : "-";
    table.push_back({model.id, std::to_string(model.layers), std::to_string(model.hidden), experts,
                     runs ? billions(count_parameters(model).total()) : "-",
                     runs ? billions(active_parameters(model)) : "-",
                     runs ? "yes" : "no: " + model.unsupported});
  }
  return aligned(table);
}

std::string schedules_text(const Shelves&) {
  TextTable table{{"name", "order of microbatches"}};
  for (const auto& row : pipeline_schedules())
    table.push_back({std::string(row.name), std::string(row.help)});
  return aligned(table);
}

std::string collectives_text(const Shelves&) {
  TextTable table{{"name", "operations", "needs", "how"}};
  for (const AlgorithmRow& row : algorithm_rows()) {
    std::vector<std::string_view> kinds;
    for (const OpKind kind : row.kinds) kinds.push_back(to_string(kind));
    table.push_back({std::string(row.name), fmt::format("{}", fmt::join(kinds, ", ")), std::string(row.needs),
                     std::string(row.help)});
  }
  return aligned(table);
}

// The scenario files below scenarios/ of the caller's directory.
std::string scenarios_text(const Shelves&) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::is_directory("scenarios", none))
    return "no directory scenarios/ here: run this beside the project's files\n";
  TextTable table{{"file", "kind", "name"}};
  for (const fs::path& file : files_below("scenarios", ".json")) {
    if (file.filename() == "schema.json") continue;
    const Document document = load_scenario(file.string());
    const auto word = [&](const char* key) {
      const Value* value = document.root.kind == Value::Kind::kObject ? document.root.find(key) : nullptr;
      return value != nullptr && value->kind == Value::Kind::kString ? value->text : "?";
    };
    table.push_back({file.string(), word("kind"), word("name")});
  }
  return aligned(table);
}

struct Listing {
  std::string_view name;
  std::string (*text)(const Shelves&);
};

std::string milliseconds(Time time) {
  return fmt::format("{:.4g} ms", time.seconds() * 1e3);
}

// "vllm-*, sglang-*".
std::string kernels_text(const Framework& framework) {
  std::string text;
  for (const std::string_view stack : framework.stacks)
    if (!stack.empty()) text += fmt::format("{}{}*", text.empty() ? "" : ", ", stack);
  return text;
}

std::string training_frameworks_text() {
  std::string text = "\nOf training, keys of /plan that are not as they are without a framework:\n";
  for (const TrainingFramework& framework : training_frameworks()) {
    if (framework.source.empty()) continue;
    text += fmt::format("\n{}: {}\n ", framework.name, framework.help);
    for (const Setting& setting : framework_settings(framework.name))
      text += fmt::format(" {} {}", setting.pointer.substr(std::string_view("/plan/").size()), setting.value);
    text += fmt::format("\n  {}\n", framework.source);
  }
  return text;
}

std::string frameworks_text(const Shelves&) {
  TextTable table{{"name", "batching", "chunked", "tokens", "sequences", "page", "memory", "dispatch",
                   "overlap", "iteration", "sequence", "submission", "request"}};
  for (const Framework& f : frameworks())
    table.push_back({std::string(f.name), f.batching == BatchPolicy::kMixed ? "mixed" : "prefill-first",
                     f.chunked ? "yes" : "no", std::to_string(f.token_budget), std::to_string(f.max_batch),
                     std::to_string(f.block_tokens),
                     f.reserve.is_told() ? "by size" : fmt::format("{:.0f}%", 100 * f.device_share),
                     std::string(dispatch_name(f.dispatch)), f.overlap ? "yes" : "no",
                     milliseconds(f.host_per_iteration), milliseconds(f.host_per_sequence),
                     milliseconds(f.host_per_submission), milliseconds(f.host_per_request)});
  std::string text =
      "\noverlap: the host prepares an iteration while the device works on the one before; iteration, "
      "sequence, request: the host's time for each; submission: that behind an iteration's launch\n";
  for (const Framework& f : frameworks()) {
    text += fmt::format("\n{}: {}\n", f.name, f.help);
    if (!f.stacks.front().empty())
      text += fmt::format("  kernels: {} first, where they are measured and /cluster/kernels does not say\n",
                          kernels_text(f));
    if (!f.source.empty()) text += fmt::format("  {}\n", f.source);
    if (!f.fitted.empty()) text += fmt::format("  host: {}\n", f.fitted);
    if (!f.profiled.empty()) text += fmt::format("  host, an iteration: {}\n", f.profiled);
  }
  return aligned(table) + wrapped(text + training_frameworks_text());
}

constexpr Listing kListings[] = {
    {"accelerators", accelerators_text},
    {"nodes", nodes_text},
    {"fabrics", fabrics_text},
    {"storage", storage_text},
    {"models", models_text},
    {"schedules", schedules_text},
    {"scenarios", scenarios_text},
    {"collectives", collectives_text},
    {"frameworks", frameworks_text},
    {"policies", [](const Shelves&) { return policies_text(); }},
};

std::string facts_text(const std::vector<Fact>& facts, const Catalog& catalog) {
  TextTable table{{"fact", "value", "range in SI units", "status", "source"}};
  for (const Fact& fact : facts) {
    const std::string range =
        fact.low < fact.high ? fmt::format("{:.6g} .. {:.6g}", fact.low, fact.high) : "";
    const std::string note = fact.note.empty() ? "" : " (" + fact.note + ")";
    table.push_back({fact.name, fact.text.empty() ? fmt::format("{:.6g}", fact.value) : fact.text, range,
                     fact.status, catalog.source_text(fact) + note});
  }
  return aligned(table);
}

// Models are compared without case alone; '_' and ' ' in the names of others count as '-'.
std::string hyphens(std::string text) {
  for (char& c : text)
    if (c == '_' || c == ' ') c = '-';
  return text;
}

[[noreturn]] void unknown(const std::string& name, const Shelves& shelves) {
  std::vector<std::string> known;
  const Catalog& catalog = shelves.hardware;
  for (const auto* ids : {&catalog.accelerator_ids(), &catalog.node_ids(), &catalog.fabric_ids(),
                          &catalog.storage_ids(), &shelves.models.ids()})
    known.insert(known.end(), ids->begin(), ids->end());
  throw input_error(
      fmt::format("show: unknown name \"{}\"{}; `moebius list` names all", name, suggestion(name, known)));
}

// What a scenario says that names an entry (`key`: with changes) and changes it.
Document entry_of(const std::string& name, const std::string& key, const std::vector<std::string>& sets) {
  Document entry{"show", {}};
  entry.root.kind = sets.empty() ? Value::Kind::kString : Value::Kind::kObject;
  if (sets.empty()) entry.root.text = name;
  if (!sets.empty()) set_at_pointer(entry, "/" + key, '"' + name + '"');
  apply_sets(sets, entry);
  return entry;
}

Accelerator changed_accelerator(const std::string& name, const Catalog& catalog,
                                const std::vector<std::string>& sets) {
  if (sets.empty()) return catalog.accelerator(name);
  const Document entry = entry_of(name, "base", sets);
  return catalog.accelerator(entry.root, {entry.file, "", 0});
}

// Of anything but a fabric, as a scenario that names it would find it.
std::string entry_text(const std::string& name, const Shelves& shelves,
                       const std::vector<std::string>& sets) {
  const Catalog& catalog = shelves.hardware;
  const Document entry = entry_of(name, "base", sets);
  const Place place{entry.file, "", 0};
  if (catalog.has_accelerator(name)) {
    const Accelerator chip = catalog.accelerator(entry.root, place);
    return heading(chip.id, chip.aliases, "accelerator, " + chip.vendor) + facts_text(chip.facts, catalog);
  }
  if (catalog.has_node(name)) {
    const Node node = catalog.node(entry.root, place);
    return heading(node.id, node.aliases, "node") + facts_text(node.facts, catalog);
  }
  if (catalog.has_storage(name)) {
    const Storage device = catalog.storage(entry.root, place);
    return heading(device.id, device.aliases, "storage") + facts_text(device.facts, catalog);
  }
  const std::string hyphened = hyphens(name);
  for (const std::string& called : {name, hyphened})
    if (shelves.models.has(called))
      return model_text(shelves.models.model(entry_of(called, "base", sets).root, place));
  unknown(name, shelves);
}

Scenario changed_scenario(const std::string& file, const Shelves& shelves,
                          const std::vector<std::string>& sets) {
  Document document = load_scenario(file);
  apply_sets(sets, document);
  return read_scenario(document, shelves.hardware, shelves.models);
}

void require_cluster(const Scenario& scenario, const std::string& file) {
  if (!scenario.cluster || scenario.cluster->pools.empty())
    throw input_error(fmt::format("{}: expected a scenario with a cluster, found none", file));
}

std::string scenario_network(const std::string& file, const Shelves& shelves, const NetworkView& view,
                             const std::vector<std::string>& sets) {
  require_apart("--draw", view.draw, file);
  const Scenario scenario = changed_scenario(file, shelves, sets);
  require_cluster(scenario, file);
  return fmt::format("{}: network of the scenario, {}\n", file, scenario.cluster->fabric.spec().type) +
         network_text(*scenario.cluster, view) + imported_text(scenario.model);
}

void require_network(const NetworkView& view, const std::string& name) {
  for (const ViewOption& option : view_options()) {
    if (!(view.*option.value).empty())
      throw input_error(fmt::format("--{}: expected the name of a fabric or a scenario file, found \"{}\"",
                                    option.name, name));
  }
}

// A configuration of Hugging Face's, which has no kind.
bool is_configuration(const std::string& file) {
  const Document document = load_document(file);
  const Value& root = document.root;
  return root.kind == Value::Kind::kObject && root.find("kind") == nullptr &&
         (root.find("model_type") != nullptr || root.find("architectures") != nullptr);
}

// As a scenario that names the file would find it.
std::string configuration_text(const std::string& file, const Shelves& shelves,
                               const std::vector<std::string>& sets) {
  Document entry{"show", {}};
  entry.root.kind = Value::Kind::kObject;
  set_at_pointer(entry, "/hf_config", json_string(file));
  apply_sets(sets, entry);
  return model_text(shelves.models.model(entry.root, {entry.file, "", 0}));
}

}  // namespace

std::vector<std::string> listable() {
  std::vector<std::string> names;
  for (const Listing& listing : kListings) names.emplace_back(listing.name);
  return names;
}

std::string list_text(std::string_view what, const Shelves& shelves) {
  for (const Listing& listing : kListings) {
    if (listing.name == what) return listing.text(shelves);
  }
  throw input_error(fmt::format("list: expected one of \"{}\", found \"{}\"{}",
                                fmt::join(listable(), "\", \""), what, suggestion(what, listable())));
}

Accelerator shown_accelerator(const std::string& name, const Shelves& shelves,
                              const std::vector<std::string>& sets) {
  if (!name.ends_with(".json")) return changed_accelerator(name, shelves.hardware, sets);
  const Scenario scenario = changed_scenario(name, shelves, sets);
  require_cluster(scenario, name);
  return scenario.cluster->pools.front().accelerator;
}

std::string show_text(const std::string& name, const Shelves& shelves, const NetworkView& view,
                      const std::vector<std::string>& sets) {
  if (name.ends_with(".json") && is_configuration(name)) {
    require_network(view, name);
    return configuration_text(name, shelves, sets);
  }
  if (name.ends_with(".json")) return scenario_network(name, shelves, view, sets);
  const Catalog& catalog = shelves.hardware;
  if (catalog.has_fabric(name)) {
    const Document entry = entry_of(name, "type", sets);
    const FabricSpec spec = catalog.fabric(entry.root, {entry.file, "", 0}, {});
    return heading(spec.type, spec.aliases, "fabric") + facts_text(spec.facts, catalog) + "\n" +
           network_text(spec, catalog, view);
  }
  std::string text = entry_text(name, shelves, sets);
  require_network(view, name);
  return text;
}

}  // namespace moebius
