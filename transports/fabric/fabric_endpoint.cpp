#include "transports/fabric/fabric_endpoint.hpp"

#include <poll.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "lib/store/descriptor.hpp"
#include "transports/fabric/fabric_error.hpp"
#include "transports/fabric/fabric_progress.hpp"
#include "transports/fabric/process_memory.hpp"

namespace ddf {

using namespace std::chrono_literals;

namespace {
// When nothing has happened the thread waits on the provider's descriptor at once. Looking again for a while first was measured on
// two cores over tcp, both sides in one process, at 0, 50 and 200 us: 4 KiB one by one in 19, 45 and 69 us, 64 KiB in 26, 53 and 80
// (the one that looks keeps the other side from its core), 64 MiB in 25, 25 and 18 ms for 101, 104 and 170 % of a core, and 64 KiB
// every 5 ms for 1.7, 2.6 and 5.4 %. Idle and connected: 0.05 % of a core.
constexpr auto nap_first = 50us, nap_max = 1000us;   // between looks, where nothing wakes us
constexpr auto wait_max = 100ms;                     // where the provider does
constexpr auto stop_max = 2s;                        // until reads that were cut are back
constexpr std::chrono::steady_clock::duration stop_look = 10ms;      // meanwhile connections may have to be ended once more
}  // namespace

class fabric_endpoint::thread {
 public:
  thread(std::unique_ptr<fabric_handles> handles, const fabric_options& options, descriptor wake)
      : handles_(std::move(handles)), waiting_max_(options.waiting_max), wake_(std::move(wake)), progress_(*handles_, options, counts_), worker_([this] { run(); }) {}

  ~thread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    rouse();
    worker_.join();
  }

  const std::shared_ptr<fabric_handles>& handles() { return handles_; }
  fabric_counts& counts() { return counts_; }

  void submit(remote_read r, answer done) {
    std::unique_lock lock(mutex_);
    std::optional<error> no;
    if (stop_) no = error{errc::interrupted, 0, "the endpoint is being closed"};
    else if (r.into == nullptr || r.bytes == 0 || r.offset > r.into->bytes().size() || r.bytes > r.into->bytes().size() - r.offset)
      no = error{errc::invalid_argument, 0, "a read needs bytes, within the memory it reads into"};
    else if (r.peer.empty() || r.peer.size() > fabric_address_bytes_max)
      no = error{errc::invalid_argument, 0, "a peer's address has 1 to 128 bytes"};
    else if (unanswered_ >= waiting_max_)
      no = error{errc::too_large, 0, std::to_string(unanswered_) + " reads wait already; ask again when some have been answered"};
    if (no) {
      ++refused_;
      lock.unlock();
      return done(tl::unexpected(std::move(*no)));
    }
    ++unanswered_;
    submitted_.emplace_back(std::move(r), std::move(done));
    const bool asleep = std::exchange(asleep_, false);
    lock.unlock();
    if (asleep) rouse();
  }

  std::uint64_t refused() const {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

 private:
  using clock = fabric_progress::clock;

  void rouse() { ::eventfd_write(wake_.get(), 1); }

  // Moves what was submitted into the schedule. Output: whether to go on.
  bool take(clock::time_point now) {
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(submitted_);
      if (stop_) return false;
    }
    hand_over(now);
    return true;
  }

  void hand_over(clock::time_point now) {
    for (auto& [r, done] : taken_)
      progress_.add(now, std::move(r), [this, answered = std::move(done)](result<void> outcome) {
        {
          const std::lock_guard lock(mutex_);
          --unanswered_;
        }
        answered(std::move(outcome));
      });
    taken_.clear();
  }

  void run() {
    auto nap = clock::duration(nap_first);
    for (;;) {
      const auto now = clock::now();
      if (!take(now)) break;
      bool worked = progress_.look(now);
      progress_.expire(now);
      worked |= progress_.post(now);
      if (worked) {
        nap = nap_first;
        continue;
      }
      const auto next = progress_.next();
      const bool told = tells();
      if (next <= now) continue;
      const bool wakes = told || handles_->by_process;   // between processes nobody needs us, and what we do is done at once
      sleep(std::min<clock::duration>(wakes ? clock::duration(wait_max) : nap, next - now), told);
      if (!wakes) nap = std::min<clock::duration>(2 * nap, nap_max);
    }
    stop();
  }

  bool tells() const { return handles_->wait_descriptor >= 0 && !progress_.broken(); }
  bool nothing_new() { return handles_->calls.trywait(handles_->fabric, handles_->cq) == 0; }   // and the descriptor will tell of what comes

