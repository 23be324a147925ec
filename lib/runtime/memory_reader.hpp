// What a sender granted, read from its memory.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include "lib/model/ids.hpp"
#include "lib/runtime/lanes.hpp"
#include "lib/session/actions.hpp"

namespace ddf {

class memory_reader {
 public:
  static constexpr std::chrono::seconds deadline{4};   // less than a grant lives

  memory_reader(asio::io_context& io, lanes& open_lanes) : io_(io), lanes_(open_lanes) {}
  ~memory_reader() { *alive_ = false; }
  memory_reader(const memory_reader&) = delete;
  memory_reader& operator=(const memory_reader&) = delete;

  /// The segments, valid during the call; on the loop, never after the destructor.
  /// Errors: those of the lane; network when the stamps are not the grant's.
  using answer = std::function<void(result<std::span<const std::byte>>)>;
  void read(session_id session, const read_segments& r, const std::string& local_address, answer a);

 private:
  asio::io_context& io_;
  lanes& lanes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddf
