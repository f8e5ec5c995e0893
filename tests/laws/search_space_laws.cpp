// Which plans a search looks at: what its space says and the scenario's reader takes.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/laws/training_problem.h"
#include "tests/process.h"
#include "workloads/study/search/plan_settings.h"
#include "workloads/study/search/training_search.h"

namespace moebius {
namespace {

TEST_CASE("what a search takes for legal the scenario's reader takes and nothing else") {
  const Library library("");
  const TrainingSpace space(training_problem(3), library, {});
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  int legal = 0;
  for (int i = 0; i < 400; ++i) {
    PlanDegrees d{
        .tp = one_of({1, 2, 4}), .pp = one_of({1, 2, 4}), .ep = one_of({1, 2, 4}), .cp = one_of({1, 2})};
    d.dense_tp = d.tp;
    d.expert_tp = one_of({1, 1, 2});
    d.schedule = static_cast<PipelineKind>(random() % 7);
    d.chunks = d.schedule == PipelineKind::kInterleaved ? 2 : 1;
    d.micro_batch = one_of({1, 2});
    d.rows_cut = random() % 3 > 0;
    d.tensor_overlap = d.tp > 1 && random() % 2 == 0;
    const int bundle = static_cast<int>(random() % space.bundles().size());
    bool reads = true;
    try {
      read_scenario(space.document(d, bundle), library.hardware, library.models);
    } catch (const Error&) {
      reads = false;
    }
    INFO(degrees_text(d, 0) << " " << bundle_text(space.bundles()[bundle].plan));
    CHECK(space.plan_of(d, bundle).legal == reads);
    const auto known = space.legal_bundles(d);
    if (std::find(known->begin(), known->end(), bundle) != known->end()) CHECK(reads);
    legal += reads ? 1 : 0;
  }
  CHECK(legal > 20);
}

// The sentence with which a space for the third problem is refused, after the file's name.
std::string refusal_of_space(const std::string& text) {
  const test::Scratch scratch;
  const std::string path = scratch.write("s.space.json", text);
  try {
    const Library library("");
    TrainingSpace(training_problem(3), library, load_space(path)).groups();
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

TEST_CASE("a search cuts rows over tensor-parallel ranks and does not, or what its file says") {
  const Library library("");
  const auto cut = [&](const std::vector<std::string>& values) {
    SpaceFile space = training_space(5);
    if (!values.empty()) space.axes.push_back({"/plan/tp/sequence_parallel", values});
    std::set<bool> found;
    for (const PlanGroup& group : TrainingSpace(training_problem(5), library, space).groups())
      if (group.degrees.tp > 1) found.insert(group.degrees.rows_cut);
    return found;
  };
  CHECK(cut({}) == std::set<bool>{false, true});
  CHECK(cut({"true"}) == std::set<bool>{true});
  CHECK(cut({"false"}) == std::set<bool>{false});
  // With experts rows are cut: what is not is left out, not an error.
  SpaceFile space = training_space(1);
  space.axes.push_back({"/plan/tp/sequence_parallel", {"true", "false"}});
  const TrainingSpace experts(training_problem(1), library, space);
  for (const PlanGroup& group : experts.groups()) CHECK(group.degrees.rows_cut);
}

// Groups of 8 ranks stand on one node of 8, of 16 on two: a token on two nodes goes with these alone, and
// that says nothing against the others.
TEST_CASE("what goes with some degrees alone is searched with these and left out with the others") {
  const Library library("");
  Document problem = training_problem(1);
  set_at_pointer(problem, "/cluster/pools/0/nodes", "2");
  set_at_pointer(problem, "/model/experts", R"({"routed": 16, "active": 2, "width": 1024})");
  SpaceFile space = training_space(1);
  std::erase_if(space.axes, [](const StudyAxis& axis) {
    return axis.pointer == "/plan/ep/degree" || axis.pointer == "/plan/pp/degree" ||
           axis.pointer == "/plan/tp/attention" || axis.pointer == "/plan/pp/schedule";
  });
  for (const auto& [pointer, values] :
       std::vector<std::pair<const char*, std::vector<std::string>>>{{"/plan/ep/degree", {"8", "16"}},
                                                                     {"/plan/ep/nodes_per_token", {"2", "1"}},
                                                                     {"/plan/pp/degree", {"1"}},
                                                                     {"/plan/pp/schedule", {"\"1f1b\""}},
                                                                     {"/plan/tp/attention", {"1"}}})
    space.axes.push_back({pointer, values});
  const SearchResult result = search_training(problem, space, training_request(library));
  CHECK(result.counts.refused == 0);
  std::set<std::pair<std::string, std::string>> found;
  const TrainingSpace plans(problem, library, space);
  for (const PlanGroup& group : plans.groups()) {
    std::map<std::string, std::string> set;
    for (const Assignment& change :
         plans.settings(group.degrees, plans.legal_bundles(group.degrees)->front()))
      CHECK(set.emplace(change.pointer, change.value).second);  // once each
    found.emplace(set["/plan/ep/degree"], set["/plan/ep/nodes_per_token"]);
  }
  using Pairs = std::set<std::pair<std::string, std::string>>;
  CHECK(found == Pairs{{"8", "1"}, {"16", "1"}, {"16", "2"}});
  CHECK(result.plans.front().name.find(" a token") != std::string::npos);
}

TEST_CASE("schedules that a space names are told apart without stages too") {
  const Library library("");
  SpaceFile space = training_space(2);  // zb-h1 and gpipe
  for (StudyAxis& axis : space.axes)
    if (axis.pointer == "/plan/pp/degree") axis.values = {"1"};
  std::set<PipelineKind> found;
  for (const PlanGroup& group : TrainingSpace(training_problem(2), library, space).groups())
    found.insert(group.degrees.schedule);
  CHECK(found == std::set<PipelineKind>{PipelineKind::kZbH1, PipelineKind::kGpipe});
  // Each runs no faster than its bounds say.
  SearchRequest request = training_request(library);
  request.top = 1000;
  const SearchResult result = search_training(training_problem(2), space, request);
  for (const RankedPlan& plan : result.plans) CHECK(plan.bound <= plan.rough.score * (1 + 1e-9));
}

TEST_CASE("a file of what to vary is refused with the value that is wrong") {
  const std::string head = R"({"moebius": 1, "kind": "search-space", "vary": )";
  CHECK(refusal_of_space(R"({"moebius": 1, "kind": "study", "vary": {"/plan/cp": [1]}})") ==
        ":1: /kind: expected \"search-space\", found \"study\"");
  CHECK(refusal_of_space(head + R"({"/plan/pp/degree": ["two"]}})") ==
        ": /plan/pp/degree: expected whole numbers of at least 1, found \"two\"");
  CHECK(
      refusal_of_space(head + R"({"/model": ["qwen3-30b-a3b"]}})") ==
      ": /model: expected a key of /plan, or /workload/micro_batch: a search keeps model, machines and work");
  CHECK(refusal_of_space(head + R"({"/plan/pp": [{"degree": 4}]}})") ==
        ": /plan/pp: expected its keys one by one, such as /plan/pp/degree");
  CHECK(refusal_of_space(head + R"({"/plan/tp/overlap": [2]}})") ==
        ": /plan/tp/overlap: expected true or false, found 2");
  CHECK(refusal_of_space(head + R"({"/plan/pp/schedule": ["best"]}})") ==
        ": /plan/pp/schedule: expected one of 1f1b, gpipe, interleaved, zb-h1, zb-v, dualpipe, dualpipev, "
        "found "
        "\"best\"");
}

TEST_CASE("plans that a switch changes nothing of are searched by the one value that a file names") {
  const Library library("");
  const auto groups = [&](std::uint32_t seed, std::vector<StudyAxis> axes) {
    Document problem = training_problem(seed);
    set_at_pointer(problem, "/cluster/pools/0/nodes", "1");
    for (const char* one : {"/plan/cp", "/workload/micro_batch"}) axes.push_back({one, {"1"}});
    return TrainingSpace(problem, library, {"space", axes}).groups();
  };
  CHECK(!groups(1, {{"/plan/ep/degree", {"1"}},
                    {"/plan/tp/expert", {"1"}},
                    {"/plan/pp/degree", {"1"}},
                    {"/plan/overlap/dispatch_combine", {"false"}}})
             .empty());
  // Without experts: 2 x 4 ranks are all 8, and one replica has nothing to shard.
  CHECK(!groups(5, {{"/plan/tp/attention", {"2"}},
                    {"/plan/pp/degree", {"4"}},
                    {"/plan/dp/zero", {"1"}},
                    {"/plan/dp/overlap_gradients", {"false"}}})
             .empty());
}

TEST_CASE("passes run in pairs where there are two of them, or where a file says nothing else") {
  const Library library("");
  const auto pairs = [&](const char* batch, const char* values) {
    Document problem = training_problem(1);
    set_at_pointer(problem, "/cluster/pools/0/nodes", "1");
    set_at_pointer(problem, "/workload/global_batch", batch);
    std::vector<StudyAxis> axes{{"/plan/overlap/two_batch", {"true"}}};
    if (*values != 0) axes.front().values.emplace_back(values);
    for (const char* one : {"/plan/tp/attention", "/plan/tp/expert", "/plan/pp/degree", "/plan/cp"})
      axes.push_back({one, {"1"}});
    axes.push_back({"/plan/ep/degree", {"2"}});
    axes.push_back({"/workload/micro_batch", {"1"}});
    const TrainingSpace space(problem, library, {"space", axes});
    int found = 0;
    for (const PlanGroup& group : space.groups())
      for (const int bundle : *space.legal_bundles(group.degrees))
        found += space.plan_of(group.degrees, bundle).plan.overlap_two_batch ? 1 : 0;
    return found;
  };
  CHECK(pairs("8", "false") == 0);
  CHECK(pairs("16", "false") > 0);
  CHECK(pairs("8", "") > 0);
}

// Where they share no experts nothing is sent, and nothing sorted for it.
TEST_CASE("plans whose ranks share experts send tokens as the scenario's framework does") {
  const Library library("");
  Document base = training_problem(1);
  set_at_pointer(base, "/plan/framework", "\"megatron-core\"");
  for (const char* own : {"1", "4"}) {
    set_at_pointer(base, "/plan/ep/degree", own);
    const TrainingSpace space(base, library, training_space(1));
    std::set<int> degrees;
    for (const PlanGroup& group : space.groups()) {
      const int bundle = space.legal_bundles(group.degrees)->front();
      const Algorithm exchange = group.degrees.ep > 1 ? Algorithm::kLibrary : Algorithm::kAuto;
      CHECK(space.plan_of(group.degrees, bundle).plan.exchange == exchange);
      const Document plan = space.document(group.degrees, bundle);
      CHECK(read_scenario(plan, library.hardware, library.models).plan.exchange == exchange);
      degrees.insert(group.degrees.ep);
    }
    CHECK(degrees.contains(4));
  }
}

}  // namespace
}  // namespace moebius
