// Messages of bytes over a connected socket.
#pragma once

#include <optional>
#include <string>

namespace moebius {

// Sends all of it, length first; false when the other end is gone.
bool send_message(int socket, const std::string& message);

// Waits for a whole one; nothing when the other end is gone.
std::optional<std::string> receive_message(int socket);

// What came of messages so far from a socket that others are waited for beside.
class MessageBuffer {
 public:
  enum class Taken { kMore, kEnd };

  // Reads what is there; kEnd when the other end is gone, or sends what is no message.
  Taken take_from(int socket);
  std::optional<std::string> next();  // the first whole message, once

 private:
  std::string bytes_;
};

// Values of a message, one after the other.
template <class T>
void append(std::string& message, const T& value) {
  message.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace moebius
