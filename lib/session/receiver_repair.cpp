// The receiver's side of repair: what is missing, when to ask for it, and what became of the answers.
#include "lib/session/receiver.hpp"

#include <algorithm>
#include <array>

#include "lib/session/nack_backoff.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration reorder_least = 200us;        // a gap younger than this may only be reordering
static constexpr std::uint64_t ask_window_least = 32;   // segments asked for at once, however few arrive
static constexpr std::size_t requests_max = 1 << 14;    // ranges whose answers are awaited
static constexpr std::size_t nack_datagrams_max = 8;    // per round: enough for every gap of a window

void receiver::on(time_point now, const repair_notice& n) {
  // As if we had asked for these: the answer is on its way.
  const time_point until = now + rto();
  for (const range& r : n.ranges) {
    if (!have_layout_ || r.last > layout_.segments()) return drop("inconsistent");
    std::uint64_t at = r.first;
    while (const auto gap = have_.first_gap(at, r.last)) {
      if (requests_.size() >= requests_max) return drop("too_many_gaps");   // we ask for the others in our turn
      counters_.suppressed += gap->size() - requested_.count_in(gap->first, gap->last);
      requested_.insert(gap->first, gap->last);
      requests_.push_back({now, until, *gap, false});
      at = gap->last;
    }
  }
}

duration receiver::rto() const {
  // While the first pass goes on there is no hurry, and an answer may queue behind it.
  const duration base = !at_tail() || response_ == duration(0) || group_size_ > 16 ? std::max<duration>({4 * grtt_, 4 * rtt_, 4 * response_, 20ms}) : std::max<duration>({2 * response_, 2 * rtt_, 4ms});
  return std::min<duration>(base * (1 << std::min(retries_, 6u)), 1s);
}

// Of what was asked for once only: an answer to the first of two questions looks quick to the second (Karn).
void receiver::measure_response(time_point now, const range& arrived) {
  std::array<const request*, 16> answered;
  std::size_t n = 0;
  for (std::size_t i = 0; i < std::min(requests_.size(), answered.size()); ++i)
    if (const request& r = requests_[i]; r.first_time && arrived.first <= r.segments.first && r.segments.first < arrived.last) answered[n++] = &r;
  std::ranges::sort(answered.begin(), answered.begin() + static_cast<std::ptrdiff_t>(n), {}, [](const request* r) { return r->segments.first; });   // as they came
  for (std::size_t i = 0; i < n; ++i) {
    const duration sample = now - answered[i]->sent;
    if (response_ == duration(0) || !at_tail()) response_ = sample;
    else response_ = sample < response_ ? (response_ + 3 * sample) / 4 : (3 * response_ + sample) / 4;   // the first pass made it long
  }
}

// The sender has answered all it knew of when this packet left: what we asked for a response earlier and is not here was lost
// on the way, there or back.
void receiver::repairs_drained(time_point now, std::uint64_t answer) {
  // When the packet answers one of our questions the sender knew of that, and of all earlier ones.
  const auto asked = std::ranges::find_if(requests_.rbegin(), requests_.rend(), [&](const request& r) { return r.segments.first <= answer && answer < r.segments.last; });
  const time_point known = asked != requests_.rend() ? asked->sent : now - std::max<duration>(response_ / 2, 300us);
  bool lost = false;
  while (!requests_.empty() && requests_.front().sent <= known) {
    const range r = requests_.front().segments;
    requests_.pop_front();
    const std::uint64_t missing = forget_request(r);
    lost = missing != 0 || lost;
    judge_answers(0, missing);
  }
  if (lost) arm_nack(now);
}

// A slow port drops most of a large answer: what came of it is what may be asked for at once. Nothing else paces the answers
// to one receiver, and what is dropped is charged to it.
void receiver::judge_answers(std::uint64_t arrived, std::uint64_t missing) {
  answered_ += arrived;
  unanswered_ += missing;
  const std::uint64_t asked = answered_ + unanswered_;
  if (asked < ask_window_) return;
  ask_window_ = unanswered_ > asked / 4 ? std::max<std::uint64_t>(answered_ * ask_window_ / asked, ask_window_least)
                                        : std::min<std::uint64_t>(ask_window_ + ask_window_ / 4, ask_window_most);
  answered_ = unanswered_ = 0;
}

std::uint64_t receiver::ask_limit() const {
  constexpr std::uint64_t read_ahead = 4 << 20;   // bytes: what is read needs no room in the socket
  const std::uint64_t reads = counters_.read_bytes != 0 && segment_bytes_ != 0 ? read_ahead / segment_bytes_ : 0;
  const std::uint64_t packet = (segment_bytes_ == 0 ? 1472 : segment_bytes_) * 2 + 1024;   // what a socket is charged, generously
  return std::max(reads, std::clamp<std::uint64_t>(options_.buffer_bytes / 2 / packet, 8, ask_window_));
}

