#include "workloads/command_line/scenario_commands.h"

#include <memory>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/native_scales.h"
#include "workloads/report/summary.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/service/pool_text.h"
#include "workloads/study/check_study.h"

namespace moebius {

CommandOptions scenario_options(ScenarioArguments& arguments) {
  return {{.name = "SCENARIO", .target = &arguments.file, .help = "scenario file", .required = true},
          {"--set", &arguments.changes.sets, "/json/pointer=value: changes the scenario; may be given again"},
          {"--seed", &arguments.changes.seed, "replaces the scenario's seed", seed_number},
          data_option(arguments.data)};
}

Command check_command() {
  const auto scenario = std::make_shared<ScenarioArguments>();
  const auto check = [scenario] {
    if (is_study(scenario->file)) {
      if (!scenario->changes.sets.empty() || scenario->changes.seed)
        throw input_error(fmt::format("{}: --set and --seed change scenarios: expected a study without them",
                                      scenario->file));
      print(wrapped(checked_study(load_study(scenario->file), Library(scenario->data))));
      return 0;
    }
    const Job job = scenario->read();
    require_native_scales(job);
    print(wrapped(settings_text(job)));
    require_fit(job);
    if (!job.is_service()) return 0;
    std::string pools = "\n";
    for (const ServicePool& pool : service_pools(job.scenario)) pools += describe(pool);
    print(wrapped(pools));
    return 0;
  };
  return {"check", "validate a scenario or a study; print every setting in use and the memory it needs",
          scenario_options(*scenario), check};
}

}  // namespace moebius