  void sleep(clock::duration longest, bool told) {
    if (told && !nothing_new()) return;
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || !submitted_.empty()) return;
      asleep_ = true;
    }
    tally(counts_.waits);
    wait(longest, told);
    const std::lock_guard lock(mutex_);
    asleep_ = false;
  }

  /// Until we are roused, or the provider has something, where it can say so.
  void wait(clock::duration longest, bool told) {
    pollfd waits[]{{wake_.get(), POLLIN, 0}, {told ? handles_->wait_descriptor : -1, POLLIN, 0}};
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(longest).count();
    const timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::ppoll(waits, 2, &limit, nullptr);
    if ((waits[0].revents & POLLIN) != 0) {
      eventfd_t roused;
      ::eventfd_read(wake_.get(), &roused);
    }
  }

  void stop() {
    auto now = clock::now();
    hand_over(now);
    progress_.stop(now);
    for (const auto end = now + stop_max; progress_.in_flight() > 0 && now < end; now = clock::now()) {
      const bool worked = progress_.look(now);
      progress_.expire(now);
      if (worked) continue;
      const bool told = tells();
      if (!told || nothing_new()) wait(std::min(told ? stop_look : clock::duration(nap_first), end - now), told);
    }
    handles_->close_endpoint();
    progress_.finish();
  }

  const std::shared_ptr<fabric_handles> handles_;
  const std::size_t waiting_max_;
  const descriptor wake_;
  fabric_counts counts_;

  mutable std::mutex mutex_;   // guards what follows
  std::vector<std::pair<remote_read, answer>> submitted_;
  std::size_t unanswered_ = 0;
  std::uint64_t refused_ = 0;
  bool stop_ = false, asleep_ = false;

  std::vector<std::pair<remote_read, answer>> taken_;   // the thread's, like all that follows
  fabric_progress progress_;
  std::thread worker_;   // last: it uses the others
};

fabric_memory::fabric_memory(std::shared_ptr<fabric_handles> handles, std::span<std::byte> bytes) : handles_(std::move(handles)), bytes_(bytes) {}

fabric_memory::~fabric_memory() {
  if (region_ != nullptr) ::fi_close(&region_->fid);
}

fabric_endpoint::fabric_endpoint(std::unique_ptr<thread> t) : thread_(std::move(t)) {}
fabric_endpoint::~fabric_endpoint() = default;

result<std::unique_ptr<fabric_endpoint>> fabric_endpoint::open(const fabric_options& options, fabric_calls& calls) {
  const auto open_handles = [&]() -> result<std::unique_ptr<fabric_handles>> {
    if (options.lane == repair_lane::shm) return fabric_handles::open_processes(calls);
    auto info = find_provider(calls, options.lane, options.local_address, options.local_port);
    if (!info) return tl::unexpected(info.error());
    return fabric_handles::open(calls, std::move(*info), std::max(1u, options.outstanding_max), std::max(1u, options.peers_max));
  };
  auto handles = open_handles();
  if (!handles) return tl::unexpected(handles.error());
  descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail(errc::too_large, "opening an endpoint", errno);
  return std::unique_ptr<fabric_endpoint>(new fabric_endpoint(std::make_unique<thread>(std::move(*handles), options, std::move(wake))));
}

std::span<const std::byte> fabric_endpoint::address() const { return thread_->handles()->address; }
const std::string& fabric_endpoint::provider() const { return thread_->handles()->provider; }

result<std::unique_ptr<fabric_memory>> fabric_endpoint::register_memory(std::span<std::byte> bytes) {
  fabric_handles& h = *thread_->handles();
  if (bytes.empty()) return fail(errc::invalid_argument, "registering no memory");
  std::unique_ptr<fabric_memory> m(new fabric_memory(thread_->handles(), bytes));
  if (h.by_process) {
    m->card_ = std::make_unique<process_card>(h.process_nonce, bytes);
    m->key_ = reinterpret_cast<std::uintptr_t>(m->card_.get());
    m->address_ = m->card_->address;
    return m;
  }
  const std::size_t key_bytes = std::min<std::size_t>(h.info->domain_attr->mr_key_size, 8);
  std::random_device random;
  int e = 0;
  for (int tries = 0; tries < 4; ++tries) {   // another one where the key is taken
    std::uint64_t key = static_cast<std::uint64_t>(random()) << 32 | random();
    if (key_bytes > 0 && key_bytes < 8) key &= (std::uint64_t{1} << (8 * key_bytes)) - 1;
    e = h.calls.mr_reg(h.domain, bytes, FI_READ | FI_REMOTE_READ, h.own_keys ? 0 : key, &m->region_);
    if (e != -FI_ENOKEY && e != -FI_EKEYREJECTED) break;
  }
  if (e == 0 && h.endpoint_memory) {
    e = ::fi_mr_bind(m->region_, &h.endpoint->fid, 0);
    if (e == 0) e = ::fi_mr_enable(m->region_);
  }
  if (e != 0) return tl::unexpected(fabric_error(h.provider, fabric_step::reg, -e));
  m->key_ = ::fi_mr_key(m->region_);
  m->address_ = h.virtual_addresses ? reinterpret_cast<std::uintptr_t>(bytes.data()) : 0;
  if (h.local_descriptors) m->descriptor_ = ::fi_mr_desc(m->region_);
  return m;
}

void fabric_endpoint::read(remote_read r, answer done) { thread_->submit(std::move(r), std::move(done)); }

fabric_endpoint::counters fabric_endpoint::count() const {
  const fabric_counts& c = thread_->counts();
  const auto get = [](const std::atomic<std::uint64_t>& n) { return n.load(std::memory_order_relaxed); };
  return {get(c.reads), get(c.read_bytes), get(c.splits), get(c.failed), get(c.timed_out), thread_->refused(), get(c.connections),
          get(c.dropped), get(c.cut), get(c.held), get(c.busy), get(c.strays), get(c.looks), get(c.waits)};
}

}  // namespace ddf
