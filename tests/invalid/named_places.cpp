// Wrong inputs whose place is not where they are noticed: the sentence names the file, the option or the key
// that is to be changed, and the exit code is 2.
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "tests/invalid/refusals.h"

namespace moebius {
namespace {

const std::string kScenarios = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/";

// The command ends with `code` and says "moebius: SENTENCE" alone.
void fails(const std::string& arguments, int code, const std::string& sentence) {
  INFO(arguments);
  const test::Finished finished = test::run_moebius(arguments);
  CHECK(finished.exit_code == code);
  CHECK(finished.out.empty());
  CHECK(finished.err == "moebius: " + sentence + "\n");
}

std::string smoke(const std::string& name) {
  return kScenarios + "smoke/" + name;
}

}  // namespace

TEST_CASE("a scenario without a cluster has no network to show") {
  fails("show " + smoke("kv-replay.json"), 2,
        smoke("kv-replay.json") + ": expected a scenario with a cluster, found none");
}

TEST_CASE("scales for 32 elements are simulated where units multiply with them, and computed anywhere") {
  const std::string layer = smoke("moe-layer.json");
  const std::string micro =
      " --set /plan/precision/gemm=fp8 --set /plan/precision/scaling=micro --set "
      "/plan/precision/dispatch=bf16";
  for (const char* command : {"run ", "check "})
    fails(command + layer + micro, 2,
          layer +
              ": /plan/precision/scaling: no unit of h800-sxm (hopper) multiplies with a scale for 32 "
              "elements: expected \"block\", \"tensor\" or \"history\", found \"micro\"");
  const std::string blackwell = " --set /cluster/pools/0/accelerator=b200-sxm";
  CHECK(test::run_moebius("run " + layer + micro + blackwell).exit_code == 0);
  CHECK(test::run_moebius("run " + layer + micro + " --executor host").exit_code == 0);
}

TEST_CASE("only claims are printed as tables for a README, and finalists are of one scenario") {
  const std::string decode = kScenarios + "validate/serving-infersim/qwen3-8b-decode.json",
                    table = kScenarios + "validate/tables/mpt-fsdp";
  fails("validate " + decode + " --markdown", 2, decode + ": --markdown: expected claims, found scenarios");
  fails("validate " + table + ".csv --markdown --mapping " + table + ".mapping", 2,
        table + ".csv: --markdown: expected claims, found a table of measured rows");
  fails("place --fragmented 2 --finalists 3", 2,
        "place: --finalists are placements of one scenario: expected a scenario, found --fragmented");
}

TEST_CASE("fewer active experts than groups that tokens go to are refused with the key") {
  const std::string file = kScenarios + "study/deepseek-v3-serve-16-h200.json";
  fails("check " + file + R"( --set '/model={"base": "deepseek-v3", "experts": {"active": 3}}')", 2,
        file + ": --set /model/experts/active: active experts 3 are fewer than active_groups 4");
}

TEST_CASE("what would be served after 292 years fails in one sentence") {
  const auto ends = [](const std::string& arguments) {
    INFO(arguments);
    const test::Finished finished = test::run_moebius("run " + arguments);
    CHECK(finished.exit_code == 1);
    CHECK(finished.out.empty());
    CHECK_THAT(finished.err, Catch::StartsWith("moebius: what begins at ") &&
                                 Catch::EndsWith(" s more, but simulated time ends after 292 years\n"));
  };
  ends(smoke("serve-tiers.json") +
       " --set /workload/trace/requests=60 --set '/plan/scheduler/host_per_iteration=50 d'");
  ends(smoke("serve-apart.json") + " --set '/plan/scheduler/host_per_sequence=300 d'");
  const test::Scratch scratch;
  const std::string rows = scratch.write(
      "t.jsonl",
      "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 2, \"hash_ids\": [1]}\n"
      "{\"timestamp\": 900000000000, \"input_length\": 10, \"output_length\": 2, \"hash_ids\": [1]}\n");
  ends(smoke("serve-tiers.json") + " --set '/workload/trace={\"path\": \"" + rows +
       "\"}' --set /workload/rate_scale=0.01");
  ends(smoke("serve-tiers.json") + " --set /workload/trace/rate=1e-8");
}

TEST_CASE("details of the network that a run cannot have name the option or the key") {
  const std::string ring = smoke("allreduce-1024.json");
  fails("run " + ring + " --detail packet", 2,
        ring +
            ": /cluster/fabric/transport: --detail packet needs one that says what a packet is: expected "
            "\"eqds\", found \"ideal\"");
  fails("run " + smoke("kv-replay.json") + " --detail packet", 2,
        smoke("kv-replay.json") + ": --detail packet counts for nothing: a replay of a cache moves no bytes");
  fails("run " + smoke("moe-layer.json") + " --detail native --driver plain", 2,
        "--detail native: expected --driver simgrid, found plain: the native network is SimGrid's own");
  const std::string apart = smoke("serve-apart.json");
  fails("run " + apart + " --detail native", 2,
        apart +
            ": /plan/steps: --detail native is of one run on SimGrid, and iterations that are timed one by "
            "one have a simulator each: expected \"full\", found \"surface\"");
  fails("matrix h100-sxm --detail native", 2,
        "--detail: expected alpha-beta, fluid, packet, found \"native\"");
}

TEST_CASE("a study none of whose points is a scenario is wrong input") {
  const test::Scratch scratch;
  const std::string study = scratch.write(
      "s.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": ")" + smoke("moe-layer.json") +
                    R"(", "vary": {"/plan/ep/degree": [-1]}, "columns": ["step_time_s"]})");
  const std::string sentence = study + ": point 0, {\"/plan/ep/degree\": -1}: ";
  for (const std::string command : {"check ", "sweep --workers 1 "}) {
    const test::Finished finished = test::run_moebius(command + study);
    CHECK(finished.exit_code == 2);
    CHECK(finished.out.empty());
    CHECK_THAT(finished.err, Catch::StartsWith("moebius: " + sentence));
  }
}

