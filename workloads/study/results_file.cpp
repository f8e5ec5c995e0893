#include "workloads/study/results_file.h"

#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/study/study_claim.h"

namespace moebius {

namespace {

constexpr int kApplication = 0x4d6f6562;  // "Moeb": tells our files from others
constexpr int kFormat = 1;

constexpr const char* kNumTables = "SELECT count(*) FROM sqlite_master";
constexpr const char* kTables = R"(
CREATE TABLE studies(id INTEGER PRIMARY KEY, name TEXT NOT NULL, file TEXT NOT NULL, means TEXT NOT NULL,
                     UNIQUE(name, file, means));
CREATE TABLE results(key TEXT PRIMARY KEY, status TEXT NOT NULL CHECK(status IN ('done', 'failed')),
                     report TEXT, error TEXT, cpu_s REAL NOT NULL);
CREATE TABLE points(study INTEGER NOT NULL REFERENCES studies(id), point INTEGER NOT NULL,
                    key TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL,
                    PRIMARY KEY(study, point)) WITHOUT ROWID;
CREATE VIEW study_results AS
  SELECT studies.name AS study, point, seed, settings, status, report, error, cpu_s
  FROM points JOIN studies ON studies.id = points.study LEFT JOIN results USING(key)
  ORDER BY studies.id, point;
)";

}  // namespace

struct ResultsFile::Connection {
  std::string path;
  sqlite3* file = nullptr;

