#include "workloads/cost/collective_constants.h"

#include <algorithm>
#include <cmath>

#include "hw/catalog.h"
#include "hw/reader.h"
#include "workloads/cost/collective_fields.h"

namespace moebius {
namespace {

constexpr auto kTime = ConstantUnit::kMicroseconds;
constexpr auto kRate = ConstantUnit::kGigabytesPerSecond;

constexpr ConstantField<LinkConstants> kLinkFields[] = {
    {"launch_us", &LinkConstants::launch, kTime},
    {"launch_growth_us", &LinkConstants::launch_growth, kTime},
    {"step_ll_us", &LinkConstants::step_ll, kTime},
    {"step_ll_growth_us", &LinkConstants::step_ll_growth, kTime},
    {"rate_ll_gb_s", &LinkConstants::rate_ll, kRate},
    {"step_ll128_us", &LinkConstants::step_ll128, kTime},
    {"step_simple_us", &LinkConstants::step_simple, kTime},
    {"rate_two_gb_s", &LinkConstants::rate_two, kRate},
    {"rate_eight_gb_s", &LinkConstants::rate_eight, kRate},
    {"spread_ns_per_root_kb", &LinkConstants::spread, ConstantUnit::kNanosecondsPerRootKilobyte},
    {"step_in_switch_us", &LinkConstants::step_in_switch, kTime},
    {"rate_in_switch_gb_s", &LinkConstants::rate_in_switch, kRate},
};

constexpr ConstantField<FrameworkConstants> kFrameworkFields[] = {
    {"launch_us", &FrameworkConstants::launch, kTime},
    {"doubling_us", &FrameworkConstants::doubling, kTime},
    {"growth_us", &FrameworkConstants::growth, kTime},
    {"second_step_us", &FrameworkConstants::second_step, kTime},
    {"rate_gb_s", &FrameworkConstants::rate, kRate},
};

constexpr Range kConstants{0, 1e6};

template <class Row>
void read_fitted(Reader reader, std::span<const ConstantField<Row>> fields, Row& row) {
  for (const auto& field : fields)
    row.*field.field = reader.number(field.key, kConstants) * in_si(field.unit);
  reader.finish();
}

bool read_estimated(Reader& reader) {
  return reader.choice<bool>("constants_are", {{"fitted", false}, {"estimates", true}});
}

double read_rate(Reader& reader, std::string_view key, Range range, std::optional<double> otherwise = {}) {
  return reader.quantity(key, Dimension::kByteRate, range, otherwise);
}

LinkConstants read_link(Reader reader) {
  LinkConstants row;
  row.accelerator = reader.text("accelerator");
  row.library = reader.text("library");
  row.source = reader.text("source");
  row.estimated = read_estimated(reader);
  row.steps_like = reader.text("steps_like", "");
  row.achieved = read_rate(reader, "achieved", {kAboveZero});
  row.nominal = read_rate(reader, "tuner_rate", {0}, 0.0);
  row.ll_most = read_rate(reader, "tuner_ll_most", {kAboveZero});
  row.has_ll128 = reader.boolean("ll128");
  row.one_protocol = reader.boolean("one_protocol", false);
  row.in_switch_share = reader.number("in_switch_share", {0, 1}, 0.0);
  row.own_ports = reader.boolean("own_ports");
  row.channels = static_cast<int>(reader.integer("channels", {0, 1024}, 0));
  row.copy_rate = read_rate(reader, "copy_rate", {kAboveZero});
  row.latency = reader.quantity("latency", Dimension::kTime, {0});
  row.error = reader.number("error", {0, 10});
  read_fitted<LinkConstants>(reader.object("constants"), link_fields(), row);
  if (row.rate_ll <= 0 || row.rate_two <= 0 || row.rate_eight <= 0)
    reader.place().fail("expected rates above 0");
  if (row.in_switch_share > 0 && row.rate_in_switch <= 0)
    reader.place().fail("expected \"rate_in_switch_gb_s\" above 0 where \"in_switch_share\" is");
  reader.finish();
  return row;
}

FrameworkConstants read_framework(Reader reader) {
  FrameworkConstants row;
  row.accelerator = reader.text("accelerator");
  row.framework =
      reader.choice<std::string>("framework", {{"sglang", "sglang"}, {"trtllm", "trtllm"}, {"vllm", "vllm"}});
  row.source = reader.text("source");
  row.estimated = read_estimated(reader);
  row.achieved = read_rate(reader, "achieved", {kAboveZero});
  row.error = reader.number("error", {0, 10});
  read_fitted<FrameworkConstants>(reader.object("constants"), framework_fields(), row);
  if (row.rate <= 0) reader.place().fail("expected \"rate_gb_s\" above 0");
  reader.finish();
  return row;
}

// The chip as the catalog of collectives knows it: itself, or the nearest entry that it stands on.
std::string_view known_name(const Accelerator& chip) {
  const CollectiveConstants& all = shipped_collectives();
  const auto known = [&](const std::string& id) {
    const auto is_it = [&](const auto& row) { return row.accelerator == id; };
    const auto is_like = [&](const auto& row) { return row.first == id; };
    return std::any_of(all.links.begin(), all.links.end(), is_it) ||
           std::any_of(all.frameworks.begin(), all.frameworks.end(), is_it) ||
           std::any_of(all.alike.begin(), all.alike.end(), is_like);
  };
  if (known(chip.id)) return chip.id;
  const auto base = std::find_if(chip.bases.begin(), chip.bases.end(), known);
  return base == chip.bases.end() ? chip.id : *base;
}

std::string_view row_name(std::string_view known) {
  for (const auto& [name, like] : shipped_collectives().alike)
    if (name == known) return like;
  return known;
}

// Of a chip with fewer links than the one that its row is of: two channels for each of 25 GB/s.
int channels_of_links(const Accelerator& chip) {
  constexpr double kLink = 25e9;
  return 2 * std::max(1, static_cast<int>(std::lround(chip.link_rate.value / kLink)));
}

template <class Row>
Row scaled(Row row, std::span<const ConstantField<Row>> fields, const Accelerator& chip) {
  const double share = achieved_rate(chip) / row.achieved;
  row.achieved *= share;
  for (const auto& field : fields)
    if (field.unit == kRate) row.*field.field *= share;
  row.estimated = row.estimated || row.accelerator != known_name(chip);
  return row;
}

}  // namespace

double in_si(ConstantUnit unit) {
  switch (unit) {
    case ConstantUnit::kMicroseconds:
      return 1e-6;
    case ConstantUnit::kGigabytesPerSecond:
      return 1e9;
    case ConstantUnit::kNanosecondsPerRootKilobyte:
      return 1e-9 / 31.622776601683793;  // the root of 1000
  }
  return 1;
}

std::span<const ConstantField<LinkConstants>> link_fields() {
  return kLinkFields;
}
std::span<const ConstantField<FrameworkConstants>> framework_fields() {
  return kFrameworkFields;
}

CollectiveConstants read_collective_constants(const Document& document) {
  Reader root(document);
  CollectiveConstants read;
  root.texts("notes");
  for (Reader& row : root.objects("links")) read.links.push_back(read_link(row));
  for (Reader& row : root.objects("frameworks")) read.frameworks.push_back(read_framework(row));
  const Value& names = root.value("alike");
  Reader alike = root.object("alike");
  for (const std::string& name : names.keys) read.alike.emplace_back(name, alike.text(name));
  alike.finish();
  root.finish();
  return read;
}

const CollectiveConstants& shipped_collectives() {
  static const CollectiveConstants constants =
      read_collective_constants(embedded_document("hw/catalog/collectives.json"));
  return constants;
}

double achieved_rate(const Accelerator& chip) {
  const ByteRate line = chip.link_rate.value > 0 ? chip.link_rate : chip.host_rate;
  return line.value * chip.link_efficiency;
}

std::optional<LinkConstants> link_constants(const Accelerator& chip) {
  if (achieved_rate(chip) <= 0) return {};
  const std::string_view known = known_name(chip), name = row_name(known);
  for (const LinkConstants& row : shipped_collectives().links) {
    if (row.accelerator != name) continue;
    LinkConstants link = scaled(row, link_fields(), chip);
    link.nominal *= achieved_rate(chip) / row.achieved;
    if (row.channels > 0) link.channel_copy = row.copy_rate / row.channels;
    if (row.own_ports && row.accelerator != known)
      link.channels = std::min(row.channels, channels_of_links(chip));
    return link;
  }
  return {};
}

std::optional<FrameworkConstants> framework_constants(const Accelerator& chip, std::string_view framework) {
  if (achieved_rate(chip) <= 0) return {};
  const std::string_view name = row_name(known_name(chip));
  for (const FrameworkConstants& row : shipped_collectives().frameworks)
    if (row.accelerator == name && row.framework == framework) return scaled(row, framework_fields(), chip);
  return {};
}

}  // namespace moebius
