#include "workloads/serving/traffic/client_mix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "hw/reader.h"
#include "workloads/serving/traffic/arrivals.h"
#include "workloads/serving/traffic/line_reader.h"

namespace moebius {
namespace {

struct Lognormal {
  double mean = 1, sigma = 0;
};
struct Histogram {
  std::vector<std::int64_t> tokens;
  std::vector<double> up_to;  // sums of the shares
};
using Lengths = std::variant<Lognormal, Histogram>;

struct Client {
  double rate = 1, variation = 1;
  Lengths input, output;
};

Histogram read_histogram(const Value& value, const Place& place) {
  Histogram histogram;
  double sum = 0;
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    const std::string& key = value.keys[i];
    std::int64_t tokens = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), tokens);
    const bool number =
        value.items[i].kind == Value::Kind::kInteger || value.items[i].kind == Value::Kind::kNumber;
    if (error != std::errc() || end != key.data() + key.size() || tokens < 1 || tokens > kMostTokens ||
        !number || !(value.items[i].number >= 0 && value.items[i].number <= 1e12))
      place.fail(
          fmt::format("expected lengths from 1 to {:.0f} with a share each, or mean and sigma", kMostTokens));
    histogram.tokens.push_back(tokens);
    histogram.up_to.push_back(sum += value.items[i].number);
  }
  if (!(sum > 0)) place.fail("expected shares of lengths, found none");
  return histogram;
}

Lengths read_lengths(Reader& client, std::string_view key) {
  const Value& value = client.value(key);
  if (value.kind == Value::Kind::kObject && value.find("mean") == nullptr)
    return read_histogram(value, client.place_of(key));
  Reader law(value, client.place_of(key));
  const Lognormal lognormal{law.number("mean", {1, kMostTokens}), law.number("sigma", {0, 4}, 0)};
  law.finish();
  return lognormal;
}

std::int64_t draw(RandomStream& random, const Lengths& lengths) {
  if (const Histogram* histogram = std::get_if<Histogram>(&lengths)) {
    const double at = random.unit() * histogram->up_to.back();
    const auto found = std::lower_bound(histogram->up_to.begin(), histogram->up_to.end() - 1, at);
    return histogram->tokens[found - histogram->up_to.begin()];
  }
  const auto [mean, sigma] = std::get<Lognormal>(lengths);
  const double drawn = std::exp(std::log(mean) - sigma * sigma / 2 + sigma * random.normal());
  return std::max<std::int64_t>(1, std::llround(std::min(drawn, kMostTokens)));
}

class ClientMix : public TrafficStream {
 public:
  ClientMix(const std::vector<Client>& clients, std::int64_t requests, std::uint64_t seed) : left_(requests) {
    std::uint64_t key = RandomStream::finalise(seed);
    for (const Client& client : clients) {
      key += RandomStream::kGolden;
      const Arrivals arrivals{
          .law = ArrivalLaw::kGamma, .rate = client.rate, .variation = client.variation, .period = {}};
      open_.push_back({client, ArrivalClock(arrivals, RandomStream::finalise(key)),
                       RandomStream(RandomStream::finalise(~key))});
      next_.emplace(open_.back().clock.next(), open_.size() - 1);
    }
  }

  bool next(TrafficRequest& request) override {
    if (left_-- <= 0) return false;
    const auto [arrival, which] = next_.top();
    next_.pop();
    Open& first = open_[which];
    request = TrafficRequest{};
    request.arrival = arrival;
    request.input_tokens = draw(first.random, first.client.input);
    request.output_tokens = draw(first.random, first.client.output);
    next_.emplace(first.clock.next(), which);
    return true;
  }

 private:
  struct Open {
    Client client;
    ArrivalClock clock;
    RandomStream random;
  };
  using Turn = std::pair<Time, std::size_t>;  // of a client; of equal ones the first client's

  std::vector<Open> open_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> next_;
  std::int64_t left_;
};

Document load_packed(const std::string& path) {
  if (!path.ends_with(".gz")) return load_document(path);
  const DocumentLimits limits;
  LineReader lines(path);
  std::string text;
  for (std::string line; text.size() <= limits.bytes && lines.next(line);) text += line + '\n';
  return parse_document(text, path, limits);  // which refuses a text that is too long
}

}  // namespace

std::unique_ptr<TrafficStream> read_client_mix(const std::string& path, std::uint64_t seed) {
  const Document document = load_packed(path);
  Reader reader(document);
  const std::int64_t requests = reader.integer("requests", {1, 1e9});
  constexpr double kMostSeed = 9007199254740992.0;
  if (reader.has("seed")) seed = static_cast<std::uint64_t>(reader.integer("seed", {0, kMostSeed}));
  std::vector<Client> clients;
  for (Reader& row : reader.objects("clients")) {
    row.text("name", "");
    Client& client = clients.emplace_back();
    client.rate = row.number("rate", {kAboveZero, 1e6});
    client.variation = row.number("cv", {0.05, 20}, 1);
    client.input = read_lengths(row, "input_tokens");
    client.output = read_lengths(row, "output_tokens");
    row.finish();
  }
  if (clients.empty() || clients.size() > 10000)
    reader.place_of("clients").fail(fmt::format("expected 1 to 10000 clients, found {}", clients.size()));
  reader.finish();
  return std::make_unique<ClientMix>(clients, requests, seed);
}

}  // namespace moebius
