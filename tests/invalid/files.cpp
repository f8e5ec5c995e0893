// Files and command lines that are wrong: exit code 2 (or 1 when only the run fails), nothing on standard
// output, and one exact sentence on standard error.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "tests/process.h"

namespace {

using namespace moebius::test;

const std::string kSource = MOEBIUS_SOURCE_DIR;
const std::string kSmoke = kSource + "/scenarios/smoke/";

// The command fails with `code` and says "moebius: SENTENCE".
void refused(const std::string& arguments, int code, const std::string& sentence) {
  INFO(arguments);
  const Finished finished = run_moebius(arguments);
  CHECK(finished.exit_code == code);
  CHECK(finished.out.empty());
  CHECK(finished.err == "moebius: " + sentence + "\n");
}

struct Text {
  const char* what;
  std::string text;
  std::string sentence;  // after the file's name
};

}  // namespace

TEST_CASE("an option that names what the catalog lacks is named itself") {
  refused("matrix h800-sxm --fabric nofab", 2, "--fabric: expected the name of a fabric, found \"nofab\"");
  refused("matrix h800-sxm --node nonode", 2, "--node: expected the name of a node, found \"nonode\"");
}

TEST_CASE("texts that are not strict JSON are refused with their line") {
  const std::vector<Text> texts{
      {"empty", "", ":1: expected a value, found the end of the file"},
      {"truncated", "{\n  \"moebius\": 1,\n  \"kind\": \"trai",
       ":3: expected '\"' at the end of a string, found the end of the file"},
      {"truncated after a comma", "{\"moebius\": 1,\n",
       ":1: expected a key in double quotes behind the comma, found the end of the file"},
      {"trailing comma", "{\"moebius\": 1,\n}",
       ":2: expected a key in double quotes behind the comma, found '}'"},
      {"duplicate key", "{\"moebius\": 1,\n \"seed\": 1,\n \"seed\": 2}",
       ":3: /seed: expected each key once, found \"seed\" again"},
      {"NaN", "{\"moebius\": 1,\n \"seed\": NaN}", ":2: expected a value, found NaN"},
      {"infinity", "{\"moebius\": 1, \"seed\": 1e999}",
       ":1: expected a number of at most 1.8e308, found 1e999"},
      {"more after the end", "{}\n{}", ":2: expected the end of the file, found '{'"},
      {"not an object", "[1, 2]", ":1: expected an object, found an array"},
      {"a comment that does not end", "{ /* }",
       ":1: expected '*/' at the end of a comment, found the end of the file"},
      {"a wrong escape", "{\"na\\qme\": 1}", ":1: expected an escape such as \\n, found a backslash and 'q'"},
      {"bytes that are not UTF-8", "{\"name\": \"\xff\xfe\"}", ":1: expected valid UTF-8, found byte 0xFF"},
      {"no kind", "{\"moebius\": 1}", ":1: expected key \"kind\", found none"},
  };
  const Scratch scratch;
  for (const Text& text : texts) {
    INFO(text.what);
    const std::string file = scratch.write("s.json", text.text);
    refused("check " + file, 2, file + text.sentence);
  }
}

TEST_CASE("a hundred megabytes of garbage are refused without being read") {
  const Scratch scratch;
  const std::string file = scratch.path("garbage.json");
  {
    std::ofstream stream(file, std::ios::binary);
    std::string block(1 << 20, ' ');
    unsigned state = 1;
    for (char& byte : block) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    for (int i = 0; i < 100; ++i) stream << block;
  }
  refused("check " + file, 2, file + ": expected at most 67108864 bytes, found 104857600");
}

TEST_CASE("nesting deeper than any scenario is refused before the stack ends") {
  const Scratch scratch;
  const std::string file = scratch.write("deep.json", "{\"moebius\": " + std::string(1000000, '['));
  refused("check " + file, 2, file + ":1: expected at most 64 levels of nesting, found more");
}

TEST_CASE("files that are not there, or are no files") {
  refused("check no-such-file.json", 2, "no-such-file.json: expected a file, found none");
  refused("check /", 2, "/: expected a file, found a directory");
  refused("compare no-such-run no-such-run", 2,
          "no-such-run: expected a run's directory or timeline, found nothing");
  const Scratch scratch;
  const std::string garbage = scratch.write("timeline.mtl", "this is no timeline");
  refused("compare " + garbage + " " + garbage, 2, garbage + ": too short for a timeline: 19 bytes");
}

