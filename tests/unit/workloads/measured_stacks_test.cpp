// Whose measured kernels count where a scenario names a framework and no kernels.
#include "workloads/measured_stacks.h"

#include "hw/catalog.h"
#include "tests/catch.h"

namespace moebius {
namespace {

std::string first_stack(const Scenario& scenario) {
  return profiles_for(scenario, Catalog().accelerator("h100-sxm"), "").front().tables.front().stack;
}

TEST_CASE("the kernels of a service's framework come first where none are named") {
  Scenario scenario;
  const std::string otherwise = first_stack(scenario);
  scenario.stacks = {"vllm-", "sglang-"};  // of vLLM there are no tables of this chip
  CHECK(first_stack(scenario).starts_with("sglang-"));
  scenario.stacks = {"trtllm-"};
  CHECK(first_stack(scenario).starts_with("trtllm-"));
  const std::vector<Profile> profiles = profiles_for(scenario, Catalog().accelerator("h100-sxm"), "");
  CHECK(profiles.front().tables.size() ==
        find_profiles(Catalog().accelerator("h100-sxm"), "").front().tables.size());
  scenario.kernels = "sglang-0.5.14";
  CHECK(first_stack(scenario) == otherwise);
}

}  // namespace
}  // namespace moebius