TEST_CASE("a study whose base is not there is named itself") {
  const test::Scratch scratch;
  const std::string study = scratch.write("s.json",
                                          "{\"moebius\": 1, \"kind\": \"study\", \"name\": \"s\",\n\"base\": "
                                          "\"none.json\", \"columns\": [\"step_time_s\"]}");
  fails("check " + study, 2,
        study + ":2: /base: expected a scenario file, found none at " + scratch.path("none.json"));
}

TEST_CASE("files that extend each other in a circle are told so") {
  const test::Scratch scratch;
  const std::string a = scratch.write("a.json", "{\n\"extends\": \"b.json\"}"),
                    b = scratch.write("b.json", "{\n\"extends\": \"a.json\"}");
  fails("check " + a, 2,
        b + ":2: /extends: expected files that do not extend each other in a circle, found " + a + ", " + b +
            ", " + a);
}

TEST_CASE("a misspelt key of a search space is named in its file") {
  const test::Scratch scratch;
  const std::string space = scratch.write("space.json",
                                          "{\"moebius\": 1, \"kind\": \"search-space\",\n\"vary\": "
                                          "{\n\"/plan/pp/degre\": [1, 2]}}");
  fails("search " + smoke("moe-64-h800.json") + " --space " + space, 2,
        space + ":3: /vary/~1plan~1pp~1degre: unknown key \"degre\" (did you mean \"degree\"?)");
}

TEST_CASE("hash_ids that are no array are refused in their row") {
  const test::Scratch scratch;
  const std::string trace = scratch.write(
      "t.jsonl", R"({"timestamp": 0, "input_length": 10, "output_length": 2, "hash_ids": "a"})");
  const std::string run = "run " + smoke("kv-replay.json") + " --set /workload/trace/path=";
  fails(run + trace, 2, trace + ":1: /hash_ids: expected an array of whole numbers, found \"a\"");
  const std::string none =
      scratch.write("n.jsonl", R"({"timestamp": 0, "input_length": 10, "output_length": 2})");
  fails(run + none, 2,
        none + ": request 1 of the trace has no hash_ids: nothing is known of what inputs share");
}

TEST_CASE("blocks of another size than a service shares are refused, timed and carried out op by op") {
  const test::Scratch scratch;
  const std::string trace = scratch.write(
      "t.jsonl",
      R"({"timestamp": 0, "input_length": 40, "output_length": 4, "hash_ids": [1, 2, 3], "block_size": 16})");
  const std::string set = " --set /workload/trace/path=" + trace;
  const std::string found =
      trace + ": request 1 of the trace has blocks of 16 tokens, /workload/trace/block_tokens is ";
  fails("run " + smoke("serve-apart.json") + set, 2, found + "512");
  fails("run " + smoke("serve-carried.json") + set + " --set /plan/steps=full", 2, found + "8");
}