TEST_CASE("a model's file that is missing, and a catalog of the user that refers to itself") {
  refused(
      "check " + kSmoke + "moe-layer.json --set '/model={\"hf_config\": \"no-such-config.json\"}'", 2,
      kSmoke + "moe-layer.json: --set /model/hf_config: expected a file, found none: no-such-config.json");
  const Scratch scratch;
  scratch.write("accelerators.json",
                "{\"sources\": {}, \"accelerators\": {\"a\": {\"base\": \"b\"}, \"b\": {\"base\": \"a\"}}}");
  refused("list accelerators --data " + scratch.path("."), 2,
          scratch.path("./accelerators.json") + ":1: /accelerators/a: cyclic base: a -> b -> a");
}

TEST_CASE("changes on the command line that change nothing that is there") {
  const std::string file = kSmoke + "moe-layer.json", check = "check " + file + " --set ";
  refused(check + "plan/pp/degree=2", 2, "--set: expected /json/pointer=value, found \"plan/pp/degree=2\"");
  refused(check + "/plan/pp/degree", 2, "--set: expected /json/pointer=value, found \"/plan/pp/degree\"");
  refused(check + "/name/first=2", 2,
          file +
              ": --set /name/first: expected an object or an array at /name, found \"One mixture-of-experts "
              "layer on four...");
  refused(check + "/cluster/pools/7/nodes=2", 2,
          file +
              ": --set /cluster/pools/7/nodes: expected an index from 0 to 0 or \"-\", which appends to the "
              "array, found \"7\"");
  refused(check + "/cluster/pools/x/nodes=2", 2,
          file +
              ": --set /cluster/pools/x/nodes: expected an index from 0 to 0 or \"-\", which appends to the "
              "array, found \"x\"");
}

TEST_CASE("names that list and show do not know") {
  refused("list accelerator", 2,
          "list: expected one of \"accelerators\", \"nodes\", \"fabrics\", \"storage\", \"models\", "
          "\"schedules\", "
          "\"scenarios\", \"collectives\", \"frameworks\", \"policies\", found \"accelerator\" (did you mean "
          "\"accelerators\"?)");
  refused("show h801-sxm", 2,
          "show: unknown name \"h801-sxm\" (did you mean \"h800-sxm\"?); `moebius list` names all");
}

TEST_CASE("networks that show cannot draw, and options that do not belong to them") {
  const std::string scenario =
      "show " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/allreduce-1024.json ";
  refused("show h800-sxm --nodes 4", 2,
          "--nodes: expected the name of a fabric or a scenario file, found \"h800-sxm\"");
  refused(scenario + "--node hgx-8", 2,
          "--node: expected the name of a fabric: a scenario says what nodes it has");
  refused("show clos --nodes 0", 2, "--nodes: expected an integer from 1 to 1048576, found \"0\"");
  refused("show rail-only --nodes 40", 2,
          "--nodes 40: one tier joins the nodes of one leaf, but 40 nodes need 2 leaves of 32 ports: use "
          "more tiers "
          "or larger leaves");
  refused("show clos --node hgx-9", 2,
          "expected the name of a node, found \"hgx-9\" (did you mean \"hgx-8\"?)");
}

TEST_CASE("kernels that show cannot draw, and options that do not belong to them") {
  const std::string show = "show h800-sxm ";
  refused(show + "--n 7168", 2, "--n: expected --kernel KIND beside it, found none");
  refused(show + "--dtype fp8", 2, "--dtype: expected --kernel KIND beside it, found none");
  refused(
      show + "--kernel gem", 2,
      "--kernel: expected one of \"gemm\", \"gemm-dgrad\", \"gemm-wgrad\", \"grouped-gemm\", "
      "\"grouped-gemm-dgrad\", \"grouped-gemm-wgrad\", \"attention\", \"attention-grad\", \"norm\", "
      "\"norm-grad\", \"quantise\", \"transpose-quantise\", \"activation\", \"activation-grad\", \"adam\", "
      "found \"gem\" (did you mean \"gemm\"?)");
  refused(show + "--kernel gemm --n 7168", 2,
          "--kernel gemm: expected two of --m, --n, --k, the third is swept, or all three; found --n");
  refused(show + "--kernel gemm --n 7168 --k 0", 2, "--k: expected 1 to 1073741824, found 0");
  refused(show + "--kernel gemm --n 7168 --k 2048 --heads 2", 2,
          "--kernel gemm does not take --heads; it takes --m, --n, --k");
  refused(show + "--kernel gemm --n 7168 --k 2048 --cores 133", 2,
          "--cores: expected 1 to 132 on h800-sxm, found 133");
  refused(show + "--kernel gemm --n 7168 --k 2048 --dtype fp9", 2,
          "--kernel gemm: expected --dtype bf16, fp8, fp16, fp32, int8, fp4, found \"fp9\"");
  refused(show + "--kernel adam --n 5", 2, "--kernel adam does not take --n; it takes no sizes");
  refused("show hgx-8 --kernel norm --n 7168", 2, "expected the name of an accelerator, found \"hgx-8\"");
}

