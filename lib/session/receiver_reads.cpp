// The receiver's side of repair by reading: the sender says where in its memory the segments lie that were asked for.
#include "lib/session/receiver.hpp"

#include <algorithm>

namespace ddf {

static constexpr std::size_t reads_max = 16;       // grants that are read at one time
static constexpr std::size_t released_kept = 64;

std::uint64_t receiver::forget_request(const range& r) {
  std::uint64_t missing = 0;
  std::uint64_t at = r.first;
  while (const auto free = reading_.first_gap(at, r.last)) {
    missing += requested_.erase(free->first, free->last);
    at = free->last;
  }
  return missing;
}

void receiver::on(time_point now, const grant& g) {
  if (g.receiver != options_.id || token_.value == 0) return drop("unexpected");
  if (reads_.contains(g.id)) return;   // repeated: it is being read
  if (std::ranges::find(released_, g.id) != released_.end()) return give_back(g.id);   // our RELEASE was lost
  if (!have_layout_ || !options_.reads.lanes.has(g.lane)) return give_back(g.id, "this lane was not offered");
  std::uint64_t bytes = 0;
  bool missing = false;
  for (const range& r : g.segments) {
    if (r.last > layout_.segments() || r.size() > grant_bytes_max) return drop("inconsistent");
    bytes += layout_.load_of(r.first, r.last).bytes;
    missing = missing || !have_.contains(r.first, r.last);
  }
  if (bytes > grant_bytes_max) return drop("inconsistent");
  unanswered_since_ = never;
  const bool first = counters_.read_bytes == 0;   // it shows whether reads get through: also where its bytes came by UDP meanwhile
  if ((!missing && !first) || all_done_ || leaving_) return give_back(g.id);
  if (reads_.size() >= reads_max) return drop("too_many_grants");   // the sender takes it back, or repeats it
  for (const range& r : g.segments) {
    reading_.insert(r.first, r.last);
    requested_.insert(r.first, r.last);
  }
  reads_[g.id] = g.segments;
  answered_at_ = now;
  out_.push_back(read_segments{g.id, g.lane, sender_.rail, g.fabric, g.address, g.key, bytes});
}

void receiver::handle_read(time_point now, std::uint64_t id, result<std::span<const std::byte>> r) {
  const auto it = reads_.find(id);
  if (it == reads_.end() || finished_) return;
  const std::vector<range> segments = std::move(it->second);
  reads_.erase(it);
  for (const range& s : segments) {
    reading_.erase(s.first, s.last);
    requested_.erase(s.first, s.last);
  }
  if (!r) {
    unanswered_since_ = never;   // the lane failed, not what was asked for by UDP
    give_back(id, describe(r.error()));
    return arm_nack(now);
  }
  heard_at_ = now;
  give_back(id);
  data_run run;
  run.head.flags = data_header::repair;
  const std::byte* at = r->data();
  for (const range& s : segments)
    for (std::uint64_t first = s.first; first < s.last && !finished_;) {
      // Those of one block have one size, but for its last.
      const block_extent b = layout_.block(layout_.block_of_segment(first));
      std::uint64_t last = std::min(s.last, b.last_segment);
      if (last == b.last_segment && last - first > 1) --last;
      run.head.segment = first;
      run.payloads = at;
      run.payload_bytes = run.stride = layout_.segment(first).bytes;
      run.count = static_cast<std::uint32_t>(last - first);
      counters_.read_bytes += run.bytes();
      at += run.bytes();
      if (!have_.contains(first, last)) on_segments(now, false, run);
      first = last;
    }
  if (!all_done_ && !finished_) arm_nack(now);
}

// Each at once: a place in the sender's memory waits for it.
void receiver::give_back(std::uint64_t id, const std::string& why_not) {
  send(ddf::release{session_, token_, !why_not.empty(), {id}, why_not.substr(0, reason_bytes_max)});
  if (why_not.empty() && std::ranges::find(released_, id) == released_.end()) {
    released_.push_back(id);
    if (released_.size() > released_kept) released_.pop_front();
  }
}

}  // namespace ddf
