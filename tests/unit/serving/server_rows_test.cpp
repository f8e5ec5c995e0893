// Tables of measured servers as they are read, and the rules of how their servers were started.
#include <string>

#include "hw/error.h"
#include "tests/process.h"
#include "workloads/validation/servers/server_rules.h"
#include "workloads/validation/servers/server_scenario.h"
#include "workloads/validation/servers/server_table.h"

#include "tests/catch.h"

namespace {

using namespace moebius;

std::vector<ServerRow> rows_of(const std::string& text) {
  const test::Scratch scratch;
  return server_rows(Csv(scratch.write("rows.csv", text)));
}

}  // namespace

TEST_CASE("versions are compared by number, and those that cannot be read are neither from nor before any") {
  CHECK(version_of("1.2.0rc6.post2") == Version{1, 2, 0});
  CHECK(version_of("0.14") == Version{0, 14, 0});
  CHECK(!version_of("nightly-5b8c30d"));
  const VersionSpan from{.is = "", .from = Version{0, 9, 0}, .before = {}, .not_before = {}};
  CHECK(from.has("0.14.1"));
  CHECK(!from.has("0.8.5"));
  CHECK(!from.has(""));
  const VersionSpan not_before{.is = "", .from = {}, .before = {}, .not_before = Version{0, 5, 2}};
  CHECK(not_before.has(""));
  CHECK(!not_before.has("0.5.1.post1"));
}

TEST_CASE("rules say where they come from, and what they do not know is refused") {
  const auto read = [](const std::string& rule) {
    try {
      read_server_rules(parse_document(R"({"rules": [)" + rule + "]}", "starts.json"));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(!shipped_server_rules().empty());
  CHECK(read(R"({"source": "a script", "when": {"by": "inferencemax"}, "set": {"max_batch": 8}})").empty());
  CHECK(read(R"({"when": {"by": "inferencemax"}, "set": {}})").find("source") != std::string::npos);
  CHECK(read(R"({"source": "", "when": {"by": "inferencemax", "user": {}}, "set": {}})").find("\"users\"") !=
        std::string::npos);
}

// 64 + 1,024 + 64 tokens at a multiple of 64, and at least 8,192.
TEST_CASE("a token budget counts prompts and batches") {
  CHECK(TokenBudget{.tokens = 64, .inputs = 1, .batches = 1, .multiple = 64, .least = 0}.of(1000, 64) ==
        1152);
  CHECK(TokenBudget{.tokens = 64, .inputs = 1, .batches = 1, .multiple = 64, .least = 8192}.of(1000, 64) ==
        8192);
}

TEST_CASE("a shared budget is divided among the replicas that take prompts in") {
  CHECK(TokenBudget{.tokens = 32768, .shared = true}.of(1000, 64, 8) == 4096);
  CHECK(TokenBudget{.tokens = 32768}.of(1000, 64, 8) == 32768);
}

// As the recipes of TensorRT-LLM on H100 pair them, and the names of those on B200.
TEST_CASE("decoding ranks have the round number of slots that is not more than their users") {
  CHECK(slots_of(1.05, 6, 3) == 1);
  CHECK(slots_of(1.05, 9, 3) == 2);
  CHECK(slots_of(1.05, 30, 3) == 8);
  CHECK(slots_of(1.05, 60, 3) == 16);
  CHECK(slots_of(1.05, 154, 2) == 64);
  CHECK(slots_of(1.05, 1845, 48) == 32);
  CHECK(slots_of(1, 450, 6) == 64);
  CHECK(slots_of(1, 1606, 8) == 192);
  CHECK(slots_of(1, 4096, 8) == 512);
  CHECK(slots_of(1, 1, 8) == 1);
}

TEST_CASE("a row with a cell that cannot be read is left out with its reason, and the others are not") {
  const std::vector<ServerRow> rows = rows_of(
      "system,backend,model_path,mode,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms\n"
      "h200_sxm,vllm,m,agg,1024,1024,n/a,8,100,10\n"
      "h200_sxm,vllm,m,agg,1024,1024, 8,8,,10\n"
      "h200_sxm,vllm,m,agg,1024,1024,8,8,100,10\n");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].unreadable == "concurrency is no whole number up to 65536");
  CHECK(rows[1].unreadable == "ttft_ms is no time above zero");
  CHECK(rows[1].users == 8);
  CHECK(rows[2].unreadable.empty());
  CHECK(server_scenario(rows[0], ModelCatalog()).left_out == rows[0].unreadable);
}

TEST_CASE("a row that tells no stages has one, and cells of any bytes are told as characters") {
  const std::string columns = "system,backend,model_path,mode,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms";
  const std::string row = "\nh100_sxm,vllm,meta-llama/Llama-3.1-8B-Instruct,agg,1024,128,4,1,50,8";
  for (const std::string& table : {columns + row, columns + ",pp_size" + row + ","}) {
    const ServerScenario found = server_scenario(rows_of(table)[0], ModelCatalog());
    CHECK(found.left_out.empty());
    REQUIRE(found.scenario);
    CHECK(to_json(found.scenario->root)
              .find(R"("nodes": 1)"
                    "\n") != std::string::npos);
  }
  const ServerScenario unknown =
      server_scenario(rows_of(columns + "\nh100_sxm,vllm,Llam\xe9,agg,1024,128,4,1,50,8")[0], ModelCatalog());
  CHECK(unknown.left_out == "Llam\uFFFD is not in the catalog");
}

