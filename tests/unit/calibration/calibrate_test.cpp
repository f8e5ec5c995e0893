// `moebius calibrate` through the binary.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "tests/process.h"

using namespace moebius;

TEST_CASE("calibrate makes the shipped profile from the published tables, to the byte") {
  const std::string tables = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data";
  if (!std::filesystem::exists(tables + "/deepgemm.csv")) {
    WARN("skipped: no tables of measured kernels beside the project");
    return;
  }
  const test::Scratch scratch;
  const auto run = test::run_moebius("calibrate --from " + tables + " --accelerator h800-sxm --out " +
                                     scratch.path("p.json"));
  CHECK(run.exit_code == 0);
  CHECK(test::text_of(scratch.path("p.json")) ==
        test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/hw/profiles/h800-sxm.json"));
}

TEST_CASE("calibrate refuses a directory without tables of that chip, and writes nothing") {
  const test::Scratch scratch;
  const auto run = test::run_moebius("calibrate --from " + scratch.path(".") + " --accelerator h800 --out " +
                                     scratch.path("p.json"));
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("no table of measured kernels has rows of h800-sxm") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch.path("p.json")));
}

TEST_CASE(
    "calibrate makes the profiles of all chips that have rows, and the page that says how good they are") {
  const test::Scratch scratch;
  std::ofstream table(scratch.path("infersim_gemm.csv"));
  table << "hardware,m,k,n,latency_us,mfu\n";
  for (int m = 1; m <= 12; ++m)
    for (const char* chip : {"H800", "H20"})
      table << chip << "," << 128 * m << ",7168,4096," << 20 + 9 * m << ",0\n";
  table.close();
  std::ofstream page_out(scratch.path("README.md"));
  page_out << "before\n<!-- accuracy -->\nold\n<!-- /accuracy -->\nafter\n";
  for (const char* name : {"published", "composition"})
    page_out << "<!-- " << name << " -->\n<!-- /" << name << " -->\n";
  page_out.close();
  std::ofstream details_out(scratch.path("errors.md"));
  for (const char* name : {"tables", "neighbours", "sites"})
    details_out << "<!-- " << name << " -->\n<!-- /" << name << " -->\n";
  details_out.close();
  std::ofstream(scratch.path("published.csv"))
      << "accelerator,op,dtype,m,n,k,groups,heads,kv_heads,head_dim,v_dim,kv,stack,unit,value,fitted,source\n"
         "h800,gemm,fp8,128,4096,7168,,,,,,,,us,29,,made up\n";
  const auto run = test::run_moebius("calibrate --from " + scratch.path(".") + " --accelerator all --out " +
                                     scratch.path("."));
  CHECK(run.exit_code == 0);
  CHECK(std::filesystem::exists(scratch.path("h800-sxm.json")));
  CHECK(std::filesystem::exists(scratch.path("h20-sxm.json")));
  CHECK_FALSE(std::filesystem::exists(scratch.path("b200-sxm.json")));
  const std::string page = test::text_of(scratch.path("README.md"));
  CHECK(page.find("before\n<!-- accuracy -->\n| chip |") == 0);
  CHECK(page.find("| h20-sxm | dense GEMM | fp8 | infersim-2025 |") != std::string::npos);
  CHECK(page.find("<!-- /accuracy -->\nafter\n") != std::string::npos);
  const std::string details = test::text_of(scratch.path("errors.md"));
  CHECK(details.find("| h20-sxm | dense GEMM | fp8 | infersim-2025 |") != std::string::npos);
  CHECK(details.find("| h20-sxm | h800-sxm | dense GEMM | fp8 | fp8 |") != std::string::npos);
  // 128 rows were measured to take 29 us: the profile says so, or nearly, if that row was kept out of it.
  CHECK(page.find("| h800-sxm | gemm | fp8 | 128 x 4096 x 7168 | 29 us |") != std::string::npos);
  CHECK(page.find("| profile | made up |") != std::string::npos);
  CHECK(page.find("<!-- composition -->\n<!-- /composition -->\n") !=
        std::string::npos);  // nothing to compose
}

TEST_CASE("calibrate of all chips refuses a page without its sections before it writes anything") {
  const test::Scratch scratch;
  std::ofstream(scratch.path("README.md")) << "<!-- accuracy -->\n<!-- /accuracy -->\n";
  const auto run = test::run_moebius("calibrate --from " + scratch.path(".") + " --accelerator all --out " +
                                     scratch.path("."));
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("expected a section between <!-- published --> and <!-- /published -->") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch.path("h800-sxm.json")));
}
