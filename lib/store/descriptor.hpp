// Owns one file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace ddf {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(number_, o.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace ddf
