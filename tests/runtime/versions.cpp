// Versions as users of the library meet them: publisher and followers in one process, over the loopback interface.
#include <ddf/ddf.hpp>

#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

std::string next_group() {   // apart from those of loopback.cpp
  static std::atomic<int> n{100};
  return "239.77." + std::to_string(1 + ::getpid() % 250) + "." + std::to_string(1 + n++) + ":" + std::to_string(20000 + ::getpid() % 20000);
}

std::string pattern(std::size_t n, unsigned seed) {
  std::string v(n, '\0');
  std::uint32_t x = seed * 2654435761u + 1;
  for (char& b : v) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<char>(x >> 24);
  }
  return v;
}

std::string with_change(std::string bytes, std::size_t at) {
  bytes.at(at) = static_cast<char>(bytes.at(at) + 1);
  return bytes;
}

template <class T>
std::string why(const ddf::result<T>& r) { return r ? std::string() : ddf::describe(r.error()); }

struct folder {
  fs::path path = fs::temp_directory_path() / ("ddf-versions-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path / name; }
  static inline std::atomic<int> count{0};
};

void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
void replace(const std::string& path, const std::string& bytes) {
  put(path + ".next", bytes);
  fs::rename(path + ".next", path);
}
std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

constexpr std::size_t block = 65'536;

class follower {
 public:
  explicit follower(const std::string& group, const ddf::subscriber_options& how = {}) {
    ddf::subscriber_options o = how;
    o.group = group;
    o.interfaces = {"lo"};
    o.timeout = 20s;
    o.follow = true;
    auto s = ddf::subscriber::open(o);
    BOOST_REQUIRE_MESSAGE(s, why(s));
    subscriber = std::move(*s);
    BOOST_REQUIRE(subscriber->subscribe("**", [this](std::shared_ptr<const ddf::object> got) {
      const std::lock_guard lock(mutex);
      objects.push_back(std::move(got));
      more.notify_all();
    }));
    BOOST_REQUIRE(subscriber->start());
  }
  std::shared_ptr<const ddf::object> nth(std::size_t n) {   // from 1 on
    std::unique_lock lock(mutex);
    BOOST_REQUIRE(more.wait_for(lock, 10s, [&] { return objects.size() >= n; }));
    return objects[n - 1];
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return objects.size();
  }
  ddf::report end() {
    subscriber->stop();
    return subscriber->wait();
  }
  std::mutex mutex;
  std::condition_variable more;
  std::vector<std::shared_ptr<const ddf::object>> objects;
  std::unique_ptr<ddf::subscriber> subscriber;   // goes first: it calls back
};

class sender {
 public:
  explicit sender(const std::string& group, const std::string& state = "none", unsigned keep = 0) {
    ddf::publisher_options o;
    o.group = group;
    o.interfaces = {"lo"};
    o.state_directory = state;
    o.keep = keep;
    auto p = ddf::publisher::open(o);
    BOOST_REQUIRE_MESSAGE(p, why(p));
    publisher = std::move(*p);
  }
  ddf::report memory(const std::string& name, const std::string& bytes, ddf::publish_options o = {}) {
    if (o.expect == 0) o.expect = 1;
    const std::vector<ddf::part_view> parts{{"", std::as_bytes(std::span(bytes)), 1}};
    auto t = publisher->publish(name, parts, o);
    BOOST_REQUIRE_MESSAGE(t, why(t));
    return (*t)->wait();
  }
  ddf::report path(const std::string& path, ddf::publish_options o = {}, const std::string& name = {}) {
    if (o.expect == 0) o.expect = 1;
    const std::vector<ddf::path_source> paths{{path, name}};
    auto t = publisher->publish_paths(paths, o);
    BOOST_REQUIRE_MESSAGE(t, why(t));
    return (*t)->wait();
  }
  std::unique_ptr<ddf::publisher> publisher;
};

/// Folders for what is published and what is received, one follower and one sender that remember.
struct site {
  explicit site(unsigned keep = 0) : f(group, followed(keep)), s(group, state / "publisher") {}
  ddf::subscriber_options followed(unsigned keep) const {
    ddf::subscriber_options how;
    how.output_directory = target / "out";
    how.state_directory = state / "subscriber";
    how.keep = keep;
    return how;
  }
  const std::string group = next_group();
  const folder source, target, state;
  follower f;
  sender s;
};
struct keeping_site : site {   // one version before the newest stays
  keeping_site() : site(1) {}
};

void good(const ddf::report& r) { BOOST_TEST_REQUIRE((r.outcome.code == ddf::errc::ok), ddf::describe(r.outcome)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(versions)

// Of memory that was overwritten only the digests are left: what is equal is kept, what is not goes as it is.
BOOST_AUTO_TEST_CASE(versions_from_memory_send_the_blocks_that_changed) {
  const std::string group = next_group();
  const folder state;
  follower f(group);
  sender s(group, state / "publisher");
  const std::string v1 = pattern(30 * block + 17, 1), v2 = with_change(v1, 3 * block), v3 = with_change(with_change(v2, 20 * block), 30 * block + 16);
  const ddf::report first = s.memory("w", v1);
  good(first);
  BOOST_TEST(first.objects.at(0).encoding == "whole");
  const ddf::report second = s.memory("w", v2);
  good(second);
  BOOST_TEST(second.objects.at(0).version == 2u);
  BOOST_TEST(second.objects.at(0).encoding != "whole", second.objects.at(0).encoding);
  BOOST_TEST(second.bulk.bytes < 3 * block);
  const ddf::report third = s.memory("w", v3);
  good(third);
  BOOST_TEST(third.bulk.bytes < 4 * block);
  for (std::size_t i = 1; i <= 3; ++i) {
    BOOST_TEST(f.nth(i)->version() == i);
    BOOST_TEST((text(f.nth(i)->part()) == (i == 1 ? v1 : i == 2 ? v2 : v3)));
  }
  const ddf::report got = f.end();
  good(got);
  BOOST_TEST(got.delta_bytes > 55 * block);
}

// The caller that still has the version before hands it in, and every block can be a delta.
BOOST_AUTO_TEST_CASE(memory_with_the_version_before_it_goes_as_a_delta) {
  const std::string group = next_group();
  const folder state;
  follower f(group);
  sender s(group, state / "publisher");
  const std::string v1 = pattern(30 * block + 17, 1);
  std::string v2 = v1;
  for (std::size_t at = 500; at < v2.size(); at += 9'973) v2 = with_change(v2, at);   // in every block
  good(s.memory("w", v1));
  ddf::publish_options o;
  o.previous = {{"", std::as_bytes(std::span(v1)), 1}};
  const ddf::report second = s.memory("w", v2, o);
  good(second);
  BOOST_TEST(second.objects.at(0).encoding == "delta");
  BOOST_TEST(second.bulk.bytes < block / 4);
  BOOST_TEST((text(f.nth(2)->part()) == v2));

  const std::string shorter = v1.substr(1);
  o.previous = {{"", std::as_bytes(std::span(shorter)), 1}};
  const std::vector<ddf::part_view> parts{{"", std::as_bytes(std::span(v2)), 1}};
  const auto refused = s.publisher->publish("w", parts, o);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == ddf::errc::invalid_argument));
  BOOST_TEST(refused.error().what.find("previous") != std::string::npos);
}

// A wrong word about the version before costs bytes, never a wrong object.
BOOST_AUTO_TEST_CASE(a_version_before_that_is_not_what_was_published_ends_right_all_the_same) {
  const std::string group = next_group();
  const folder state;
  follower f(group);
  sender s(group, state / "publisher");
  const std::string v1 = pattern(10 * block, 1), v2 = with_change(v1, 7), other = pattern(10 * block, 5);
  good(s.memory("w", v1));
  ddf::publish_options o;
  o.previous = {{"", std::as_bytes(std::span(other)), 1}};
  good(s.memory("w", v2, o));
  BOOST_TEST((text(f.nth(2)->part()) == v2));
}

BOOST_FIXTURE_TEST_CASE(a_file_replaced_by_a_rename_is_the_base_of_the_next, keeping_site) {
  std::string bytes = pattern(20 * block + 5, 2);
  put(source / "w", bytes);
  good(s.path(source / "w"));
  for (std::uint64_t v = 2; v <= 3; ++v) {
    for (std::size_t at = 1000 * v; at < bytes.size(); at += 10'007) bytes = with_change(bytes, at);   // in every block
    replace(source / "w", bytes);
    const ddf::report r = s.path(source / "w");
    good(r);
    BOOST_TEST(r.objects.at(0).version == v);
    BOOST_TEST(r.objects.at(0).encoding == "delta");
    BOOST_TEST(r.bulk.bytes < block);
    BOOST_TEST((get(target / "out/w") == bytes));
  }
  f.nth(3);
  const auto lease = f.subscriber->get("w", 2);
  BOOST_REQUIRE_MESSAGE(lease, why(lease));
  BOOST_TEST((*lease)->path().ends_with(".ddf-versions/w.versions/2"));
  const ddf::report got = f.end();
  BOOST_TEST(got.objects.at(2).encoding == "delta");
}

BOOST_AUTO_TEST_CASE(a_file_written_over_is_the_base_of_the_next_where_a_copy_is_kept) {
  const std::string group = next_group();
  const folder source, target, state;
  ddf::subscriber_options how;
  how.output_directory = target / "out";
  how.state_directory = state / "subscriber";
  follower f(group, how);
  std::string bytes = pattern(10 * block, 3);
  put(source / "w", bytes);
  {
    sender s(group, state / "publisher", 1);
    good(s.path(source / "w"));
  }
  for (std::size_t at = 7; at < bytes.size(); at += 30'011) bytes = with_change(bytes, at);
  put(source / "w", bytes);
  sender s(group, state / "publisher", 1);   // another process, say
  const ddf::report r = s.path(source / "w");
  good(r);
  BOOST_TEST(r.objects.at(0).encoding == "delta");
  BOOST_TEST((get(target / "out/w") == bytes));
}

BOOST_AUTO_TEST_CASE(versions_are_had_by_number_and_stay_while_they_are_held) {
  for (const bool files : {false, true}) {
    const std::string group = next_group();
    const folder target, state;
    ddf::subscriber_options how;
    if (files) how.output_directory = target / "out";
    how.state_directory = state / "subscriber";
    how.keep = 1;
    follower f(group, how);
    sender s(group, state / "publisher");
    const auto version = [](std::uint64_t v) { return "version " + std::to_string(v) + pattern(100'000, static_cast<unsigned>(v)); };
    const auto content = [&](const ddf::object& o) { return files ? get(o.path()) : text(o.part()); };
    std::shared_ptr<const ddf::object> held;
    for (std::uint64_t v = 1; v <= 4; ++v) {
      good(s.memory("dir/w", version(v)));
      f.nth(v);
      if (v == 1) held = *f.subscriber->get("dir/w", 1);
      if (v == 1) f.objects.clear(), f.objects.resize(1);
      const auto newest = f.subscriber->get("dir/w");
      BOOST_REQUIRE_MESSAGE(newest, why(newest));
      BOOST_TEST((*newest)->version() == v);
      BOOST_TEST((content(**newest) == version(v)));
      if (v > 1) {
        const auto before = f.subscriber->get("dir/w", v - 1);
        BOOST_REQUIRE_MESSAGE(before, why(before));
        BOOST_TEST((content(**before) == version(v - 1)));
      }
      BOOST_TEST((content(*held) == version(1)));
    }
    f.objects.clear();
    const auto gone = f.subscriber->get("dir/w", 2);
    BOOST_REQUIRE(!gone);
    BOOST_TEST((gone.error().code == ddf::errc::unknown_version));
    BOOST_TEST(gone.error().what.find("no version 2 here, but 4, 3") != std::string::npos, gone.error().what);
    BOOST_TEST(f.subscriber->get("other").error().what.find("no version here") != std::string::npos);
    held.reset();
    if (files) BOOST_TEST(!fs::exists(target / "out/.ddf-versions/dir/w.versions/1"));
    good(f.end());
  }
}

BOOST_FIXTURE_TEST_CASE(an_immutable_object_has_one_version, site) {
  ddf::publish_options o;
  o.expect = 1;
  o.consistent = ddf::consistency::immutable;
  put(source / "w", pattern(100'000, 1));
  good(s.path(source / "w", o));
  good(s.path(source / "w", o));   // the same again
  replace(source / "w", pattern(100'000, 2));
  const std::vector<ddf::path_source> paths{{source / "w", ""}};
  const auto t = s.publisher->publish_paths(paths, o);
  BOOST_REQUIRE(!t);
  BOOST_TEST((t.error().code == ddf::errc::refused));
  BOOST_TEST(t.error().what.find("'w' is immutable") != std::string::npos);

  // A publisher that does not know is told by the receiver.
  sender other(group);
  o.version = 9;
  const ddf::report r = other.memory("w", pattern(100'000, 3), o);
  BOOST_TEST((r.outcome.code != ddf::errc::ok));
  BOOST_TEST((get(target / "out/w") == pattern(100'000, 1)));
}

// That what was there is not read shows where it did change, against the promise: it is taken as it was.
BOOST_FIXTURE_TEST_CASE(of_an_object_that_only_grows_no_more_than_the_tail_is_read, site) {
  ddf::publish_options o;
  o.consistent = ddf::consistency::append_only;
  const std::string first = pattern(10 * block + 100, 1), tail = pattern(block, 2);
  put(source / "log", first);
  good(s.path(source / "log", o));
  replace(source / "log", with_change(first, 5) + tail);
  const ddf::report r = s.path(source / "log", o);
  good(r);
  BOOST_TEST((get(target / "out/log") == first + tail));
  BOOST_TEST(r.bulk.bytes < 3 * block);
}

BOOST_AUTO_TEST_CASE(only_where_it_is_said_to_have_changed_an_object_is_looked_at) {
  const std::string group = next_group();
  const folder state;
  follower f(group);
  sender s(group, state / "publisher");
  const std::string v1 = pattern(10 * block, 1);
  good(s.memory("w", v1));
  ddf::publish_options o;
  o.has_changed = true;
  o.changed = {{3 * block + 5, 1}};
  good(s.memory("w", with_change(with_change(v1, 3 * block + 5), 7 * block), o));
  BOOST_TEST((text(f.nth(2)->part()) == with_change(v1, 3 * block + 5)));
}

// What is said about earlier versions of an object says nothing about another that is its base.
BOOST_AUTO_TEST_CASE(growing_and_changed_places_are_not_held_against_another_object) {
  for (const bool grows : {false, true}) {
    const std::string group = next_group();
    const folder state;
    follower f(group);
    sender s(group, state / "publisher");
    const std::string base = pattern(10 * block, 1), tuned = with_change(base, 5);
    good(s.memory("base", base));
    ddf::publish_options o;
    o.base = "base@1";
    if (grows) o.consistent = ddf::consistency::append_only;
    else o.has_changed = true, o.changed = {{7 * block, 1}};
    good(s.memory("tuned", tuned, o));
    BOOST_TEST((text(f.nth(2)->part()) == tuned));
  }
}

BOOST_FIXTURE_TEST_CASE(a_version_of_another_object_is_a_base, site) {
  const std::string base = pattern(20 * block, 1);
  std::string tuned = base;
  for (std::size_t at = 3; at < tuned.size(); at += 40'009) tuned = with_change(tuned, at);
  put(source / "base", base), put(source / "tuned", tuned);
  good(s.path(source / "base", {}, "models/base"));
  ddf::publish_options o;
  o.base = "models/base@1";
  const ddf::report r = s.path(source / "tuned", o);
  good(r);
  BOOST_TEST(r.objects.at(0).encoding == "delta");
  BOOST_TEST(r.bulk.bytes < block);
  BOOST_TEST((get(target / "out/tuned") == tuned));
  BOOST_TEST((get(target / "out/models/base") == base));

  o.base = "models/base@2";
  const std::vector<ddf::path_source> paths{{source / "tuned", ""}};
  const auto unknown = s.publisher->publish_paths(paths, o);
  BOOST_REQUIRE(!unknown);
  BOOST_TEST((unknown.error().code == ddf::errc::unknown_version));
  BOOST_TEST(unknown.error().what.find("known are 1") != std::string::npos);
  for (const char* bad : {"models/base", "models/base@", "models/base@0", "models/base@1x", "@1", "../x@1"}) {
    o.base = bad;
    const auto refused = s.publisher->publish_paths(paths, o);
    BOOST_REQUIRE(!refused);
    BOOST_TEST((refused.error().code == ddf::errc::invalid_argument), bad);
  }
}

BOOST_FIXTURE_TEST_CASE(a_new_object_finds_the_one_it_resembles, site) {
  const std::string base = pattern(20 * block, 1);
  std::string tuned = base;
  for (std::size_t at = 3; at < tuned.size(); at += 1'009) tuned = with_change(tuned, at);
  put(source / "base", base), put(source / "other", pattern(20 * block, 9)), put(source / "tuned", tuned), put(source / "apart", pattern(20 * block, 77));
  good(s.path(source / "base"));
  good(s.path(source / "other"));
  const ddf::report r = s.path(source / "tuned");
  good(r);
  BOOST_TEST(r.objects.at(0).encoding == "delta");
  BOOST_TEST(r.bulk.bytes < block);
  BOOST_TEST((get(target / "out/tuned") == tuned));
  const ddf::report apart = s.path(source / "apart");
  good(apart);
  BOOST_TEST(apart.objects.at(0).encoding == "whole");
}

// Equal bytes in another form: nothing of them travels, and the form is right.
BOOST_FIXTURE_TEST_CASE(a_file_that_is_only_renamed_inside_its_folder_travels_as_blocks_kept, site) {
  fs::create_directories(source / "w");
  put(source / "w/a", pattern(3 * block, 1)), put(source / "w/b", pattern(9 * block + 1, 2));
  good(s.path(source / "w"));
  fs::rename(source / "w/b", source / "w/c");
  const ddf::report renamed = s.path(source / "w");
  good(renamed);
  BOOST_TEST(renamed.objects.at(0).encoding == "delta");
  BOOST_TEST(renamed.bulk.bytes + renamed.repair.unicast_bytes < 2000u);
  BOOST_TEST(!fs::exists(target / "out/w/b"));
  BOOST_TEST((get(target / "out/w/c") == pattern(9 * block + 1, 2)));
  fs::permissions(source / "w/c", fs::perms::owner_read);
  const ddf::report locked = s.path(source / "w");
  good(locked);
  BOOST_TEST(locked.bulk.bytes + locked.repair.unicast_bytes < 2000u);
  BOOST_TEST((fs::status(target / "out/w/c").permissions() == fs::perms::owner_read));
}

BOOST_AUTO_TEST_CASE(what_is_said_of_one_object_is_not_taken_for_several) {
  sender s(next_group());
  const folder source;
  put(source / "a", "1"), put(source / "b", "2");
  const std::vector<ddf::path_source> both{{source / "a", ""}, {source / "b", ""}}, one{{source / "a", ""}};
  ddf::publish_options o;
  o.has_changed = true;
  const auto several = s.publisher->publish_paths(both, o);
  BOOST_REQUIRE(!several);
  BOOST_TEST((several.error().code == ddf::errc::invalid_argument));
  BOOST_TEST(several.error().what.find("changed") != std::string::npos);
  const std::string bytes = "x";
  ddf::publish_options p;
  p.previous = {{"", std::as_bytes(std::span(bytes)), 1}};
  const auto files = s.publisher->publish_paths(one, p);
  BOOST_REQUIRE(!files);
  BOOST_TEST((files.error().code == ddf::errc::invalid_argument));
  BOOST_TEST(files.error().what.find("previous") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(the_plan_is_told_before_the_first_byte_and_a_dry_run_stops_there, site) {
  const std::string v1 = pattern(20 * block, 1), v2 = with_change(v1, 100);
  put(source / "w", v1);
  std::vector<ddf::plan_report> plans;
  ddf::publish_options o;
  o.on_plan = [&](const ddf::plan_report& p) { plans.push_back(p); };
  good(s.path(source / "w", o));
  BOOST_REQUIRE(plans.size() == 1u);
  BOOST_REQUIRE(plans[0].choices.size() == 1u);
  BOOST_TEST(plans[0].choices[0].holds == "nothing");
  BOOST_TEST(plans[0].choices[0].takes == "whole");
  BOOST_TEST(plans[0].group_bytes == v1.size());

  replace(source / "w", v2);
  o.dry_run = true;
  const ddf::report dry = s.path(source / "w", o);
  good(dry);
  BOOST_REQUIRE(plans.size() == 2u);
  BOOST_TEST(plans[1].choices.at(0).takes == "delta");
  BOOST_TEST(plans[1].choices.at(0).holds == "version 1");
  BOOST_TEST(plans[1].group_bytes < 1000u);
  BOOST_TEST(dry.bulk.bytes == 0u);
  BOOST_TEST((get(target / "out/w") == v1));

  o.dry_run = false;
  const ddf::report r = s.path(source / "w", o);
  good(r);
  BOOST_TEST(r.objects.at(0).version == 2u);   // the dry run took no number
  BOOST_REQUIRE(plans.size() == 3u);
  BOOST_TEST(r.plan.group_bytes == plans[2].group_bytes);
  BOOST_TEST((get(target / "out/w") == v2));
}

BOOST_AUTO_TEST_CASE(an_older_version_comes_back_also_where_the_newer_one_was_removed) {
  for (const bool removed : {false, true}) {
    const std::string group = next_group();
    const folder source, target, state;
    ddf::subscriber_options how;
    how.output_directory = target / "out";
    how.state_directory = state / "subscriber";
    how.keep = 1;
    follower f(group, how);
    sender s(group, state / "publisher");
    const std::string v1 = pattern(5 * block, 1), v2 = with_change(v1, 100);
    for (const std::string& v : {v1, v2, v1}) {
      if (removed && f.count() == 2) fs::remove(target / "out/w");
      replace(source / "w", v);
      ddf::publish_options o;
      o.deadline = 5s;
      good(s.path(source / "w", o));
      BOOST_TEST((get(target / "out/w") == v));
    }
    BOOST_TEST(f.nth(3)->version() == 3u);
  }
}

BOOST_AUTO_TEST_CASE(all_switch_together_or_none) {
  const std::string group = next_group();
  follower a(group);
  ddf::subscriber_options small;
  small.bytes_max = 150'000;
  follower b(group, small);
  sender s(group);
  ddf::publish_options o;
  o.expect = 2;
  o.commit_together = true;
  o.wait = 5s;
  good(s.memory("w", pattern(100'000, 1), o));
  BOOST_TEST(a.nth(1)->version() == 1u);
  BOOST_TEST(b.nth(1)->version() == 1u);
  o.version = 2;
  o.wait = 1s;
  const ddf::report r = s.memory("w", pattern(200'000, 2), o);   // too large for one of them
  BOOST_TEST((r.outcome.code != ddf::errc::ok));
  const ddf::report got = a.end();
  BOOST_TEST(a.count() == 1u);
  BOOST_TEST(b.count() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
