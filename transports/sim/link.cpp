#include "transports/sim/link.hpp"

namespace ddf::sim {

static constexpr std::uint32_t frame_bytes = 38;   // Ethernet header, check sequence, preamble and gap

static duration some_of(duration most, prng& random) {
  return std::chrono::duration_cast<duration>(std::chrono::duration<double, std::nano>(static_cast<double>(most.count()) * random.uniform()));
}

link::passage link::pass(time_point when, std::uint32_t ip_bytes, prng& random) {
  passage p;
  if (ip_bytes > options.mtu) return p.lost = loss_cause::mtu, p;
  time_point sent = when;
  if (options.rate_bytes_per_s != 0) {
    const auto rate = static_cast<double>(options.rate_bytes_per_s);
    if (seconds(backlog(when)) * rate + ip_bytes > options.queue_bytes) return p.lost = loss_cause::queue, p;
    free_at_ = std::max(free_at_, when) + from_seconds((ip_bytes + frame_bytes) / rate);
    sent = free_at_;
  }
  if (options.burst_start > 0) {
    const bool was = in_burst_;
    in_burst_ = was ? random.uniform() >= options.burst_end && when - burst_began_ < options.burst_most : random.uniform() < options.burst_start;
    if (in_burst_ && !was) burst_began_ = when;
    if (in_burst_) return p.lost = loss_cause::burst, p;
  }
  if (options.loss > 0 && random.uniform() < options.loss) return p.lost = loss_cause::random, p;
  p.out = sent + options.delay + some_of(options.jitter, random);
  if (options.reorder > 0 && random.uniform() < options.reorder) p.out += some_of(options.reorder_delay, random);
  if (options.duplicate > 0 && random.uniform() < options.duplicate) p.twice = p.out + some_of(options.delay, random);
  p.corrupt = options.corrupt > 0 && random.uniform() < options.corrupt;
  return p;
}

}  // namespace ddf::sim
