#include "workloads/cost/exchange_kernels.h"

#include <fmt/format.h>

#include "hw/catalog.h"
#include "hw/error.h"
#include "hw/json_text.h"
#include "hw/reader.h"

namespace moebius {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;

// One constant of a row: its key, where it goes and the SI value of its unit (us, us per KB, GB/s, 1).
struct Field {
  const char* key;
  double ExchangeKernel::*value;
  double unit;
};
constexpr Field kFields[] = {
    {"fixed_us", &ExchangeKernel::fixed, kMicro},
    {"fixed_us_per_kb", &ExchangeKernel::fixed_row, kMicro / 1000},
    {"expert_us", &ExchangeKernel::expert, kMicro},
    {"remote_expert_us", &ExchangeKernel::remote_expert, kMicro},
    {"fill_tokens", &ExchangeKernel::fill_tokens, 1},
    {"fill_us", &ExchangeKernel::fill, kMicro},
    {"fill_us_per_kb", &ExchangeKernel::fill_row, kMicro / 1000},
    {"token_us", &ExchangeKernel::token, kMicro},
    {"copy_us", &ExchangeKernel::copy, kMicro},
    {"copy_gb_s", &ExchangeKernel::copy_rate, kGiga},
    {"sum_us", &ExchangeKernel::sum, kMicro},
    {"sum_gb_s", &ExchangeKernel::sum_rate, kGiga},
    {"message_us", &ExchangeKernel::message, kMicro},
    {"crossing_us", &ExchangeKernel::crossing, kMicro},
    {"link_share", &ExchangeKernel::link_share, 1},
    {"nic_share", &ExchangeKernel::nic_share, 1},
    {"error", &ExchangeKernel::error, 1},
};

constexpr const char* kExchangeNotes = R"(  "notes": [
    "Written by `moebius calibrate --from DIR --fit exchanges --out FILE`: constants of dispatch and combine kernels, fitted to the rows of the smallest number of nodes that a kernel was measured on.",
    "The law stands in workloads/cost/exchange_model.h. family: throughput (DeepEP normal) or low-latency. reach: the kernel within a node, or between nodes.",
    "fixed: launch and synchronisation; expert: a count for every expert, remote_expert: by the NIC; fill: of the first tokens of each channel (two cores). token, copy, sum: time of a core; copy_gb_s and sum_gb_s: bytes that one core moves. message: for every copy to another rank; crossing: for every row that leaves a package of several dies, each of them a rank; package: devices that are its dies. each_expert: a token goes to each of its experts by itself. in_turn: cores of the same number read the same source. link_share, nic_share: of the line rate, per direction. A constant that is not there is 0, or no limit.",
    "rows: that the constants were fitted to, with the median error on them. 0: constants of another chip of the family, an estimate."
  ],
)";

ExchangeKernel read_kernel(Reader reader) {
  ExchangeKernel kernel;
  kernel.family = reader.choice<ExchangeFamily>(
      "family", {{"throughput", ExchangeFamily::kThroughput}, {"low-latency", ExchangeFamily::kLowLatency}});
  kernel.chip = reader.text("chip");
  kernel.architecture = reader.text("architecture");
  kernel.combine = reader.choice<bool>("op", {{"dispatch", false}, {"combine", true}});
  kernel.between_nodes = reader.choice<bool>("reach", {{"node", false}, {"network", true}});
  for (const Field& field : kFields) kernel.*field.value = reader.number(field.key, {0}, 0) * field.unit;
  kernel.dies = static_cast<int>(reader.integer("dies", {1, 64}, 1));
  kernel.package = static_cast<int>(reader.integer("package", {1, 64}, 1));
  kernel.each_expert = reader.boolean("each_expert", false);
  kernel.in_turn = reader.boolean("in_turn", false);
  kernel.rows = static_cast<int>(reader.integer("rows", {0, 1e6}));
  kernel.source = reader.text("source");
  reader.finish();
  return kernel;
}

std::string kernel_text(const ExchangeKernel& kernel) {
  std::string text =
      fmt::format(R"(    {{"family": "{}", "chip": {}, "architecture": {}, "op": "{}", "reach": "{}")",
                  kernel.family == ExchangeFamily::kThroughput ? "throughput" : "low-latency",
                  json_string(kernel.chip), json_string(kernel.architecture),
                  kernel.combine ? "combine" : "dispatch", kernel.between_nodes ? "network" : "node");
  for (const Field& field : kFields)
    if (const double value = kernel.*field.value / field.unit; value > 0)
      text += fmt::format(", \"{}\": {:.3g}", field.key, value);
  if (kernel.dies > 1) text += fmt::format(", \"dies\": {}", kernel.dies);
  if (kernel.package > 1) text += fmt::format(", \"package\": {}", kernel.package);
  if (kernel.each_expert) text += ", \"each_expert\": true";
  if (kernel.in_turn) text += ", \"in_turn\": true";
  return text +
         fmt::format(", \"rows\": {},\n     \"source\": {}}}", kernel.rows, json_string(kernel.source));
}

bool answers(const ExchangeKernel& kernel, const ExchangeQuestion& question) {
  return kernel.family == question.family && kernel.combine == question.combine &&
         kernel.between_nodes == question.between_nodes;
}

}  // namespace

std::vector<ExchangeKernel> read_exchanges(const Document& document) {
  Reader root(document);
  root.texts("notes");
  std::vector<ExchangeKernel> kernels;
  for (Reader& row : root.objects("exchanges")) kernels.push_back(read_kernel(std::move(row)));
  root.finish();
  return kernels;
}

const std::vector<ExchangeKernel>& shipped_exchanges() {
  static const std::vector<ExchangeKernel> kernels =
      read_exchanges(embedded_document("hw/catalog/exchanges.json"));
  return kernels;
}

std::string exchanges_text(const std::vector<ExchangeKernel>& kernels) {
  std::string text = std::string("{\n") + kExchangeNotes + "  \"exchanges\": [\n";
  for (const ExchangeKernel& kernel : kernels)
    text += kernel_text(kernel) + (&kernel == &kernels.back() ? "\n" : ",\n");
  return text + "  ]\n}\n";
}

ExchangeKernel exchange_kernel(const Accelerator& chip, ExchangeQuestion question) {
  const ExchangeKernel* like = nullptr;
  const ExchangeKernel* first = nullptr;
  for (const ExchangeKernel& kernel : shipped_exchanges()) {
    if (!answers(kernel, question)) continue;
    if (chip.is(kernel.chip)) return kernel;
    if (!like && kernel.architecture == chip.architecture) like = &kernel;
    if (!first) first = &kernel;
  }
  CHECK(first != nullptr, "a kernel of each kind ships");
  ExchangeKernel estimate = like ? *like : *first;
  estimate.rows = 0;
  estimate.dies = estimate.package = 1;  // known of the chip itself only
  return estimate;
}

}  // namespace moebius
