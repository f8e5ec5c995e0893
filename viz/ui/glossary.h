// What the words on the screens mean, for who is new to them.
#pragma once

#include <string>

namespace moebius::viz {

// One or two sentences; empty when the word needs none. Case does not matter.
std::string glossary(const std::string& word);

}  // namespace moebius::viz
