// One thread owns MPI: it starts it, sends, receives and ends it, so that the library need not be safe for
// threads. A message of more than kChunk bytes goes as several, whose order MPI keeps.
#include "real/mpi/mpi_transport.h"

#include <dlfcn.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 28;
enum Tag { kLast = 1, kMore = 2 };  // of the chunks of a message
// How long to look for messages without a pause, and how long to sleep then.
constexpr int kLooks = 200;
constexpr auto kNap = std::chrono::microseconds(100);

// The functions and constants of Open MPI in use, found in the library that is opened at run time.
struct MpiLibrary {
  MpiLibrary();  // run_error when it cannot be opened
  // run_error with MPI's words.
  void check(int status, const char* call) const;
  std::string version() const;  // "Open MPI 4.1.4"

  decltype(::MPI_Init_thread)* init;
  decltype(::MPI_Finalize)* finalize;
  decltype(::MPI_Comm_rank)* rank;
  decltype(::MPI_Comm_size)* size;
  decltype(::MPI_Isend)* isend;
  decltype(::MPI_Test)* test;
  decltype(::MPI_Iprobe)* iprobe;
  decltype(::MPI_Recv)* recv;
  decltype(::MPI_Get_count)* get_count;
  decltype(::MPI_Error_string)* error_string;
  decltype(::MPI_Get_library_version)* library_version;
  MPI_Comm world;
  MPI_Datatype byte;

 private:
  void* address(const char* symbol) const;
  template <class Function>
  void find(const char* symbol, Function*& pointer) const {
    pointer = reinterpret_cast<Function*>(address(symbol));
  }

  void* handle_ = nullptr;
};

// Open MPI opens parts of itself that look for its symbols in the whole process, and does not take kindly to
// going.
MpiLibrary::MpiLibrary() {
  for (const char* name : {"libmpi.so.40", "libmpi.so"}) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (handle_ != nullptr) break;
  }
  if (handle_ == nullptr) throw run_error("MPI: none of libmpi.so.40, libmpi.so can be opened");
  find("MPI_Init_thread", init);
  find("MPI_Finalize", finalize);
  find("MPI_Comm_rank", rank);
  find("MPI_Comm_size", size);
  find("MPI_Isend", isend);
  find("MPI_Test", test);
  find("MPI_Iprobe", iprobe);
  find("MPI_Recv", recv);
  find("MPI_Get_count", get_count);
  find("MPI_Error_string", error_string);
  find("MPI_Get_library_version", library_version);
  // What MPI_COMM_WORLD and MPI_BYTE are the addresses of.
  world = static_cast<MPI_Comm>(address("ompi_mpi_comm_world"));
  byte = static_cast<MPI_Datatype>(address("ompi_mpi_byte"));
}

void* MpiLibrary::address(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) throw run_error(fmt::format("libmpi has no {}: it is not Open MPI", symbol));
  return found;
}

void MpiLibrary::check(int status, const char* call) const {
  if (status == MPI_SUCCESS) return;
  std::string words(MPI_MAX_ERROR_STRING, ' ');
  int length = 0;
  error_string(status, words.data(), &length);
  throw run_error(fmt::format("MPI: {}: {}", call, words.substr(0, length)));
}

std::string MpiLibrary::version() const {
  std::string words(MPI_MAX_LIBRARY_VERSION_STRING, ' ');
  int length = 0;
  library_version(words.data(), &length);
  std::smatch match;
  const std::string all = words.substr(0, length);
  return std::regex_search(all, match, std::regex("Open MPI v([0-9.]+)")) ? "Open MPI " + match[1].str()
                                                                          : "MPI";
}

