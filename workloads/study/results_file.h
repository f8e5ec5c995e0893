// Results of studies in one SQLite file that stays: a row for each point with its whole report. A result is
// written in one transaction when it is there, so that whatever ends the process, the file holds whole points
// only. Tables (also in README.md):
//
//   studies(id, name, file, means)                    a row for each study that was begun on the file
//   results(key, status, report, error, cpu_s)        status: 'done' or 'failed'; report: JSON; key: key_of()
//   points(study, point, key, seed, settings)         settings: JSON, {"/json/pointer": value}
//   view study_results                                all three, joined: what queries are written against
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moebius {

class StudyClaim;

struct StudyRow {  // of `points`
  std::int64_t point = 0;
  std::string key;
  std::uint64_t seed = 1;
  std::string settings;
};

struct StudyResult {
  std::string key;
  bool done = false;
  std::string text;  // the report's JSON, or the sentence that says why there is none
  double cpu_s = 0;
};

class ResultsFile {
 public:
  // Made when it is not there. input_error for a file that is something else, or of another version.
  explicit ResultsFile(const std::string& path);
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;

  // The study by its name, file and means; what it had as points before is replaced. Returns its number. From
  // here it is this process's as long as the object lives: run_error where another one carries it out.
  std::int64_t begin_study(const std::string& name, const std::string& file, const std::string& means,
                           std::int64_t points, const std::function<StudyRow(std::int64_t)>& row);
  // Points of the study whose result is not there, by number. With `retry` failed ones count as not there.
  std::vector<std::int64_t> missing(std::int64_t study, bool retry) const;
  // Once it returns, the result stays; one that is there already, done, is kept.
  void record(const StudyResult& result);
  // In the order of points; without those that have no result.
  void for_each(std::int64_t study,
                const std::function<void(const StudyRow&, const StudyResult&)>& take) const;

 private:
  struct Connection;
  std::unique_ptr<StudyClaim> claim_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace moebius
