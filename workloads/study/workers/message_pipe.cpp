#include "workloads/study/workers/message_pipe.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace moebius {

namespace {

// No report is that large: a longer one comes from someone else.
constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;

bool send_all(int socket, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

bool send_message(int socket, const std::string& message) {
  std::string framed;
  append(framed, static_cast<std::uint64_t>(message.size()));
  framed += message;
  return send_all(socket, framed.data(), framed.size());
}

std::optional<std::string> receive_message(int socket) {
  MessageBuffer buffer;
  for (;;) {
    if (std::optional<std::string> message = buffer.next()) return message;
    if (buffer.take_from(socket) == MessageBuffer::Taken::kEnd) return std::nullopt;
  }
}

MessageBuffer::Taken MessageBuffer::take_from(int socket) {
  char block[1 << 16];
  ssize_t got = 0;
  do {
    got = ::recv(socket, block, sizeof(block), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return Taken::kEnd;
  bytes_.append(block, static_cast<std::size_t>(got));
  std::uint64_t length = 0;
  if (bytes_.size() >= sizeof(length)) std::memcpy(&length, bytes_.data(), sizeof(length));
  return length > kLongest ? Taken::kEnd : Taken::kMore;
}

std::optional<std::string> MessageBuffer::next() {
  std::uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) return std::nullopt;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (bytes_.size() - sizeof(length) < length) return std::nullopt;
  std::string message = bytes_.substr(sizeof(length), length);
  bytes_.erase(0, sizeof(length) + length);
  return message;
}

}  // namespace moebius
