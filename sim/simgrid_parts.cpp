#include "sim/simgrid_parts.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/sim_executor.h"

#ifdef MOEBIUS_SIMGRID
// Of the module's; there already where it is linked in, as tests do.
extern "C" __attribute__((weak)) void moebius_make_simgrid_parts(const moebius::SimGridNeeds& needs,
                                                                 moebius::SimGridParts& parts);
#endif

namespace moebius {

#ifdef MOEBIUS_SIMGRID
namespace {

using MakeParts = void (*)(const SimGridNeeds&, SimGridParts&);

constexpr const char* kModule = "moebius-simgrid.so";

// It stays loaded: SimGrid keeps callbacks for as long as the process lives. What it takes of the simulator
// are the program's own symbols (program_symbols.txt).
MakeParts load_module() {
  void* module = dlopen(kModule, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* make = module == nullptr ? nullptr : dlsym(module, "moebius_make_simgrid_parts");
  if (make == nullptr) {
    throw run_error(fmt::format("SimGrid's driver stands in {}, which should be beside the program: {}",
                                kModule, dlerror()));
  }
  return reinterpret_cast<MakeParts>(make);
}

}  // namespace

SimGridParts make_simgrid_parts(const SimGridNeeds& needs) {
  static const MakeParts make = moebius_make_simgrid_parts ? moebius_make_simgrid_parts : load_module();
  SimGridParts parts;
  make(needs, parts);
  return parts;
}

bool has_simgrid() {
  return true;
}

std::string simgrid_version() {
  return MOEBIUS_SIMGRID;
}

#else

SimGridParts make_simgrid_parts(const SimGridNeeds&) {
  throw run_error("this build has no SimGrid: use the plain driver and the fluid or alpha-beta network");
}

bool has_simgrid() {
  return false;
}

std::string simgrid_version() {
  return "";
}

#endif

}  // namespace moebius