TEST_CASE("expectations and promises that mean nothing are refused by check") {
  check(kTraining, "/expect/0/metric", "step_time_sx",
        "/expect/0/metric: no report has a figure named \"step_time_sx\" (did you mean \"step_time_s\"?)");
  Document service = base(kSmall);
  set_at_pointer(service, "/sla", R"([{"class": "chat", "ttft": "0 s", "tpot": "1 s"}])");
  CHECK(refusal(service) ==
        "s.json: --set /sla/0/ttft: expected more than 0 s: without the key nothing is promised");
}

TEST_CASE("a model of a folder of data says where it is from") {
  const test::Scratch scratch;
  const auto model = [&](const std::string& source, const std::string& status) {
    scratch.write("models.json", R"({"sources": {"US": "our notes"}, "models": {
"tiny": {"layers": 1, "hidden": 8, "heads": 1, "attention": "mha", "head_dim": 8, "dense_width": 16, "vocabulary": 32,
"source": ")" + source + R"(", "status": ")" +
                                     status + R"("}}})");
    return "list models --data " + scratch.path(".");
  };
  fails(model("THEM", "estimate"), 2,
        scratch.path("./models.json") +
            ":3: /models/tiny/source: expected a key of the file's \"sources\", found \"THEM\"");
  fails(model("US", "guess"), 2,
        scratch.path("./models.json") +
            ":3: /models/tiny/status: expected one of \"published\", \"measured\", \"vendor claim\", \"third "
            "party\", \"derived\", \"from memory\", \"estimate\", found \"guess\"");
  CHECK(test::run_moebius(model("US", "estimate")).exit_code == 0);
}

TEST_CASE("options without a value, and with one that no machine holds") {
  fails("run " + smoke("moe-layer.json") + " --out ''", 2, "--out: expected a name, found \"\"");
  fails("show h100-sxm --kernel gemm --n 99999999999999999999 --k 8", 2,
        "--n: expected a number of at most 64 bits, found \"99999999999999999999\"");
}

TEST_CASE("a name of any length is cut where it is told") {
  const test::Finished finished = test::run_moebius("show " + std::string(100'000, 'a'));
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.size() < 400);
}

TEST_CASE("a profile of a folder of data whose op kind nobody knows is named") {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch.path("profiles"));
  // The form of a whole profile is that of a shipped one: its first table under another kind.
  std::string text = test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/hw/profiles/h100-sxm.json");
  const std::size_t at = text.find("\"gemm\"");
  REQUIRE(at != std::string::npos);
  text.replace(at, 6, "\"gem\"");
  scratch.write("profiles/x.json", text);
  const test::Finished finished =
      test::run_moebius("show h100-sxm --kernel gemm --n 8 --k 8 --data " + scratch.path("."));
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err,
             Catch::StartsWith("moebius: " + scratch.path("./profiles/x.json") + ": /tables/") &&
                 Catch::Contains("/kinds/0: unknown op kind \"gem\" (did you mean \"gemm\"?)"));
}

TEST_CASE("a profile of a folder of data whose chip nobody knows is named") {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch.path("profiles"));
  scratch.write("profiles/x.json", R"({"accelerator": "h100-smx"})");
  const std::string sentence =
      "profiles/x.json:1: /accelerator: expected the name of an accelerator, found \"h100-smx\" (did you "
      "mean "
      "\"h100-sxm\"?)";
  for (const std::string& command :
       {std::string("show h100-sxm --kernel gemm --n 8 --k 8"),
        "run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json"}) {
    const test::Finished finished = test::run_moebius(command + " --data " + scratch.path("."));
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Catch::Contains(sentence));
  }
}

TEST_CASE("an integer that is too large is told as it was written") {
  const std::string small = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json";
  CHECK_THAT(test::run_moebius("check " + small + " --set /seed=18446744073709551615").err,
             Catch::Contains("/seed: expected an integer from 0 to 9007199254740992, found "
                             "18446744073709551615"));
}