TEST_CASE("options that the command line does not have exit with 2 and print nothing") {
  for (const char* arguments :
       {"", "run", "runn x.json", "run x.json --details fluid", "run x.json --detail exact",
        "run x.json --executor gpu", "run x.json --seed many", "compare one"}) {
    INFO(arguments);
    const Finished finished = run_moebius(arguments);
    CHECK(finished.exit_code == 2);
    CHECK(finished.out.empty());
    CHECK_FALSE(finished.err.empty());
  }
}

TEST_CASE("a wrong word on the command line is answered with the words that exist") {
  refused("run x.json --exlpain", 2, "run: unknown option \"--exlpain\" (did you mean \"--explain\"?)");
  refused("run x.json --sed=3", 2, "run: unknown option \"--sed\" (did you mean \"--set\"?)");
  refused("--foo", 2, "expected a command, found \"--foo\"");
  refused("runn x.json", 2, "unknown command \"runn\" (did you mean \"run\"?)");
  refused("", 2,
          "expected a command: run, check, crosscheck, compare, export, import, report, view, validate, "
          "search, sweep, place, matrix, "
          "split, list, show, calibrate, convert, align, eplb, schema, help, manual");
  refused("run x.json --detail flud", 2,
          "--detail: expected alpha-beta, fluid, packet, native, found \"flud\" (did you mean \"fluid\"?)");
  const std::string weeks = kSource + "/scenarios/study/llama3-54-days.json";
  refused("run " + weeks + " --detail packet", 2,
          weeks +
              ": --detail packet counts for nothing: weeks of a cluster go by events, and no step is "
              "simulated");
  refused("run " + weeks + " --driver plain", 2,
          weeks +
              ": --driver plain counts for nothing: weeks of a cluster go by events, and no step is "
              "simulated");
  refused("run " + kSmoke + "kv-replay.json --driver simgrid", 2,
          kSmoke + "kv-replay.json: --driver simgrid counts for nothing: a replay of a cache moves no bytes");
  refused("run x.json --executor gpu", 2, "--executor: expected sim, host, cuda, emulate, found \"gpu\"");
  refused("calibrate --from /nowhere --model-errors", 2, "--from: expected a directory, found \"/nowhere\"");
  refused("calibrate --device gpu --out p.json", 2, "--device: expected host or cuda:N, found \"gpu\"");
  refused("calibrate --device cuda: --out p.json", 2, "--device: expected host or cuda:N, found \"cuda:\"");
  refused("calibrate --device host", 2, "--device requires --out");
  refused("calibrate --device host --from " + kSmoke + " --out p.json", 2, "--from excludes --device");
  refused("calibrate --device host --out p.json --budget 0", 2,
          "--budget: expected a number above 0, found \"0\"");
  refused("calibrate --budget 3 --out p.json --from " + kSmoke, 2, "--budget requires --device");
  refused("calibrate --out p.json", 2, "calibrate: expected --from DIR or --device host|cuda:N");
  refused("run x.json --seed -1", 2,
          "--seed: expected a whole number from 0 to 9007199254740992, found \"-1\"");
}

TEST_CASE("values of options that are no numbers are answered with what was expected") {
  const std::string search = "search " + kSmoke + "train-small.json ", show = "show h800-sxm --kernel gemm ";
  for (const char* word : {"many", "3x", "0x10", "1.5", "''"}) {
    const std::string found = std::string(word) == "''" ? "" : word;
    refused(search + "--top " + word, 2, "--top: expected a whole number, found \"" + found + "\"");
  }
  refused(search + "--requests 1e3", 2, "--requests: expected a whole number, found \"1e3\"");
  refused(show + "--n 9223372036854775808", 2,
          "--n: expected a number of at most 64 bits, found \"9223372036854775808\"");
  for (const char* word : {"soon", "1e999", "nan", "3s"})
    refused(search + "--time-limit " + word, 2,
            std::string("--time-limit: expected a number, found \"") + word + "\"");
  refused("split x.json --seed 99999999999999999999", 2,
          "--seed: expected a whole number from 0 to 9007199254740992, found \"99999999999999999999\"");
  refused("run x.json --set /seed=1 --set", 2, "--set: expected a value, found none");
  refused(search + "--top", 2, "--top: expected a value, found none");
  refused("run x.json --out a --json --out=b", 2, "--out: expected it once, found it again");
  refused("run x.json --json=maybe", 2, "--json: expected no value, found \"maybe\"");
}

