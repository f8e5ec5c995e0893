// Catch, whose CHECK takes the place of ours in tests, and what most of them include: it is compiled once for all.
#pragma once

#include "hw/error.h"
#undef CHECK

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>
