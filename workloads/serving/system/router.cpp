#include "workloads/serving/system/router.h"

#include <algorithm>
#include <utility>

#include "hw/clock_end.h"
#include "hw/error.h"

namespace moebius {
namespace {

// Of what is promised: 1 and below keeps it.
double share_of(Time found, Time promised) {
  return promised.ns == 0 ? 0 : found.seconds() / promised.seconds();
}

}  // namespace

double RecentRate::at(Time now, double sum) {
  if (const Time lasted = now - marked_; lasted >= kWindow) {
    since_ = std::exchange(marked_, now);
    before_ = std::exchange(mark_, sum);
    if (lasted > kWindow * 2) {  // nobody asked: of that time the last window, at its mean
      since_ = now - kWindow;
      before_ = sum - (sum - before_) * (kWindow.seconds() / lasted.seconds());
    }
  }
  // A second passes before anything is known.
  return (sum - before_) / std::max(1.0, (now - since_).seconds());
}

Router::Router(RouterPolicy policy, std::vector<RoutedPool> pools, const std::vector<RequestClass>& classes)
    : policy_(policy), pools_(std::move(pools)), classes_(classes) {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    const RoutedPool& pool = pools_[p];
    forecasters_.emplace_back(pool.rules);
    routed_.push_back(0);
    arriving_.emplace_back();
    first_.push_back(by_class_.size());
    by_class_.resize(by_class_.size() + pool.instances->size(), std::vector<std::int64_t>(classes.size()));
    prompt_time_.resize(by_class_.size());
    joined_.resize(by_class_.size());
    joining_.resize(by_class_.size());
    priced_ = priced_ && pool.usd_per_second > 0;
    Side& side = pool.role == PoolRole::kDecode ? decoding_ : prompts_;
    for (std::size_t i = 0; i < pool.instances->size(); ++i)
      side.seats.push_back({static_cast<std::int32_t>(p), static_cast<std::int32_t>(i)});
  }
  margins_.resize(pools_.size() * classes.size());
}

void Router::arrived(Time now) {
  began_ = std::min(began_, now);
}

void Router::routed(const Location& at, const RouteRequest& request) {
  decodes(at, *request.of);
  if (!forecasts_) return;
  routed_[at.pool] += request.input - hit_tokens({at.pool, at.instance}, at.replica, request);
}

// On a replica of the pool.
double Router::arriving(std::int32_t pool, Time now) {
  const double replicas = static_cast<double>(pools_[pool].instances->size()) * pools_[pool].rules.replicas;
  return arriving_[pool].at(now, static_cast<double>(routed_[pool])) / replicas;
}

std::int64_t& Router::of_class(const Location& at, const RequestClass& of) {
  return by_class_[first_[at.pool] + at.instance][&of - classes_.data()];
}

void Router::decodes(const Location& at, const RequestClass& of) {
  ++of_class(at, of);
  ++joined_[first_[at.pool] + at.instance];
}

void Router::first_token(std::int32_t pool, const RequestClass& of, Time came, Time forecast, Time now) {
  margins(pool, of).first_token.add(now, came, forecast);
}

void Router::per_token(std::int32_t pool, const RequestClass& of, Time came, Time forecast, Time now) {
  margins(pool, of).per_token.add(now, came, forecast);
}

// By the tokens of those that still run, too: short ones end first. Until there is one nothing is known: a
// request is then as if it had one token.
double Router::mean_output() const {
  return std::max(
      1.0, static_cast<double>(generated_) / static_cast<double>(std::max<std::int64_t>(1, finished_)));
}

// On a replica of the instance.
double Router::joining(const Location& at, Time now) {
  const std::size_t place = first_[at.pool] + at.instance;
  return joining_[place].at(now, static_cast<double>(joined_[place])) / pools_[at.pool].rules.replicas;
}

// Who comes makes iterations longer for all that are there: what they were promised counts, too.
Router::Miss Router::miss(const Seat& seat, const RouteRequest& request, const Forecast& found, Time now) {
  const RequestClass& own = *request.of;
  Miss most;
  if (pools_[seat.pool].role != PoolRole::kDecode) {
    const Time first = request.waited + found.first_token;
    most.forecast = share_of(first, own.goal.ttft);
    most.surely = share_of(first + margins(seat.pool, own).first_token.at(now), own.goal.ttft);
  }
  if (pools_[seat.pool].role == PoolRole::kPrefill) return most;
  const std::vector<std::int64_t>& there = by_class_[first_[seat.pool] + seat.instance];
  double requests = 0;
  for (const std::int64_t of_class : there) requests += static_cast<double>(of_class);
  for (const RequestClass& of : classes_) {
    const bool is_there = there[&of - classes_.data()] > 0;
    if (&of != &own && !is_there) continue;
    const double share = share_of(found.per_token, of.goal.tpot);
    most.forecast = std::max(most.forecast, share);
    most.surely = std::max(
        most.surely, share_of(found.per_token + margins(seat.pool, of).per_token.at(now), of.goal.tpot));
    // An iteration is shorter without one of n by an n-th at most.
    const double without = is_there ? share * requests / (requests + 1) : 0;
    most.breaks = most.breaks || (is_there && share > 1 && without <= 1);
    most.given_up = std::max(most.given_up, without);
  }
  return most;
}

