// A crosscheck as one JSON object in SI units. "a" is simulated, "b" executed; errors are shares of b.
#include <nlohmann/json.hpp>

#include "workloads/crosscheck/crosscheck.h"

namespace moebius {
namespace {

using Json = nlohmann::ordered_json;

Json goal_json(double error, double limit) {
  return {{"error", error}, {"goal", limit}, {"met", error <= limit}};
}

Json structure_json(const Crosscheck& result) {
  const Comparison& c = result.comparison;
  return {{"same", result.same()},
          {"same_schedule", c.same_schedule},
          {"joined", c.joined},
          {"only_a", c.only_a},
          {"only_b", c.only_b},
          {"different_ops", c.different_ops},
          {"order_violations", c.order_violations},
          {"differences", c.first_differences}};
}

Json times_json(const Crosscheck& result) {
  const Comparison& c = result.comparison;
  Json json{{"comparable", result.comparable()},
            {"makespan_a_s", c.makespan_a.seconds()},
            {"makespan_b_s", c.makespan_b.seconds()}};
  if (!result.comparable()) return json;
  const CrosscheckGoals goals = goals_of(result.executor);
  json["makespan"] = goal_json(result.makespan_error(), goals.makespan);
  json["op_median"] = goal_json(c.median_error, goals.ops);
  return json;
}

Json kinds_json(const Comparison& comparison) {
  Json kinds = Json::object();
  for (const KindError& k : comparison.kinds)
    kinds[std::string(to_string(k.kind))] = {{"ops", k.count},  {"a_s", k.seconds_a}, {"b_s", k.seconds_b},
                                             {"bias", k.bias},  {"median", k.median}, {"p90", k.p90},
                                             {"worst", k.worst}};
  return kinds;
}

Json op_json(const PathOp& op) {
  const Shape& s = op.op.shape;
  return {{"kind", to_string(op.op.kind)},
          {"role", to_string(op.op.role)},
          {"layer", op.op.layer},
          {"fragment", op.fragment},
          {"op", op.op.index},
          {"m", s.m},
          {"n", s.n},
          {"k", s.k},
          {"payload_bytes", op.op.payload},
          {"a_s", op.a},
          {"b_s", op.b},
          {"times_a", op.times_a},
          {"times_b", op.times_b}};
}

Json path_json(const PathDifference& paths) {
  Json kinds = Json::object(), ops = Json::array();
  for (const PathShare& kind : paths.kinds)
    kinds[std::string(to_string(kind.kind))] = {{"a_s", kind.a}, {"b_s", kind.b}};
  for (const PathOp& op : paths.ops) ops.push_back(op_json(op));
  return {{"by_kind", kinds},
          {"gaps", {{"a_s", paths.gaps_a}, {"b_s", paths.gaps_b}}},
          {"ops", ops},
          {"other_ops_s", paths.rest}};
}

Json groups_json(const std::vector<GroupBytes>& groups) {
  Json rows = Json::array();
  for (const GroupBytes& row : groups)
    rows.push_back({{"group", to_string(row.role)},
                    {"ranks", row.ranks},
                    {"kind", to_string(row.kind)},
                    {"ops", row.ops},
                    {"scheduled_bytes", row.scheduled},
                    {"moved_bytes", row.moved},
                    {"agree", row.agree()}});
  return rows;
}

Json spread_json(const Spread& spread) {
  return {{"mean", spread.mean},
          {"p50", spread.p50},
          {"p90", spread.p90},
          {"p95", spread.p95},
          {"p99", spread.p99}};
}

Json loop_json(const ClosedLoop& loop) {
  Json json{{"requests", loop.requests},
            {"iterations_a", loop.simulated_iterations},
            {"iterations_b", loop.executed_iterations}};
  for (const LatencyComparison& of : loop.latencies)
    json[of.name + "_s"] = {
        {"a", spread_json(of.simulated)}, {"b", spread_json(of.executed)}, {"distance", of.distance}};
  return json;
}

}  // namespace

std::string to_json(const Crosscheck& result) {
  Json json{{"scenario", result.scenario},
            {"executor", result.executor},
            {"machine", result.machine},
            {"executions", result.executions},
            {"warm_up", result.warm_up},
            {"repeatable", result.repeatable},
            {"structure", structure_json(result)},
            {"times", times_json(result)},
            {"errors_against", "b"},
            {"by_kind", kinds_json(result.comparison)}};
  if (result.paths) json["critical_path"] = path_json(*result.paths);
  if (result.loop) json["closed_loop"] = loop_json(*result.loop);
  json["groups"] = groups_json(result.groups);
  return json.dump(2) + "\n";
}

}  // namespace moebius
