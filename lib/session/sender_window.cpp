// The sender's rate loop: who clocks it, how far it may run ahead, what the group loses and how long its round trip is.
#include "lib/session/sender.hpp"

#include <algorithm>
#include <bit>

namespace ddf {

using namespace std::chrono_literals;

static constexpr std::size_t skb_overhead = 832;      // what Linux charges a socket for a packet beyond its bytes, about

void sender::confirm_progress(time_point now, member& m, std::uint64_t sequence, std::uint64_t received) {
  if (sequence > sequence_ || sequence < m.sequence) return;   // from the future: forged or confused; from the past: reordered
  if (sequence > m.sequence) m.last_progress = now;
  m.sequence = sequence;
  least_confirmed_.reset();
  m.received = std::max(m.received, received);
  if (m.in_loop) measure_window(now);
}

// From a DATA packet with the confirm flag to the STATUS that answers it at once. A later STATUS, or a NACK, has waited for
// a timer; taking those for round trips let the estimate grow with the timers that are made from it.
void sender::measure_round_trip(time_point now, std::uint64_t sequence) {
  const auto after = std::ranges::upper_bound(confirm_sent_, sequence, {}, &std::pair<std::uint64_t, time_point>::first);
  if (after == confirm_sent_.begin()) return;
  // The worst of the loop is what matters: a peak, which decays with the windows and not with the samples, of which there
  // are the more the more receivers there are.
  round_trip_peak_ = std::max(round_trip_peak_, now - std::prev(after)->second);
  grtt_ = std::clamp(std::max(grtt_, round_trip_peak_), duration(grtt_least), duration(grtt_most));
}

// When everything of a window is confirmed: what did the group lose of it in common?
void sender::measure_window(time_point) {
  if (in_loop_ == 0 || least_confirmed() < epoch_end_) return;
  std::vector<double> losses;
  for (member& m : members_) {
    if (!m.in_loop) continue;
    const std::uint64_t expected = m.sequence - m.epoch_sequence, got = m.received - m.epoch_received;
    m.loss = expected == 0 || got >= expected ? 0 : 1 - static_cast<double>(got) / static_cast<double>(expected);
    m.epoch_sequence = m.sequence;
    m.epoch_received = m.received;
    losses.push_back(m.loss);
  }
  // The lower median: one receiver behind a bad link does not slow the group, a bottleneck that half of it shares does.
  const auto middle = losses.begin() + static_cast<std::ptrdiff_t>((losses.size() - 1) / 2);
  std::ranges::nth_element(losses, middle);
  window_.window_confirmed(*middle);
  if (round_trip_peak_ > duration(0)) grtt_ = std::clamp(std::max(round_trip_peak_, std::chrono::duration_cast<duration>(grtt_ * 0.9)), duration(grtt_least), duration(grtt_most));
  round_trip_peak_ = duration(0);
  epoch_end_ = sequence_;
  confirm_every_ = std::max<std::uint64_t>(window_.packets() / 4, 1);   // half a window goes while the other half is confirmed
}

void sender::update_rate_loop(time_point now) {
  std::uint64_t cap = options_.window_packets_max;
  const std::uint64_t packet = (layout_.segments() != 0 ? layout_.segment_bytes() : options_.rails[0].datagram_bytes) + data_header::wire_size;
  cap = std::min<std::uint64_t>(cap, std::max<std::uint64_t>(options_.window_bytes_max / packet, 32));
  for (member& m : members_) {
    const bool wanted = m.state == member_state::active && m.ready && !m.prepared && !m.asks_only && !m.deaf && !m.left_loop;
    if (wanted && !m.in_loop && in_loop_ < options_.rate_loop_max) {
      m.in_loop = true;
      ++in_loop_;
      m.last_progress = now;
      least_confirmed_.reset();
      m.sequence = std::max(m.sequence, sequence_);   // nothing sent so far is waited for
      m.epoch_sequence = m.sequence;
      m.epoch_received = m.received;
    }
    if (m.in_loop) {
      // A packet is charged to the socket with its overhead and its rounding up; a quarter of the buffer is left over.
      const std::uint64_t charged = std::bit_ceil(packet) + skb_overhead;
      cap = std::min(cap, std::max<std::uint64_t>(m.buffer_bytes / charged * 3 / 4, 8));
    }
  }
  window_.set_cap(cap);
}

// Looked for again only after somebody confirmed, came or went: never per packet.
std::uint64_t sender::least_confirmed() const {
  if (!least_confirmed_) {
    std::uint64_t least = sequence_;
    for (const member& m : members_)
      if (m.in_loop) least = std::min(least, m.sequence);
    if (in_loop_ == 0) return least;
    least_confirmed_ = least;
  }
  return *least_confirmed_;
}

std::uint64_t sender::window_limit() const {
  if (in_loop_ == 0) return ~std::uint64_t(0);
  return least_confirmed() + window_.packets();
}

}  // namespace ddf
