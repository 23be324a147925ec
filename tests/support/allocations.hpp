// Counts what operator new hands out; defined in tests/unit/allocations.cpp, for the whole program.
#pragma once
#include <cstddef>

namespace ddf::test {

/// Bytes asked of operator new by this thread so far. A difference of two calls is what happened between.
std::size_t bytes_allocated();

}  // namespace ddf::test