bool Router::may(const Seat& seat, const RouteRequest& request) const {
  return (request.pools & request.of->pools) >> seat.pool & 1;
}

std::optional<Location> Router::for_prompt(const RouteRequest& request, Time now) {
  return choose(prompts_, request, now);
}

std::optional<Location> Router::for_decoding(const RouteRequest& request, Time now) {
  return choose(decoding_, request, now);
}

std::optional<int> Router::next_in_turn(Side& side, const RouteRequest& request) const {
  const int count = static_cast<int>(side.seats.size());
  for (int i = 0; i < count; ++i) {
    const int at = (side.turn + i) % count;
    if (!may(side.seats[at], request)) continue;
    side.turn = (at + 1) % count;
    return at;
  }
  return std::nullopt;
}

std::optional<Location> Router::choose(Side& side, const RouteRequest& request, Time now) {
  const std::optional<int> turn = next_in_turn(side, request);
  if (!turn) return std::nullopt;
  int seat = *turn;
  switch (policy_) {
    case RouterPolicy::kRoundRobin:
      break;
    case RouterPolicy::kLeastRequests:
      seat = least(side, request, *turn, ReplicaBalance::kRequests);
      break;
    case RouterPolicy::kLeastTokens:
      seat = least(side, request, *turn, ReplicaBalance::kTokens);
      break;
    case RouterPolicy::kKvAware:
      return least_with_cache(side, request, *turn);
    case RouterPolicy::kSlaAware:
      return cheapest(side, request, *turn, now);
  }
  const Seat& chosen = side.seats[seat];
  return Location{chosen.pool, chosen.instance, instance(chosen).choose()};
}

// Of equals, the one whose turn it is.
int Router::least(const Side& side, const RouteRequest& request, int from, ReplicaBalance by) const {
  const int count = static_cast<int>(side.seats.size());
  for (const RoutedPool& pool : pools_)
    if (pool.loads != nullptr) pool.loads->refresh();
  int best = from;
  std::int64_t least = load(side.seats[from], by);
  for (int i = 1; i < count && least > 0; ++i) {
    const int at = from + i < count ? from + i : from + i - count;
    if (!may(side.seats[at], request)) continue;
    const std::int64_t load = this->load(side.seats[at], by);
    if (load < least) best = at, least = load;
  }
  return best;
}

std::int64_t Router::hit_tokens(const Seat& seat, int replica, const RouteRequest& request) const {
  if (request.block_tokens == 0 || pools_[seat.pool].role == PoolRole::kDecode) return 0;
  if (pools_[seat.pool].rules.replica.shared_tokens != request.block_tokens) return 0;
  return instance(seat).replica(replica).hit_tokens(request.chain);
}

// Before a replica with this request on it.
std::int64_t Router::tokens_at(const Seat& seat, int replica, const RouteRequest& request) const {
  return load_of(instance(seat).replica(replica).load(), ReplicaBalance::kTokens) + request.input -
         hit_tokens(seat, replica, request);
}

int Router::best_replica(const Seat& seat, const RouteRequest& request) const {
  int best = 0;
  for (int i = 1; i < instance(seat).size(); ++i)
    if (tokens_at(seat, i, request) < tokens_at(seat, best, request)) best = i;
  return best;
}

Location Router::least_with_cache(const Side& side, const RouteRequest& request, int from) const {
  const int count = static_cast<int>(side.seats.size());
  Location best;
  std::int64_t least = 0;
  for (int i = 0; i < count; ++i) {
    const Seat& seat = side.seats[(from + i) % count];
    if (!may(seat, request)) continue;
    const int replica = best_replica(seat, request);
    const std::int64_t tokens = tokens_at(seat, replica, request);
    if (best.pool >= 0 && tokens >= least) continue;
    best = {seat.pool, seat.instance, replica};
    least = tokens;
  }
  return best;
}

double Router::prompt_share(const Location& at, Time now) {
  const Time busy = instance({at.pool, at.instance}).totals().busy_with_prompts;
  return prompt_time_[first_[at.pool] + at.instance].at(now, busy.seconds());
}

