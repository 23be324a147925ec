// The reads of one endpoint on their way: what waits, what the provider has, what is overdue. Belongs to the endpoint's thread.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "transports/fabric/fabric_endpoint.hpp"
#include "transports/fabric/fabric_handles.hpp"
#include "transports/fabric/process_memory.hpp"

namespace ddf {

struct fabric_counts {   // written by the thread, read by anyone
  std::atomic<std::uint64_t> reads = 0, read_bytes = 0, splits = 0, failed = 0, timed_out = 0, refused = 0, connections = 0, dropped = 0, cut = 0, held = 0, busy = 0, strays = 0, looks = 0, waits = 0;
};
/// For counters with one writer: cheaper than an increment that others could interrupt.
inline void tally(std::atomic<std::uint64_t>& c, std::uint64_t n = 1) { c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }

class fabric_progress {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;

  fabric_progress(fabric_handles& handles, const fabric_options& options, fabric_counts& counts);

  void add(time_point now, remote_read r, fabric_endpoint::answer done);
  /// Gives the provider what it takes. Output: whether it took anything.
  bool post(time_point now);
  /// Takes in what ended. Output: whether anything did.
  bool look(time_point now);
  /// Answers what is overdue, ends connections that fell silent.
  void expire(time_point now);
  /// When post() or expire() have something to do, if nothing ends before.
  time_point next() const;
  std::uint32_t in_flight() const { return in_flight_; }
  bool broken() const { return broken_; }
  /// Answers what the provider has not got, and ends the connections of the rest.
  void stop(time_point now);
  /// Answers all there is left; the endpoint is closed.
  void finish();

 private:
  struct peer;
  struct transfer;
  struct range {
    std::size_t begin = 0, bytes = 0;
  };
  struct operation {
    alignas(16) std::array<std::byte, 64> provider_space;   // FI_CONTEXT2; first, its address is the context
    transfer* of = nullptr;
    range part;
  };
  struct transfer {
    remote_read r;
    fabric_endpoint::answer done;
    peer* at = nullptr;             // null: no room for its peer yet
    std::size_t given = 0;          // its bytes up to here went to the provider once
    std::vector<range> again;       // and these are to go once more
    std::uint32_t in_flight = 0;
    bool waits = false;             // is in its peer's queue, or in homeless_
    bool overdue = false;
    std::optional<error> failure;
    std::multimap<time_point, transfer*>::iterator deadline;
    std::list<transfer>::iterator self;
  };
  struct peer {
    std::string name;               // its address
    std::uint64_t handle = 0;       // the provider's name for it
    process_name process;           // instead, between processes
    bool known = false;             // has a handle
    bool connected = false;
    bool listed = false;            // is in ready_
    bool cutting = false;
    bool held = false;              // while cutting: to no effect yet
    bool spoilt = false;            // an operation failed: the connection is of no use for the next
    std::deque<transfer*> waiting;  // have something to give
    std::uint32_t in_flight = 0, transfers = 0, overdue = 0;
    time_point next_try{}, heard{}, cut_at{};
    clock::duration backoff{};
    std::list<peer*>::iterator used;   // in by_use_
  };

  peer* place(std::string_view name);
  void remove_address(peer& p);
  void enqueue(transfer& t);
  bool give(peer& p, time_point now);
  std::optional<range> next_range(const transfer& t) const;
  void ended(operation& o, int code, int provider_code, time_point now);
  void settle(transfer& t);
  void fail_waiting(peer& p, const error& e);
  void withdraw(transfer& t);
  void cut(peer& p, time_point now);
  void end_connection(peer& p);
  void after_cut(peer& p, time_point now);
  void answer(transfer& t, result<void> outcome);
  error too_late(const transfer& t) const;

  fabric_handles& h_;
  fabric_counts& counts_;
  const std::uint32_t per_peer_max_;
  const std::size_t peers_max_, piece_bytes_;
  std::vector<operation> operations_;
  std::vector<operation*> free_;
  std::list<transfer> transfers_;
  std::multimap<time_point, transfer*> deadlines_;
  std::map<std::string, peer, std::less<>> peers_;
  std::list<peer*> by_use_;          // least recently used first
  std::deque<peer*> ready_;          // have something waiting; in turns
  std::deque<transfer*> homeless_;   // their peers have no connection and there is no room for one
  std::vector<peer*> late_;          // have overdue transfers that the provider holds, or are being cut
  std::uint32_t in_flight_ = 0;
  bool stopping_ = false;
  bool broken_ = false;              // the last look at the completion queue failed
};

}  // namespace ddf
