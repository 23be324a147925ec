// Assertions on our own invariants: on in every build type, never used on input from outside.
#pragma once
#include <cstdio>
#include <cstdlib>

namespace ddf::detail {
[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: ddf invariant broken: %s\n", file, line, condition);
  std::abort();
}
}  // namespace ddf::detail

#define DDF_ASSERT(condition) \
  ((condition) ? void(0) : ::ddf::detail::assertion_failed(#condition, __FILE__, __LINE__))
