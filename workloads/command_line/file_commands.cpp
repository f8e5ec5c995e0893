#include "workloads/command_line/file_commands.h"

#include <memory>
#include <string>

#include "workloads/checkpoint/convert.h"
#include "workloads/report/compare_runs.h"

namespace moebius {

Command compare_command() {
  struct Runs {
    std::string a, b;
  };
  const auto runs = std::make_shared<Runs>();
  const auto compare = [runs] {
    print(compare_runs(runs->a, runs->b));
    return 0;
  };
  return {"compare",
          "join two runs of one schedule op by op; compare what they learned",
          {{.name = "RUN_A", .target = &runs->a, .help = "a run's directory or timeline", .required = true},
           {.name = "RUN_B", .target = &runs->b, .help = "another one", .required = true}},
          compare};
}

Command convert_command() {
  struct Arguments {
    ConvertRequest request;
    std::string data;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto run = [arguments] {
    print(convert(arguments->request, ModelCatalog(arguments->data)));
    return 0;
  };
  ConvertRequest& request = arguments->request;
  return {
      "convert",
      "cut a checkpoint for other ranks, or put it together for Hugging Face",
      {{.name = "IN", .target = &request.in, .help = "checkpoint: Hugging Face's or ours", .required = true},
       {.name = "--to",
        .target = &request.to,
        .help = "hf, or degrees such as tp=2,pp=2,ep=4",
        .required = true,
        .values = {"hf"}},
       {.name = "--out", .target = &request.out, .help = "directory to make", .required = true},
       {.name = "--model",
        .target = &request.model,
        .help = "whose weights they are; else as config.json says",
        .catalogs = {"models"}},
       data_option(arguments->data)},
      run};
}

}  // namespace moebius
