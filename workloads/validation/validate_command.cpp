#include "workloads/validation/validate_command.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/validation/claims/claim_tables.h"
#include "workloads/validation/recorded/gathered_cases.h"
#include "workloads/validation/recorded/record_options.h"
#include "workloads/validation/servers/server_table.h"
#include "workloads/validation/validation.h"

namespace moebius {

namespace {

constexpr const char* kShipped = "scenarios/validate";

struct ValidateArguments {
  std::vector<std::string> paths;
  std::string mapping;
  ServerOptions servers;
  RecordOptions record;
  bool json = false, markdown = false;
};

std::vector<std::string> paths_of(const ValidateArguments& arguments) {
  if (!arguments.paths.empty()) return arguments.paths;
  if (!std::filesystem::is_directory(kShipped))
    throw input_error(std::string("validate: expected paths, or ") + kShipped + " in this directory");
  return {kShipped};
}

std::string both(const std::string& cases, const std::string& claims) {
  return cases + (cases.empty() || claims.empty() ? "" : "\n") + claims;
}

// The cases' errors by class, below the tables of their groups.
std::string with_classes(const std::vector<ValidatedCase>& cases) {
  return cases.empty() ? "" : to_text(cases) + "\n" + classes_text(gathered(cases));
}

// Of tables of servers alone.
void require_no_rows(const ServerOptions& options, const std::vector<std::string>& paths) {
  const char* given = options.fit                 ? "--fit-hosts"
                      : options.rows              ? "--rows"
                      : options.scenarios.empty() ? nullptr
                                                  : "--scenarios";
  if (given == nullptr) return;
  throw input_error(fmt::format("{}: {}: expected a table of measured servers, without --mapping",
                                fmt::join(paths, ", "), given));
}

// What is printed as tables for a README are claims.
void require_claims(const ValidateArguments& arguments, const std::vector<std::string>& paths,
                    std::string_view found) {
  if (arguments.markdown)
    throw input_error(
        fmt::format("{}: --markdown: expected claims, found {}", fmt::join(paths, ", "), found));
}

int run(ValidateArguments arguments, const ChosenExecutor& executor) {
  const Library library(*executor.data);
  if (arguments.record.shows()) {
    print(shown_record(arguments.record));
    return 0;
  }
  RecordKeeper keeper(arguments.record, library.hardware, *executor.data);
  arguments.servers.keep = [&](const std::vector<ServerResult>& rows) { keeper.keep(gathered(rows)); };
  const std::vector<std::string> paths = paths_of(arguments);
  const bool servers = arguments.mapping.empty() && names_servers(paths);
  if (!servers) require_no_rows(arguments.servers, paths);
  if (servers) {
    require_claims(arguments, paths, "a table of measured servers");
    print(validated_servers(paths.front(), library, executor.start, arguments.servers, arguments.json));
    return 0;
  }
  const std::vector<ValidationCase> rows = cases_of(paths, arguments.mapping);
  const std::vector<Claim> published = claims_of(paths);
  if (rows.empty() && published.empty())
    throw input_error(
        fmt::format("{}: expected scenarios with \"expect\" or claims, found none", fmt::join(paths, ", ")));
  if (published.empty())
    require_claims(arguments, paths, arguments.mapping.empty() ? "scenarios" : "a table of measured rows");
  const auto cases = validate(rows, library, executor.start);
  const auto claims = judge_claims(
      published, [&](const Document& scenario) { return quiet_report(scenario, library, executor.start); });
  print(arguments.json       ? to_json(cases, claims)
        : arguments.markdown ? to_markdown(claims)
                             : wrapped(both(with_classes(cases), to_text(claims))));
  keeper.keep(gathered(cases));
  return passed(cases) && passed(claims) ? 0 : 1;
}

}  // namespace

Command validate_command(const ChosenExecutor& executor) {
  const auto arguments = std::make_shared<ValidateArguments>();
  const CommandOptions own{
      {"PATH", &arguments->paths,
       "scenarios with \"expect\" and claims, directories of them (default: scenarios/validate), tables of "
       "measured rows"},
      {"--mapping", &arguments->mapping, "what the columns of the tables are: scenarios/validate/README.md"},
      {"--json", &arguments->json, "print the error table as one JSON object"},
      {.name = "--rows",
       .target = &arguments->servers.rows,
       .help = "of a table of servers: simulate so many rows, drawn by --rows-seed (default: all)",
       .check = positive_number},
      {.name = "--fit-hosts",
       .target = &arguments->servers.fit,
       .help = "of a table of servers: fit the host costs of frameworks to the rows that are kept for that",
       .excludes = {"--json", "--rows"}},
      {.name = "--rows-seed",
       .target = &arguments->servers.seed,
       .help = "which rows --rows draws (default 1)",
       .needs = {"--rows"}},
      {.name = "--scenarios",
       .target = &arguments->servers.scenarios,
       .help = "of a table of servers: write the scenario of each row into this directory; simulate nothing",
       .excludes = {"--json", "--rows", "--fit-hosts"}},
      {.name = "--markdown",
       .target = &arguments->markdown,
       .help = "print the claims as tables for a README",
       .excludes = {"--json"}}};
  const CommandOptions kept = record_options(arguments->record);
  return {"validate", "run scenarios that expect measured figures; table of errors",
          joined({own, kept, executor.options, {data_option(*executor.data)}}),
          [arguments, executor] { return run(*arguments, executor); }};
}

}  // namespace moebius