class MpiTransport : public Transport {
 public:
  MpiTransport() : thread_([this] { live(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_ || failure_; });
    if (!failure_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(failure_);
  }

  ~MpiTransport() override {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  int self() const override { return self_; }
  int count() const override { return count_; }
  std::string name() const override { return name_; }

  void send(int to, ByteString message) override {
    const std::scoped_lock lock(mutex_);
    outgoing_.push_back({to, std::move(message)});
    changed_.notify_all();
  }

  void start(Deliver deliver) override {
    const std::scoped_lock lock(mutex_);
    deliver_ = std::move(deliver);
    changed_.notify_all();
  }

 private:
  struct Outgoing {
    int to;
    ByteString message;
  };
  struct UnderWay {
    ByteString message;
    std::vector<MPI_Request> requests;
  };

  void live() {
    try {
      const MpiLibrary mpi;
      begin(mpi);
      work(mpi);
      mpi.check(mpi.finalize(), "MPI_Finalize");
    } catch (const Error&) {
      const std::scoped_lock lock(mutex_);
      if (ready_) std::terminate();  // mpirun then ends the others
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  void begin(const MpiLibrary& mpi) {
    int provided = 0;
    mpi.check(mpi.init(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    mpi.check(mpi.rank(mpi.world, &self_), "MPI_Comm_rank");
    mpi.check(mpi.size(mpi.world, &count_), "MPI_Comm_size");
    name_ = mpi.version();
    const std::scoped_lock lock(mutex_);
    ready_ = true;
    changed_.notify_all();
  }

  void work(const MpiLibrary& mpi) {
    for (int idle = 0;;) {
      const bool sent = send_outgoing(mpi), arrived = receive(mpi);
      under_way_.remove_if([&](UnderWay& message) { return has_left(mpi, message); });
      idle = sent || arrived ? 0 : idle + 1;
      std::unique_lock lock(mutex_);
      if (closing_ && outgoing_.empty() && under_way_.empty()) return;
      if (idle > kLooks) changed_.wait_for(lock, kNap, [&] { return !outgoing_.empty(); });
    }
  }

  bool send_outgoing(const MpiLibrary& mpi) {
    std::deque<Outgoing> outgoing;
    {
      const std::scoped_lock lock(mutex_);
      outgoing.swap(outgoing_);
    }
    for (Outgoing& next : outgoing) post(mpi, next);
    return !outgoing.empty();
  }

  void post(const MpiLibrary& mpi, Outgoing& next) {
    UnderWay& message = under_way_.emplace_back();
    message.message = std::move(next.message);
    const std::size_t size = message.message.size();
    for (std::size_t first = 0; first == 0 || first < size; first += kChunk) {
      const std::size_t bytes = std::min(kChunk, size - first);
      const int tag = first + bytes < size ? kMore : kLast;
      mpi.check(mpi.isend(message.message.data() + first, static_cast<int>(bytes), mpi.byte, next.to, tag,
                          mpi.world, &message.requests.emplace_back()),
                "MPI_Isend");
    }
  }

  static bool has_left(const MpiLibrary& mpi, UnderWay& message) {
    std::erase_if(message.requests, [&](MPI_Request& request) {
      int done = 0;
      mpi.check(mpi.test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
    return message.requests.empty();
  }

  bool receive(const MpiLibrary& mpi) {
    const Deliver deliver = listener();
    int there = 0;
    MPI_Status status;
    if (deliver) mpi.check(mpi.iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi.world, &there, &status), "MPI_Iprobe");
    if (there == 0) return false;
    int bytes = 0;
    mpi.check(mpi.get_count(&status, mpi.byte, &bytes), "MPI_Get_count");
    ByteString& partial = partial_[status.MPI_SOURCE];
    const std::size_t before = partial.size();
    partial.resize(before + bytes);
    mpi.check(mpi.recv(partial.data() + before, bytes, mpi.byte, status.MPI_SOURCE, status.MPI_TAG, mpi.world,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    if (status.MPI_TAG == kLast) deliver(status.MPI_SOURCE, std::exchange(partial, {}));
    return true;
  }

  Deliver listener() {
    const std::scoped_lock lock(mutex_);
    return deliver_;
  }

  // Of MPI's thread.
  std::list<UnderWay> under_way_;
  std::map<int, ByteString> partial_;  // by process: chunks so far
  // Written before ready_.
  int self_ = 0, count_ = 1;
  std::string name_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Outgoing> outgoing_;
  Deliver deliver_;
  bool ready_ = false, closing_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

bool has_mpi() {
  return true;
}

std::unique_ptr<Transport> start_mpi() {
  return std::make_unique<MpiTransport>();
}

}  // namespace moebius