TEST_CASE("a step that does not fit fails with the breakdown, and runs when the plan says report") {
  const std::string small =
      kSmoke +
      "moe-layer.json --set '/cluster/pools/0/accelerator={\"base\": \"h800-sxm\", \"memory\": \"500 KiB\"}'";
  for (const char* command : {"run ", "run --json "}) {
    const Finished finished = run_moebius(command + small);
    CHECK(finished.exit_code == 1);
    const bool in_json = std::string_view(command).ends_with("--json ");
    CHECK((finished.out.find("\"fits\": false") != std::string::npos) == in_json);
    CHECK(finished.out.empty() == !in_json);
    CHECK_THAT(finished.err, Catch::Contains("does not fit: ") &&
                                 Catch::Contains("needed on the fullest rank, 512 kB there") &&
                                 Catch::Contains("weights") && Catch::Contains("activations"));
  }
  CHECK(run_moebius("check " + small).exit_code == 1);
  const Finished reported = run_moebius("run " + small + " --set /plan/memory=report");
  CHECK(reported.exit_code == 0);
  CHECK_THAT(reported.out, Catch::Contains("of 512 kB: does not fit"));
}

TEST_CASE("what cannot be written fails the run, and leaves nothing behind") {
  const Scratch scratch;
  const std::string file = scratch.write("file", "");
  refused("run " + kSmoke + "moe-layer.json --out " + file + "/run", 1,
          file + "/run: cannot create the directory: Not a directory");
  refused("run " + kSmoke + "moe-layer.json --dump " + scratch.path("none/dump.txt"), 1,
          scratch.path("none/dump.txt") + ": cannot be written: No such file or directory");
}

TEST_CASE("outputs are made sure of before the work") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("run/timeline.mtl"));
  refused("run " + kSmoke + "moe-layer.json --out " + scratch.path("run"), 1,
          scratch.path("run/timeline.mtl") + ": cannot be written: Is a directory");
  refused("crosscheck " + kSmoke + "moe-layer.json --out " + scratch.write("file", ""), 1,
          scratch.path("file/simulated") + ": cannot create the directory: Not a directory");
  const std::string none = scratch.path("none/p.json"),
                    cannot = ": cannot be written: No such file or directory";
  for (const std::string& options : {std::string("--device host"), "--fit links --from " + kSmoke,
                                     "--accelerator h100-sxm --from " + kSmoke})
    refused("calibrate " + options + " --out " + none, 1, none + cannot);
  refused("calibrate --accelerator all --from " + kSmoke + " --out " + scratch.path("none"), 1,
          scratch.path("none/README.md") + cannot);
  refused("matrix h800-sxm --out " + none, 1, none + cannot);
  refused("split " + kSource + "/scenarios/baige/mixed-chips-100.json --out " + none, 1, none + cannot);
  std::filesystem::create_directories(scratch.path("found/best.json"));
  refused("search " + kSmoke + "train-small.json --out " + scratch.path("found"), 1,
          scratch.path("found/best.json") + ": cannot be written: Is a directory");
  refused("search " + kSmoke + "train-small.json --out " + scratch.path("file/found"), 1,
          scratch.path("file/found") + ": cannot create the directory: Not a directory");
  const Finished full = run(std::string(MOEBIUS_BINARY) + " schema >/dev/full");
  CHECK(full.exit_code == 1);
  CHECK(full.err == "moebius: standard output: cannot be written: No space left on device\n");
}

TEST_CASE("a file that may not grow leaves a sentence and nothing beside it") {
  const Scratch scratch;
  const Finished cut = run("ulimit -f 8; " + std::string(MOEBIUS_BINARY) + " run " + kSmoke +
                           "train-small.json --out " + scratch.path("run"));
  CHECK(cut.exit_code == 1);
  CHECK(cut.err == "moebius: " + scratch.path("run/timeline.mtl") + ": cannot be written: File too large\n");
  CHECK_FALSE(std::filesystem::exists(scratch.path("run")));
}

// Where memory is not the C library's, too.
TEST_CASE("a run that finds too little memory goes on with what there is, or says so") {
  const Scratch scratch;
  const std::string many = kSource + "/scenarios/study/deepseek-v3-train-2048-h800.json";
  const Finished little = run("ulimit -v 900000; " + std::string(MOEBIUS_BINARY) + " run " + many +
                              " --set /timeline/detail=ops --out " + scratch.path("run"));
  CHECK((little.exit_code == 0 || little.exit_code == 1));
}