Forecast Router::forecast(const Location& at, const RouteRequest& request, Time now) {
  const RoutedPool& pool = pools_[at.pool];
  const Instance& where = instance({at.pool, at.instance});
  const HostCosts& host = pool.rules.host;
  const Time way{pool.there_and_back.ns / 2};
  // Its text becomes tokens before it waits.
  const Time read = later(host.receiving(request.input), host.of_request(request.input, request.images));
  const ForecastRequest asked{
      .input = request.input,
      .cached = hit_tokens({at.pool, at.instance}, at.replica, request),
      .priority = request.of->priority,
      .images = request.encoding.ns > 0 ? 0 : request.images,
      .away = later(later(way, read), request.encoding),
      .mean_output = mean_output(),
      .arriving = arriving(at.pool, now),
      .joining = joining(at, now),
      .prompt_share = prompt_share(at, now),
  };
  Forecast forecast;
  if (pool.role != PoolRole::kDecode) forecast = forecasters_[at.pool].prompt(where, at.replica, asked, now);
  if (pool.role != PoolRole::kPrefill) {
    const Forecast tokens = forecasters_[at.pool].decode(where, at.replica, asked);
    forecast.per_token = tokens.per_token;
    forecast.token_seconds = tokens.token_seconds;
  }
  if (pool.role == PoolRole::kDecode)
    forecast.room = time_from_seconds(forecasters_[at.pool].until_room(where, at.replica, asked));
  forecasts_ = true;
  const HandOver& after = pool.hand_over;
  const double handed = after.seconds + after.per_token * static_cast<double>(request.input);
  forecast.first_token += pool.there_and_back - way + time_from_seconds(handed);
  return forecast;
}

void Router::find_places(const Side& side, const RouteRequest& request, int from, Time now) {
  const int count = static_cast<int>(side.seats.size());
  places_.clear();
  for (int i = 0; i < count; ++i) {
    const Seat& seat = side.seats[(from + i) % count];
    if (!may(seat, request)) continue;
    const Location at{seat.pool, seat.instance, best_replica(seat, request)};
    const Forecast found = forecast(at, request, now);
    const Time wait = pools_[seat.pool].role == PoolRole::kDecode ? found.room : found.first_token;
    places_.push_back({at, found, miss(seat, request, found, now), wait});
  }
}

// For how long those who are late may wait at one place while others are spared: as long as all places have
// been busy, together, on top of what the least of them would wait. A load of up to twice what all can do
// leaves no more than that over. What is more came at once: spared places would stand still while one works
// it off. A place that has nothing to do is spared for nobody.
Time Router::longest_queue(Time now) const {
  const auto busy = [&](const Place& place) {
    return instance({place.at.pool, place.at.instance}).busy_for(now);
  };
  Time all, longest = kForever;
  for (const Place& place : places_) all = later(all, busy(place));
  for (const Place& place : places_)
    longest = std::min(longest, busy(place).ns == 0 ? place.wait : later(place.wait, all));
  return longest;
}

// Of places where promises are surely kept, the cheapest; then where they are forecast to be. Who is late
// everywhere goes where it costs no one else the promise: to who is there and keeps it all the same, or else
// where those that are there miss theirs by most, so that others get below and are not all a little late, but
// not behind a wait of more than `longest` there. Who is promised no first token still goes where there is no
// queue, or where it is the shortest: the cheapest pool would take all of them, whatever it can do. What it
// costs is the same on all instances of a pool, but for what their caches have: busy or idle they are paid
// for, so that filling one before the next saves nothing, and of equals the one with most to spare is taken.
Router::Order Router::order_of(const Place& place, const RouteRequest& request, Time longest) const {
  const Miss& miss = place.miss;
  const Forecast& found = place.found;
  const bool heap = miss.given_up > 1 && place.wait > longest;
  const int grade = miss.surely <= 1 ? 0 : miss.forecast <= 1 ? 1 : !miss.breaks && !heap ? 2 : 3;
  const double seconds = found.prompt_seconds + mean_output() * found.token_seconds;
  const double cost = seconds * (priced_ ? pools_[place.at.pool].usd_per_second : 1);
  const double queue = request.of->goal.ttft.ns == 0 && found.queues ? found.first_token.seconds() : 0;
  const double given_up = grade == 2 && miss.given_up > 1 ? 1 / miss.given_up : 0;
  return {grade,
          given_up,
          grade > 0 ? miss.surely : 0,
          queue,
          cost,
          miss.surely,
          tokens_at({place.at.pool, place.at.instance}, place.at.replica, request)};
}

Location Router::cheapest(const Side& side, const RouteRequest& request, int from, Time now) {
  find_places(side, request, from, now);
  CHECK(!places_.empty(), "some place may have the request");
  const Time longest = longest_queue(now);
  const Place* best = nullptr;
  Order least;
  for (const Place& place : places_) {
    const Order order = order_of(place, request, longest);
    if (best != nullptr && order >= least) continue;
    best = &place;
    least = order;
  }
  return best->at;
}

std::optional<Time> Router::decoding_elsewhere(const RouteRequest& request, Time now) {
  std::optional<Time> least;
  for (const Seat& seat : decoding_.seats) {
    if (!may(seat, request)) continue;
    const Time found =
        forecast({seat.pool, seat.instance, best_replica(seat, request)}, request, now).per_token;
    if (!least || found < *least) least = found;
  }
  return least;
}

}  // namespace moebius
