#include "workloads/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hw/error.h"
#include "workloads/policy_listing.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/scenario.h"
#include "workloads/schedule/algorithms.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

namespace {

using Table = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell; the first row is the head.
std::string aligned(const Table& table) {
  std::vector<std::size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string or_dash(double value, const std::string& text) {
  return value > 0 ? text : "-";
}

std::string accelerators_text(const Shelves& shelves) {
  Table table{{"name", "memory", "memory rate", "bf16", "fp8", "scale-up link", "aliases"}};
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
  Table table{{"name", "accelerators", "scale-up", "NICs", "host memory", "aliases"}};
  for (const std::string& id : shelves.hardware.node_ids()) {
    const Node node = shelves.hardware.node(id);
    table.push_back({node.id, std::to_string(node.accelerators), std::string(to_string(node.scale_up)),
                     std::to_string(node.nics), or_dash(node.host_memory.value, to_text(node.host_memory)),
                     fmt::format("{}", fmt::join(node.aliases, ", "))});
  }
  return aligned(table);
}

std::string fabrics_text(const Shelves& shelves) {
  Table table{{"name", "planes", "tiers", "rail-optimised", "oversubscription", "leaf ports"}};
  for (const std::string& id : shelves.hardware.fabric_ids()) {
    const FabricSpec spec = shelves.hardware.fabric(id);
    table.push_back({id, std::to_string(spec.planes), spec.tiers < 0 ? "auto" : std::to_string(spec.tiers),
                     spec.rail_optimised ? "yes" : "no", fmt::format("{}", spec.oversubscription),
                     std::to_string(spec.leaf_ports)});
  }
  return aligned(table);
}

std::string storage_text(const Shelves& shelves) {
  Table table{{"name", "read", "write", "read latency", "capacity"}};
  for (const std::string& id : shelves.hardware.storage_ids()) {
    const Storage device = shelves.hardware.storage(id);
    table.push_back({device.id, to_text(device.read_rate), to_text(device.write_rate),
                     to_text(device.read_latency), or_dash(device.capacity.value, to_text(device.capacity))});
  }
  return aligned(table);
}

std::string billions(double parameters) {
  return fmt::format("{:.2f} B", parameters * 1e-9);
}

std::string models_text(const Shelves& shelves) {
  Table table{{"name", "layers", "hidden", "experts", "parameters", "active", "runs"}};
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
  Table table{{"name", "order of microbatches"}};
  for (const auto& row : pipeline_schedules())
    table.push_back({std::string(row.name), std::string(row.help)});
  return aligned(table);
}

std::string collectives_text(const Shelves&) {
  Table table{{"name", "operations", "needs", "how"}};
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
  if (!fs::is_directory("scenarios"))
    return "no directory scenarios/ here: run this beside the project's files\n";
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator("scenarios")) {
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json")
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  Table table{{"file", "kind", "name"}};
  for (const std::string& file : files) {
    const Document document = load_scenario(file);
    const auto word = [&](const char* key) {
      const Value* value = document.root.kind == Value::Kind::kObject ? document.root.find(key) : nullptr;
      return value != nullptr && value->kind == Value::Kind::kString ? value->text : "?";
    };
    table.push_back({file, word("kind"), word("name")});
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

std::string frameworks_text(const Shelves&) {
  Table table{{"name", "batching", "chunked", "tokens", "sequences", "page", "memory", "dispatch",
               "host overlaps", "host, an iteration", "a sequence", "a request"}};
  for (const Framework& f : frameworks())
    table.push_back({std::string(f.name), f.batching == BatchPolicy::kMixed ? "mixed" : "prefill-first",
                     f.chunked ? "yes" : "no", std::to_string(f.token_budget), std::to_string(f.max_batch),
                     std::to_string(f.block_tokens), fmt::format("{:.0f}%", 100 * f.device_share),
                     std::string(dispatch_name(f.dispatch)), f.overlap ? "yes" : "no",
                     milliseconds(f.host_per_iteration), milliseconds(f.host_per_sequence),
                     milliseconds(f.host_per_request)});
  std::string text = aligned(table);
  for (const Framework& f : frameworks()) {
    text += fmt::format("\n{}: {}\n", f.name, f.help);
    if (!f.stacks.front().empty())
      text += fmt::format("  kernels: {} first, where they are measured and /cluster/kernels does not say\n",
                          kernels_text(f));
    if (!f.source.empty()) text += fmt::format("  {}\n", f.source);
    if (!f.fitted.empty()) text += fmt::format("  host: {}\n", f.fitted);
  }
  return text;
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
  Table table{{"fact", "value", "range in SI units", "status", "source"}};
  for (const Fact& fact : facts) {
    const std::string range =
        fact.low < fact.high ? fmt::format("{:.6g} .. {:.6g}", fact.low, fact.high) : "";
    const std::string note = fact.note.empty() ? "" : " (" + fact.note + ")";
    table.push_back({fact.name, fact.text.empty() ? fmt::format("{:.6g}", fact.value) : fact.text, range,
                     fact.status, catalog.source_text(fact.source) + note});
  }
  return aligned(table);
}

std::string heading(const std::string& id, const std::vector<std::string>& aliases, std::string_view what) {
  const std::string also = aliases.empty() ? "" : fmt::format(", also called {}", fmt::join(aliases, ", "));
  return fmt::format("{}: {}{}\n\n", id, what, also);
}

std::string model_text(const Model& model) {
  std::string text = heading(model.id, model.aliases, "model");
  if (!model.unsupported.empty())
    return text + "cannot run: " + model.unsupported + "\nsource: " + model.source + "\n";
  const ParameterCount count = count_parameters(model);
  Table table{{"layers",
               fmt::format("{} ({} dense first), {} MTP", model.layers, model.first_dense, model.mtp_layers)},
              {"hidden", std::to_string(model.hidden)},
              {"heads", fmt::format("{} query, {} key-value", model.heads, model.kv_heads)},
              {"experts", fmt::format("{} routed, {} active, {} shared{}, width {}", model.experts.routed,
                                      model.experts.active, model.experts.shared,
                                      model.experts.shared_gate ? " with a gate" : "", model.experts.width)},
              {"vocabulary", std::to_string(model.vocabulary)},
              {"parameters", billions(count.total())},
              {"  embedding and head", billions(count.embedding + count.head)},
              {"  attention", billions(count.attention)},
              {"  dense MLPs", billions(count.dense_mlp)},
              {"  experts, router", billions(count.routed_experts + count.shared_experts + count.router)},
              {"  MTP, beside the total", billions(count.mtp)},
              {"active parameters", billions(active_parameters(model))},
              {"published", fmt::format("{}, {} active", billions(model.published.parameters),
                                        billions(model.published.active))},
              {"source", fmt::format("{} ({})", model.source, model.status)}};
  return text + aligned(table);
}

// Names are compared as the catalogs do: without case, '_' and ' ' as '-'.
std::string normal(std::string text) {
  for (char& c : text)
    c = c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_called(const std::string& wanted, const std::string& id, const std::vector<std::string>& aliases) {
  const auto same = [&](const std::string& name) { return normal(name) == normal(wanted); };
  return same(id) || std::any_of(aliases.begin(), aliases.end(), same);
}

// Of anything but a fabric.
std::string entry_text(const std::string& name, const Shelves& shelves) {
  const Catalog& catalog = shelves.hardware;
  std::vector<std::string> known;
  for (const std::string& id : catalog.accelerator_ids()) {
    const Accelerator chip = catalog.accelerator(id);
    if (is_called(name, id, chip.aliases))
      return heading(id, chip.aliases, "accelerator, " + chip.vendor) + facts_text(chip.facts, catalog);
    known.push_back(id);
  }
  for (const std::string& id : catalog.node_ids()) {
    const Node node = catalog.node(id);
    if (is_called(name, id, node.aliases))
      return heading(id, node.aliases, "node") + facts_text(node.facts, catalog);
    known.push_back(id);
  }
  for (const std::string& id : catalog.fabric_ids()) known.push_back(id);
  for (const std::string& id : catalog.storage_ids()) {
    const Storage device = shelves.hardware.storage(id);
    if (is_called(name, id, device.aliases))
      return heading(id, device.aliases, "storage") + facts_text(device.facts, catalog);
    known.push_back(id);
  }
  for (const std::string& id : shelves.models.ids()) {
    const Model model = shelves.models.model(id);
    if (is_called(name, id, model.aliases)) return model_text(model);
    known.push_back(id);
  }
  throw input_error(
      fmt::format("show: unknown name \"{}\"{}; `moebius list` names all", name, suggestion(name, known)));
}

std::string scenario_network(const std::string& file, const Shelves& shelves, const NetworkView& view) {
  const Scenario scenario = read_scenario(load_scenario(file), shelves.hardware, shelves.models);
  return fmt::format("{}: network of the scenario, {}\n", file, scenario.cluster->fabric.spec().type) +
         network_text(*scenario.cluster, view);
}

void require_network(const NetworkView& view, const std::string& name) {
  for (const ViewOption& option : view_options()) {
    if (!(view.*option.value).empty())
      throw input_error(fmt::format("--{}: expected the name of a fabric or a scenario file, found \"{}\"",
                                    option.name, name));
  }
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

std::string show_text(const std::string& name, const Shelves& shelves, const NetworkView& view) {
  if (name.ends_with(".json")) return scenario_network(name, shelves, view);
  const Catalog& catalog = shelves.hardware;
  for (const std::string& id : catalog.fabric_ids()) {
    const FabricSpec spec = catalog.fabric(id);
    if (is_called(name, id, spec.aliases))
      return heading(id, spec.aliases, "fabric") + facts_text(spec.facts, catalog) + "\n" +
             network_text(spec, catalog, view);
  }
  std::string text = entry_text(name, shelves);
  require_network(view, name);
  return text;
}

}  // namespace moebius