TEST_CASE("a report that is not of the timeline beside it is refused") {
  const Scratch scratch;
  const std::string a = scratch.path("a"), b = scratch.path("b"), file = scratch.path("a/report.json");
  const auto made = [](const std::string& of, const std::string& out) {
    REQUIRE(run_moebius("run " + kSmoke + of + " --out " + out).exit_code == 0);
  };
  made("moe-layer.json", a);
  made("moe-layer.json --seed 2", b);
  std::filesystem::copy_file(b + "/report.json", file, std::filesystem::copy_options::overwrite_existing);
  const std::string sentence = file +
                               ": expected the report of the run whose timeline is beside it, of seed \"1\", "
                               "found one of seed \"2\"";
  refused("compare " + a + " " + b, 2, sentence);
  refused("report " + a + " --html " + scratch.path("page.html"), 2, sentence);
}

TEST_CASE("a folder of data that cannot be read counts for something") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("list/profiles"));
  scratch.write("list/profiles/x.json", "[]");
  const std::string run = "run " + kSmoke + "moe-layer.json --data ";
  refused(run + scratch.path("list"), 2,
          scratch.path("list/profiles/x.json") + ":1: expected an object, found an array");
  std::filesystem::create_directories(scratch.path("file"));
  scratch.write("file/profiles", "");
  refused(run + scratch.path("file"), 2, scratch.path("file/profiles") + ": cannot be read: Not a directory");
}

TEST_CASE("options that would do nothing are refused") {
  const std::string layer = kSmoke + "moe-layer.json", study = kSource + "/scenarios/study/";
  refused("run " + layer + " --device host", 2,
          "--device: expected --executor emulate: nothing else measures on one");
  refused("run " + layer + " --executor host --detail packet", 2,
          "--detail: expected --executor sim or emulate: nothing else is simulated");
  refused(
      "check " + study + "oversubscription.study.json --seed 3", 2,
      study +
          "oversubscription.study.json: --set and --seed change scenarios: expected a study without them");
  refused("validate " + layer + " --fit-hosts", 2,
          layer + ": --fit-hosts: expected a table of measured servers, without --mapping");
  refused("validate table.csv --rows 0", 2, "--rows: expected a number above 0, found \"0\"");
  for (const char* more : {"--json", "--scenarios out"})
    CHECK(run_moebius(std::string("validate --recorded ") + more).exit_code == 2);
  CHECK(run_moebius("validate " + layer + " --write " + kSource + "/README.md").exit_code == 2);
  refused("run " + layer + " --seed 9007199254740993", 2,
          "--seed: expected a whole number from 0 to 9007199254740992, found \"9007199254740993\"");
  refused("convert in --to tp=2,tp=4 --out out", 2,
          "--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"tp=2,tp=4\": tp is given twice");
}

TEST_CASE("a scenario that extends a file which is not there is named itself") {
  const Scratch scratch;
  const std::string file = scratch.write("a.json", "{\n\"extends\": \"b.json\"}");
  refused("check " + file, 2,
          file + ":2: /extends: expected a file, found none at " + scratch.path("b.json"));
}

TEST_CASE("the host refuses folded ranks, and says how to unfold them") {
  refused("run " + kSmoke + "allreduce-1024.json --executor host", 2,
          kSmoke +
              "allreduce-1024.json: /workload/fold: the host executes every rank; add --set "
              "/workload/fold=false");
  refused(
      "run " + kSmoke +
          "train-small.json --set '/plan/precision={\"gemm\": \"fp8\", \"scaling\": \"history\"}' --executor "
          "host",
      1,
      kSmoke +
          "train-small.json: /plan/precision/scaling \"history\" is simulated only: executors keep no "
          "magnitudes of steps before");
  refused("run " + kSmoke + "moe-layer.json --set /plan/fold=true --executor host", 2,
          kSmoke + "moe-layer.json: /plan/fold: the host executes every rank; add --set /plan/fold=false");
}

TEST_CASE("the host refuses what its memory cannot hold") {
  const Finished finished =
      run_moebius("run " + kSource + "/scenarios/study/deepseek-v3-train-2048-h800.json --executor host");
  CHECK(finished.exit_code == 1);
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err,
             Catch::StartsWith("moebius: " + kSource +
                               "/scenarios/study/deepseek-v3-train-2048-h800.json: the 2048 ranks hold ") &&
                 Catch::Contains(" together, this machine has "));
}
