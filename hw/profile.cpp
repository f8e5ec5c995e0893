#include "hw/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "hw/catalog.h"
#include "hw/error.h"
#include "hw/folder_files.h"
#include "hw/json_text.h"
#include "hw/profile_device.h"
#include "hw/profile_table.h"
#include "hw/reader.h"

namespace moebius {
namespace {

constexpr std::string_view kFormat = "moebius-profile-1";
constexpr std::size_t kMostTables = 256;

// SI numbers without units: the file is written by the program, for the program.
Accelerator read_reference(Reader reader, const std::string& id) {
  Accelerator chip;
  chip.id = id;
  chip.architecture = reader.text("architecture");
  chip.cores = static_cast<int>(reader.integer("cores", {1, 1e6}));
  chip.general_cores = static_cast<int>(reader.integer("general_cores", {0, 1e6}));
  chip.independent_engines = reader.boolean("independent_engines");
  chip.memory_rate = {reader.number("memory_rate", {1, 1e18})};
  chip.memory_efficiency = reader.number("memory_efficiency", {0, 1});
  chip.l2 = {reader.number("l2", {0, 1e15})};
  chip.clock = {reader.number("clock", {0, 1e12})};
  chip.boost = {reader.number("boost", {0, 1e12}, 0.0)};
  chip.power = {reader.number("power", {0, 1e6})};
  chip.kernel_floor = time_from_seconds(reader.number("kernel_floor", {0, 1}));
  Reader peaks = reader.object("peak");
  for (int i = 0; i < kNumDTypes; ++i)
    chip.peak[i] = {peaks.number(to_string(static_cast<DType>(i)), {0, 1e21}, 0.0)};
  peaks.finish();
  reader.finish();
  if (std::none_of(chip.peak.begin(), chip.peak.end(), [](FlopRate peak) { return peak.value > 0; }))
    reader.place_of("peak").fail("expected the peak of one number format at least, found none");
  return chip;
}

ProfileSource read_source(Reader reader) {
  ProfileSource source{short_text(reader, "key"), short_text(reader, "text"), short_text(reader, "licence"),
                       short_text(reader, "date")};
  reader.finish();
  return source;
}

std::vector<std::filesystem::path> profile_files(const std::string& data_dir) {
  if (data_dir.empty()) return {};
  const std::filesystem::path folder = std::filesystem::path(data_dir) / "profiles";
  return stands(folder) ? files_in(folder, ".json") : std::vector<std::filesystem::path>{};
}

// Parsed when first asked for: many runs of one process ask for the same ones.
const Profile& embedded_profile(const EmbeddedFile& file) {
  static std::mutex mutex;
  static std::map<std::string_view, Profile> known;
  const std::lock_guard lock(mutex);
  auto at = known.find(file.path);
  if (at == known.end())
    at = known.emplace(file.path, profile_from(parse_document(file.text, fmt::format("<{}>", file.path))))
             .first;
  return at->second;
}

// Embedded ones of that chip and, before them, those of the directory.
std::vector<Profile> profiles_named(const std::string& chip, const std::vector<std::string>& aliases,
                                    const std::string& data_dir) {
  const auto names = [&](const std::string& id) {
    return id == chip || std::find(aliases.begin(), aliases.end(), id) != aliases.end();
  };
  std::vector<Profile> profiles;
  const auto keep = [&](const Document& document) {
    const Reader checked(document);  // it is an object
    const Value* id = document.root.find("accelerator");
    if (id == nullptr || id->kind != Value::Kind::kString || names(id->text))
      profiles.push_back(profile_from(document));
  };
  for (const auto& file : profile_files(data_dir)) keep(load_document(file.string()));
  for (const EmbeddedFile& file : embedded_files()) {
    // Most embedded profiles are of other chips: their file names tell, and parsing them is saved.
    const std::string stem = std::filesystem::path(file.path).stem().string();
    if (!file.path.starts_with("hw/profiles/") || !names(stem)) continue;
    const Profile& profile = embedded_profile(file);
    if (names(profile.accelerator)) profiles.push_back(profile);
  }
  return profiles;
}

}  // namespace

Profile profile_from(const Document& document) {
  Reader reader(document);
  const std::string format = reader.text("format");
  if (format != kFormat)
    reader.place_of("format").fail(fmt::format("expected \"{}\", found {}", kFormat, json_excerpt(format)));
  Profile profile;
  profile.file = document.file;
  profile.accelerator = reader.text("accelerator");
  profile.reference = read_reference(reader.object("reference"), profile.accelerator);
  for (Reader& source : reader.objects("sources")) profile.sources.push_back(read_source(std::move(source)));
  std::size_t values_left = kMostProfileValues;
  for (Reader& table : reader.objects("tables")) {
    if (profile.tables.size() == kMostTables)
      reader.place_of("tables").fail(fmt::format("expected at most {} tables", kMostTables));
    profile.tables.push_back(read_profile_table(std::move(table), profile.sources, values_left));
  }
  if (reader.has("power")) profile.power = read_profile_power(reader.object("power"), profile.sources);
  if (reader.has("device")) profile.device = read_device_figures(reader.object("device"));
  reader.finish();
  return profile;
}

void require_known_chips(const Catalog& catalog, const std::string& data_dir, std::string_view beside) {
  for (const auto& file : profile_files(data_dir)) {
    const Document document = load_document(file.string());
    const Reader checked(document);  // it is an object
    const Value* id = document.root.find("accelerator");
    if (id == nullptr || id->kind != Value::Kind::kString) continue;  // profile_from() says so
    if (id->text == beside) continue;
    if (catalog.has_accelerator(id->text)) {
      const Accelerator chip = catalog.accelerator(id->text);
      const std::vector<std::string>& other = chip.aliases;
      if (id->text == chip.id || std::find(other.begin(), other.end(), id->text) != other.end()) continue;
      checked.place_of("accelerator")
          .fail(
              fmt::format("expected the chip's own name, \"{}\", found {}", chip.id, json_excerpt(id->text)));
    }
    checked.place_of("accelerator")
        .fail(fmt::format("expected the name of an accelerator, found {}{}", json_excerpt(id->text),
                          suggestion(id->text, catalog.accelerator_ids())));
  }
}

std::vector<Profile> find_profiles(const Accelerator& accelerator, const std::string& data_dir) {
  std::vector<Profile> profiles = profiles_named(accelerator.id, accelerator.aliases, data_dir);
  for (const std::string& base : accelerator.bases)
    for (Profile& profile : profiles_named(base, {}, data_dir))
      if (profile.reference.architecture == accelerator.architecture) profiles.push_back(std::move(profile));
  return profiles;
}

}  // namespace moebius
