// The target of this source precompiles what tests include.
#include "tests/catch.h"