  ~Connection() { sqlite3_close(file); }
  [[noreturn]] void fail() const {
    throw run_error(fmt::format("{}: {}", path, file == nullptr ? "out of memory" : sqlite3_errmsg(file)));
  }
  void run(const char* sql) const {
    if (sqlite3_exec(file, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  void make_tables() const;
  void keep_log() const;
};

namespace {

// One SQL statement with its values; binds and columns are counted from 1 and 0, as SQLite does.
class Statement {
 public:
  Statement(sqlite3* file, const std::string& path, const char* sql) : file_(file), path_(path) {
    if (sqlite3_prepare_v2(file, sql, -1, &statement_, nullptr) != SQLITE_OK) fail();
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;

  Statement& bind(int at, std::int64_t value) { return checked(sqlite3_bind_int64(statement_, at, value)); }
  Statement& bind(int at, double value) { return checked(sqlite3_bind_double(statement_, at, value)); }
  Statement& bind(int at, const std::string& value) {
    return checked(
        sqlite3_bind_text64(statement_, at, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  Statement& bind_null(int at) { return checked(sqlite3_bind_null(statement_, at)); }

  bool row() {  // false when there is none any more
    const int state = sqlite3_step(statement_);
    if (state != SQLITE_ROW && state != SQLITE_DONE) fail();
    return state == SQLITE_ROW;
  }
  void run() {
    row();
    checked(sqlite3_reset(statement_));
  }
  std::int64_t integer(int at) const { return sqlite3_column_int64(statement_, at); }
  double number(int at) const { return sqlite3_column_double(statement_, at); }
  std::string text(int at) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    return bytes == nullptr ? "" : std::string(bytes, sqlite3_column_bytes(statement_, at));
  }

 private:
  Statement& checked(int state) {
    if (state != SQLITE_OK) fail();
    return *this;
  }
  [[noreturn]] void fail() const { throw run_error(fmt::format("{}: {}", path_, sqlite3_errmsg(file_))); }

  sqlite3* file_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
};

std::int64_t pragma(sqlite3* file, const std::string& path, const char* sql) {
  Statement statement(file, path, sql);
  return statement.row() ? statement.integer(0) : 0;
}

}  // namespace

// Another process that found the file empty, too, may have been faster: from the first statement on it waits.
void ResultsFile::Connection::make_tables() const {
  run("BEGIN IMMEDIATE");
  if (pragma(file, path, kNumTables) == 0)
    run(fmt::format("{} PRAGMA application_id = {}; PRAGMA user_version = {}", kTables, kApplication, kFormat)
            .c_str());
  run("COMMIT");
}

// Of two connections that want a log for a new file at once SQLite refuses one without its timeout: they
// would wait for each other.
void ResultsFile::Connection::keep_log() const {
  constexpr int kTries = 600;
  for (int tries = 1;; ++tries) {
    const int state = sqlite3_exec(file, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", nullptr,
                                   nullptr, nullptr);
    if (state == SQLITE_OK) return;
    if (state != SQLITE_BUSY || tries == kTries) fail();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Beside the file lies its log while it is open: what is not in the one is in the other.
ResultsFile::ResultsFile(const std::string& path) : connection_(std::make_unique<Connection>()) {
  Connection& connection = *connection_;
  connection.path = path;
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw input_error(fmt::format("{}: expected a file of results, found a directory", path));
  if (sqlite3_open(path.c_str(), &connection.file) != SQLITE_OK)
    throw input_error(fmt::format("{}: {}", path, sqlite3_errmsg(connection.file)));
  sqlite3_busy_timeout(connection.file, 60'000);
  sqlite3_stmt* probe = nullptr;
  if (sqlite3_prepare_v2(connection.file, kNumTables, -1, &probe, nullptr) != SQLITE_OK)
    throw input_error(
        fmt::format("{}: expected a file of results, found {}", path, sqlite3_errmsg(connection.file)));
  const bool read = sqlite3_step(probe) == SQLITE_ROW;
  const bool empty = read && sqlite3_column_int64(probe, 0) == 0;
  sqlite3_finalize(probe);
  if (!read) connection.fail();
  if (!empty && pragma(connection.file, path, "PRAGMA application_id") != kApplication)
    throw input_error(fmt::format("{}: expected a file of results, found another program's tables", path));
  if (const auto format = pragma(connection.file, path, "PRAGMA user_version"); !empty && format != kFormat)
    throw input_error(fmt::format("{}: results of format {}, expected {}", path, format, kFormat));
  connection.keep_log();
  if (empty) connection.make_tables();
}

ResultsFile::~ResultsFile() = default;

std::int64_t ResultsFile::begin_study(const std::string& name, const std::string& file,
                                      const std::string& means, std::int64_t points,
                                      const std::function<StudyRow(std::int64_t)>& row) {
  const Connection& at = *connection_;
  at.run("BEGIN IMMEDIATE");
  Statement(at.file, at.path, "INSERT OR IGNORE INTO studies(name, file, means) VALUES(?, ?, ?)")
      .bind(1, name)
      .bind(2, file)
      .bind(3, means)
      .run();
  Statement find(at.file, at.path, "SELECT id FROM studies WHERE name = ? AND file = ? AND means = ?");
  find.bind(1, name).bind(2, file).bind(3, means);
  CHECK(find.row(), name);
  const std::int64_t study = find.integer(0);
  claim_.reset();  // of the study before
  claim_ = std::make_unique<StudyClaim>(at.path, study);
  Statement(at.file, at.path, "DELETE FROM points WHERE study = ?").bind(1, study).run();
  Statement insert(at.file, at.path,
                   "INSERT INTO points(study, point, key, seed, settings) VALUES(?, ?, ?, ?, ?)");
  for (std::int64_t i = 0; i < points; ++i) {
    const StudyRow point = row(i);
    insert.bind(1, study).bind(2, i).bind(3, point.key);
    insert.bind(4, static_cast<std::int64_t>(point.seed)).bind(5, point.settings).run();
  }
  at.run("COMMIT");
  return study;
}

std::vector<std::int64_t> ResultsFile::missing(std::int64_t study, bool retry) const {
  const Connection& at = *connection_;
  Statement find(at.file, at.path,
                 retry ? "SELECT min(point) FROM points LEFT JOIN results USING(key) WHERE study = ? AND "
                         "(status IS NULL OR status = 'failed') GROUP BY key ORDER BY min(point)"
                       : "SELECT min(point) FROM points LEFT JOIN results USING(key) WHERE study = ? AND "
                         "status IS NULL GROUP BY key ORDER BY min(point)");
  find.bind(1, study);
  std::vector<std::int64_t> points;
  while (find.row()) points.push_back(find.integer(0));
  return points;
}

void ResultsFile::record(const StudyResult& result) {
  const Connection& at = *connection_;
  Statement insert(at.file, at.path,
                   "INSERT INTO results(key, status, report, error, cpu_s) VALUES(?, ?, ?, ?, ?) "
                   "ON CONFLICT(key) DO UPDATE SET status = excluded.status, report = excluded.report, "
                   "error = excluded.error, cpu_s = excluded.cpu_s WHERE results.status = 'failed'");
  insert.bind(1, result.key).bind(2, std::string(result.done ? "done" : "failed"));
  if (result.done)
    insert.bind(3, result.text).bind_null(4);
  else
    insert.bind_null(3).bind(4, result.text);
  insert.bind(5, result.cpu_s).run();
}

void ResultsFile::for_each(std::int64_t study,
                           const std::function<void(const StudyRow&, const StudyResult&)>& take) const {
  const Connection& at = *connection_;
  Statement find(at.file, at.path,
                 "SELECT point, key, seed, settings, status, report, error, cpu_s FROM points "
                 "JOIN results USING(key) WHERE study = ? ORDER BY point");
  find.bind(1, study);
  while (find.row()) {
    const bool done = find.text(4) == "done";
    take({find.integer(0), find.text(1), static_cast<std::uint64_t>(find.integer(2)), find.text(3)},
         {find.text(1), done, find.text(done ? 5 : 6), find.number(7)});
  }
}

}  // namespace moebius
