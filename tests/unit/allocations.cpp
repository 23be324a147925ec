#include "tests/support/allocations.hpp"

#include <cstdlib>
#include <new>

static thread_local std::size_t allocated;

std::size_t ddf::test::bytes_allocated() { return allocated; }

void* operator new(std::size_t n) {
  allocated += n;
  if (void* p = std::malloc(n == 0 ? 1 : n)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {   // what std::stable_sort takes its room from
  allocated += n;
  return std::malloc(n == 0 ? 1 : n);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