TEST_CASE("bash completes the values of options and the names of the catalogs") {
  const auto completed = [](const std::string& line, int words) {
    const std::string binary = MOEBIUS_BINARY;
    return test::run("bash -c 'source <(" + binary + " manual bash); COMP_WORDS=(" + binary + " " + line +
                     "); COMP_CWORD=" + std::to_string(words) + "; _moebius; echo ${COMPREPLY[@]}'")
        .out;
  };
  CHECK(completed("run --executor e", 3) == "emulate\n");
  CHECK(completed("manual \"\"", 2) == "man bash zsh\n");
  CHECK(completed("list sto", 2) == "storage\n");
  CHECK(completed("show h100-s", 2) == "h100-sxm\n");
  CHECK(completed("show h100-sxm --kernel ad", 4) == "adam\n");
  CHECK(completed("show h100-sxm --kernel gemm --dtype i", 6) == "int8\n");
  CHECK(completed("run --device h", 3) == "host\n");
  CHECK(completed("run --executor = e", 4) == "emulate\n");  // as a shell splits --executor=e
  CHECK(completed("calibrate --fit \"\"", 3) == "model links exchanges\n");
  CHECK(completed("calibrate --accelerator al", 3) == "all\n");
  CHECK(completed("convert in --to h", 4) == "hf\n");
  CHECK(completed("matrix h100-sxm h800-s", 3) == "h800-sxm\n");  // any number of them
  CHECK(completed("matrix h100-sxm --node hgx-", 4) == "hgx-8\n");
  CHECK(completed("matrix h100-sxm --out h100-s", 4) == "\n");  // a file
}

TEST_CASE("an interrupted sweep says how to go on") {
  const test::Scratch scratch;
  const test::Finished finished =
      test::run("timeout -s INT 1 " + std::string(MOEBIUS_BINARY) + " sweep " + kScenarios +
                "study/cluster-loads.study.json --workers 1 --db " + scratch.path("r.sqlite"));
  CHECK(finished.exit_code == 124);
  CHECK(finished.err == "moebius: interrupted: what is done is kept; run again to go on\n");
}

TEST_CASE("a scenario that is not there has no screen") {
  const test::Scratch scratch;
  const test::Finished finished =
      test::run_moebius("view --screen scenario --scenario none.json --screenshot " + scratch.path("x.png"));
  if (finished.err.find("without the viewer") != std::string::npos) return;
  CHECK(finished.exit_code == 2);
  CHECK(finished.err == "moebius: none.json: expected a file, found none\n");
  CHECK_FALSE(std::filesystem::exists(scratch.path("x.png")));
}

TEST_CASE("a range behind the end of a run has no picture") {
  const test::Scratch scratch;
  REQUIRE(
      test::run_moebius("run " + smoke("allreduce-1024.json") + " --out " + scratch.path("run")).exit_code ==
      0);
  const test::Finished finished = test::run_moebius(
      "view " + scratch.path("run") + " --range \"100 s..101 s\" --screenshot " + scratch.path("x.png"));
  if (finished.err.find("without the viewer") != std::string::npos) return;
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.starts_with("moebius: --range: begins at 100 s, after the end of the run at "));
  CHECK_FALSE(std::filesystem::exists(scratch.path("x.png")));
}

TEST_CASE("an import does not take the place of a run") {
  const test::Scratch scratch;
  const std::string trace =
      scratch.write("t.json", R"([{"ph": "X", "name": "gemm", "ts": 0, "dur": 5, "pid": 1, "tid": 1}])");
  const std::string import = "import " + trace + " --chrome --out ";
  REQUIRE(test::run_moebius("run " + smoke("moe-layer.json") + " --out " + scratch.path("run")).exit_code ==
          0);
  fails(import + scratch.path("run"), 2,
        "--out: expected a new directory or one that an import wrote, found a run in " + scratch.path("run"));
  for (int i = 0; i < 2; ++i) CHECK(test::run_moebius(import + scratch.path("imported")).exit_code == 0);
}

TEST_CASE("times in a report that no clock holds stand on its page") {
  const test::Scratch scratch;
  REQUIRE(test::run_moebius("run " + smoke("moe-layer.json") + " --out " + scratch.path("run")).exit_code ==
          0);
  std::string report = test::text_of(scratch.path("run/report.json"));
  const std::size_t at = report.find("\"compute_s\": ");
  REQUIRE(at != std::string::npos);
  report.replace(at, report.find_first_of(",\n}", at) - at, "\"compute_s\": 1e10");
  scratch.write("run/report.json", report);
  CHECK(test::run_moebius("report " + scratch.path("run") + " --html " + scratch.path("p.html")).exit_code ==
        0);
  CHECK_THAT(test::text_of(scratch.path("p.html")), Catch::Contains("1.157e+05 d"));
}

}  // namespace moebius
