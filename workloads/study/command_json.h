// What the JSON of every command says beside its result.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace moebius {

struct CommandFacts {
  std::string kind;   // "placement"
  std::string means;  // who carried out the runs: ChosenExecutor::means(), "sim fluid"
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::optional<std::uint64_t> seed = {};  // none: nothing was drawn
  std::string scenario = {};  // its name, where the object does not have it; empty: there is none
};

// The object with "kind", "executor", "detail" and "seed" before its own keys (behind "scenario", where it
// has that), and with "provenance", "uncertainty" and what the process used behind them.
std::string with_facts(const std::string& json, const CommandFacts& facts);

}  // namespace moebius
