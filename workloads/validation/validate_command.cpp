#include "workloads/validation/validate_command.h"

#include <filesystem>
#include <vector>

#include "hw/error.h"
#include "workloads/validation/validation.h"

namespace moebius {

namespace {

constexpr const char* kShipped = "scenarios/validate";

struct ValidateArguments {
  std::vector<std::string> paths;
  std::string mapping;
  bool json = false;
};

std::vector<std::string> paths_of(const ValidateArguments& arguments) {
  if (!arguments.paths.empty()) return arguments.paths;
  if (!std::filesystem::is_directory(kShipped))
    throw input_error(std::string("validate: expected paths, or ") + kShipped + " in this directory");
  return {kShipped};
}

int run(const ValidateArguments& arguments, const ValidateExecutor& executor) {
  const Library library(*executor.data);
  const auto cases = validate(cases_of(paths_of(arguments), arguments.mapping), library, executor.start);
  print(arguments.json ? to_json(cases) : to_text(cases));
  return passed(cases) ? 0 : 1;
}

}  // namespace

Command validate_command(const ValidateExecutor& executor) {
  const auto arguments = std::make_shared<ValidateArguments>();
  const CommandOptions own{
      {"PATH", &arguments->paths,
       "scenarios with \"expect\", directories of them (default: scenarios/validate), tables of measured "
       "rows"},
      {"--mapping", &arguments->mapping, "what the columns of the tables are: scenarios/validate/README.md"},
      {"--json", &arguments->json, "print the error table as one JSON object"}};
  return {"validate", "run scenarios that expect measured figures; table of errors",
          joined({own, executor.options, {data_option(*executor.data)}}),
          [arguments, executor] { return run(*arguments, executor); }};
}

}  // namespace moebius
