// One direction of a cable: what it loses, doubles, damages and delays, how fast it is and how much it queues.
#pragma once
#include <cstdint>
#include <optional>
#include "lib/model/prng.hpp"
#include "lib/model/time.hpp"

namespace ddf::sim {

using namespace std::chrono_literals;

struct link_options {
  double loss = 0;          // of packets, each on its own
  double burst_start = 0;   // Gilbert-Elliott: probability, per packet, that a bad spell begins; in it all packets are lost …
  double burst_end = 0.2;   // … until, with this probability per packet, it ends, …
  duration burst_most = 50ms;   // … or so much time has passed: few packets do not make a spell last for ever
  double duplicate = 0;
  double reorder = 0;       // probability that a packet is held back by up to `reorder_delay`
  double corrupt = 0;       // probability that one to three bits are flipped
  duration delay = 20us, jitter = 2us, reorder_delay = 200us;
  std::uint64_t rate_bytes_per_s = 1'250'000'000;   // 0: no limit
  std::uint32_t queue_bytes = 1 << 20;              // what waits for the wire; more is dropped
  std::uint32_t mtu = 1500;                         // bytes of an IP packet; larger ones vanish without a word
};

class link {
 public:
  link() = default;
  explicit link(const link_options& o) : options(o) {}

  enum class loss_cause : std::uint8_t { none, random, burst, queue, mtu };

  /// Sends one packet of `wire_bytes` at `when`. Output: when it comes out at the other end, or why it does not.
  struct passage {
    loss_cause lost = loss_cause::none;
    time_point out{};
    std::optional<time_point> twice;   // a copy
    bool corrupt = false;
  };
  passage pass(time_point when, std::uint32_t ip_bytes, prng& random);
  /// How long what is queued takes to leave.
  duration backlog(time_point now) const { return free_at_ > now ? free_at_ - now : duration(0); }

  link_options options;

 private:
  bool in_burst_ = false;
  time_point burst_began_{};
  time_point free_at_{};
};

}  // namespace ddf::sim