TEST_CASE("degrees whose product no machine has are left out") {
  const std::vector<ServerRow> rows = rows_of(
      "system,backend,model_path,mode,isl,osl,concurrency,tp_size,pp_size,attention_dp_size,moe_tp_size,"
      "moe_ep_size,ttft_ms,tpot_ms\n"
      "h200_sxm,vllm,deepseek-ai/DeepSeek-R1,agg,1024,512,4,1024,1024,512,1024,512,100,10\n");
  CHECK(server_scenario(rows[0], ModelCatalog()).left_out ==
        "more than 1048576 devices (how the server is spread)");
}

TEST_CASE("a row's key is the same whatever the order of the columns") {
  const std::vector<ServerRow> one = rows_of(
      "system,backend,model_path,mode,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms\n"
      "h200_sxm,vllm,m,agg,1024,512,4,8,100,10\n");
  const std::vector<ServerRow> other = rows_of(
      "ttft_ms,osl,isl,mode,model_path,backend,tp_size,concurrency,system,tpot_ms,dump\n"
      "100,512,1024,agg,m,vllm,8,4,h200_sxm,10,x\n");
  CHECK(one[0].key == "h200_sxm,vllm,m,agg,1024,512,4,8");
  CHECK(other[0].key == one[0].key);
}

TEST_CASE("a table of measured servers that lacks a column is told which one") {
  const test::Scratch scratch;
  const std::string path =
      scratch.write("rows.csv", "system,backend,model_path,mode,isl,concurrency,tp_size,ttft_ms,tpot_ms\n");
  try {
    names_servers({path});
    FAIL();
  } catch (const Error& error) {
    CHECK(error.what() == path + ":1: a table of measured servers: expected the column osl, found none");
  }
}

TEST_CASE("one user of Llama 3.1 8B waits where AIConfigurator started TensorRT-LLM 1.0") {
  const std::string columns =
      "system,backend,backend_version,model_path,mode,isl,osl,concurrency,batch_size,tp_size,ttft_ms,tpot_ms,"
      "dump\n";
  const auto slots = [&](const std::string& server, const std::string& model) {
    const std::string row = server + model + ",agg,2048,512,8,8,2,100,10," + model + ".csv\n";
    const ServerScenario found = server_scenario(rows_of(columns + row)[0], ModelCatalog());
    REQUIRE(found.left_out.empty());
    return found.scenario->root.find("plan")->find("decode")->find("max_batch")->integer;
  };
  CHECK(slots("h100_sxm,trtllm,1.0.0rc3,", "meta-llama/Llama-3.1-8B-Instruct") == 7);
  CHECK(slots("h100_sxm,trtllm,1.0.0rc3,", "Qwen/Qwen3-32B") == 8);
  CHECK(slots("h100_sxm,trtllm,1.1.0,", "meta-llama/Llama-3.1-8B-Instruct") == 8);
}

TEST_CASE("scenarios of a table of measured servers are written, and say the same when they are read") {
  const test::Scratch scratch;
  const std::string path =
      scratch.write("rows.csv",
                    "system,backend,model_path,mode,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms\n"
                    "h200_sxm,vllm,meta-llama/Llama-3.1-70B,agg,1024,512,4,8,100,10\n"
                    "h200_sxm,vllm,nobody/knows,agg,1024,512,4,8,100,10\n");
  ServerOptions options;
  options.scenarios = scratch.path("of/rows");
  const Library library("");
  CHECK(validated_servers(path, library, {}, options, false) ==
        options.scenarios + "/row-2.json\nrow 3: nobody/knows is not in the catalog\n");
  const Document written = load_document(options.scenarios + "/row-2.json");
  const ServerScenario of = server_scenario(server_rows(Csv(path))[0], library.models);
  CHECK(to_json(written.root) == to_json(of.scenario->root));
}

TEST_CASE("SGLang's aggregated servers on Hopper fuse DeepSeek's shared expert where ranks cut each expert") {
  const std::string columns =
      "system,backend,backend_version,model_path,mode,isl,osl,concurrency,gemm_quant_mode,tp_size,"
      "attention_dp_size,moe_tp_size,moe_ep_size,ttft_ms,tpot_ms\n";
  const auto fuses = [&](const std::string& server, const std::string& degrees) {
    const std::string row = server + ",1024,1024,8,fp8," + degrees + ",100,10\n";
    const ServerScenario found = server_scenario(rows_of(columns + row)[0], ModelCatalog());
    REQUIRE(found.left_out.empty());
    return to_json(found.scenario->root).find(R"("shared_experts")") != std::string::npos;
  };
  const std::string cut = "8,1,8,1", spread = "1,8,1,8";
  CHECK(fuses("h200_sxm,sglang,0.5.9,deepseek-ai/DeepSeek-R1,agg", cut));
  CHECK_FALSE(fuses("h200_sxm,sglang,0.5.9,deepseek-ai/DeepSeek-R1,agg", spread));
  CHECK_FALSE(fuses("b200_sxm,sglang,0.5.9,deepseek-ai/DeepSeek-R1,agg", cut));
  CHECK_FALSE(fuses("h200_sxm,vllm,0.14.0,deepseek-ai/DeepSeek-R1,agg", cut));
}