void receiver::raise_horizon(time_point now, std::uint64_t horizon) {
  if (horizon > horizon_) horizon_ = horizon;
  if (settling_ < horizon_ && settle_due_ == never) {
    settling_ = horizon_;
    settle_due_ = now + std::max<duration>(reorder_least, grtt_ / 4);
  }
  if (have_.first_gap(0, horizon_)) arm_nack(now);
}

void receiver::arm_nack(time_point now) {
  if (nack_due_ != never || all_done_ || leaving_) return;
  // While the first pass goes on nobody waits for repairs: gather many gaps in one NACK. Then be quick.
  const duration most = deaf_ ? duration(0) : group_size_ > 16 ? std::max<duration>(4 * grtt_, at_tail() ? 1ms : 4ms) : !at_tail() ? std::max<duration>(grtt_ / 2, 3ms) : group_size_ <= 1 ? duration(0) : std::min<duration>(grtt_ / 4, 500us);
  const duration settle = settle_due_ == never ? duration(0) : std::max<duration>(settle_due_ - now, duration(0));
  nack_due_ = now + settle + nack_backoff(rng_.uniform(), most, group_size_);
}

bool receiver::askable(std::uint64_t segment) const {
  const std::uint32_t o = layout_.object_of_segment(segment);
  return !states_[o].hold || segment >= layout_.object(o).table_segment;
}

void receiver::expire_requests(time_point now) {
  bool expired = false;
  if (now < answered_at_ + rto()) return;   // answers still come: the others may queue behind them, here or on the way
  while (!requests_.empty() && requests_.front().expires <= now) {
    const range r = requests_.front().segments;
    requests_.pop_front();
    if (const std::uint64_t missing = forget_request(r); missing != 0) {
      expired = true;
      judge_answers(0, missing);
    }
  }
  if (expired) {
    if (counters_.segments == progress_mark_) retries_ = std::min(retries_ + 1, 6u);
    else retries_ = 0;
    progress_mark_ = counters_.segments;
    arm_nack(now);
  }
}

void receiver::send_nacks(time_point now) {
  nack_due_ = never;
  if (token_.value == 0 || !have_layout_ || all_done_ || leaving_) return;
  if (options_.multicast == multicast_use::require && group_heard_at_ == never) return;   // nothing is taken by unicast before the group was heard
  const std::uint64_t limit = ask_limit();
  const std::uint64_t end = deaf_ ? layout_.segments() : settled_;
  const time_point until = now + rto();
  nack n;
  n.session = session_;
  n.token = token_;
  n.unicast = deaf_;
  n.sequence = sequence_;
  n.received = received_;
  n.unicast_sequence = unicast_sequence_;
  std::uint64_t at = 0, asked = requested_.count();
  std::size_t datagrams = 0;
  bool any = false;
  const auto flush = [&] {
    if (n.ranges.empty()) return;
    ++counters_.nacks;
    counters_.nack_ranges += n.ranges.size();
    send(n);
    n.ranges.clear();
    ++datagrams;
    any = true;
  };
  while (asked < limit && datagrams < nack_datagrams_max) {
    const auto gap = have_.first_gap(at, end);
    if (!gap) break;
    range r = *gap;
    at = r.last;
    if (!askable(r.first)) {   // waits for its digest table: go on there
      const std::uint64_t table = layout_.object(layout_.object_of_segment(r.first)).table_segment;
      at = table;
      continue;
    }
    // A gap may reach from an object that may be asked for into one that waits.
    const std::uint32_t o = layout_.object_of_segment(r.first);
    if (r.last > layout_.object(o).last_segment) at = r.last = layout_.object(o).last_segment;
    while (const auto free = requested_.first_gap(r.first, r.last)) {
      range ask = *free;
      ask.last = std::min(ask.last, ask.first + std::min<std::uint64_t>(limit - asked, 0xffff'ffff));
      if (ask.first >= ask.last) break;
      n.ranges.push_back(ask);
      requested_.insert(ask.first, ask.last);
      requests_.push_back({now, until, ask, ask.first >= asked_up_to_});
      asked_up_to_ = std::max(asked_up_to_, ask.last);
      asked += ask.size();
      r.first = ask.last;
      if (n.ranges.size() == nack_ranges_max) flush();
      if (asked >= limit || datagrams >= nack_datagrams_max) break;
    }
  }
  flush();
  if (any) {
    if (unanswered_since_ == never) unanswered_since_ = now;
    status_due_ = now + keepalive;   // a NACK says as much as a STATUS
    status_sequence_ = sequence_;
    status_pending_ = confirm_pending_ = false;
  }
}

}  // namespace ddf
