#include "hw/profile_table.h"

namespace moebius {
namespace {

constexpr Range kWatts{kAboveZero, 1e5}, kJoules{0, 1};

}  // namespace

ProfilePower read_profile_power(Reader reader, const std::vector<ProfileSource>& sources) {
  ProfilePower power;
  power.idle = reader.number("idle_watts", kWatts);
  power.limit = reader.number("limit_watts", {power.idle, kWatts.high});
  power.joule_per_byte = reader.number("joule_per_byte", kJoules);
  Reader joules = reader.object("joule_per_flop");
  for (int i = 0; i < kNumDTypes; ++i)
    power.joule_per_flop[static_cast<std::size_t>(i)] =
        joules.number(to_string(static_cast<DType>(i)), kJoules, 0.0);
  joules.finish();
  if (reader.has("carried_from")) power.carried_from = short_text(reader, "carried_from");
  power.source = read_source_key(reader, sources);
  power.note = reader.text("note", "");
  power.held_out = read_held_out(reader.object("held_out"));
  power.rejected = read_rejected(reader);
  reader.finish();
  return power;
}

}  // namespace moebius
