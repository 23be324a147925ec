// The engines' source of randomness: seeded from outside, the same on every standard library.
#pragma once
#include <cstdint>

namespace ddf {

class prng {   // splitmix64; Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014)
 public:
  explicit prng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }   // in [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace ddf
