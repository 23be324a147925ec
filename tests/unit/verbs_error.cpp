// What an RDMA device's errors become: a code, a cause and a cure.
#include "transports/verbs/verbs_error.hpp"

#include <cerrno>

#include <boost/test/unit_test.hpp>

using namespace ddf;

BOOST_AUTO_TEST_SUITE(verbs_error_)

static bool says(const error& e, std::string_view words) {
  BOOST_TEST_INFO(e.what);
  return e.what.find(words) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
  const error none = verbs_error("10.0.0.5", verbs_step::manager, ENODEV);
  BOOST_TEST(says(none, "/sys/class/infiniband"));
  BOOST_TEST(says(none, "modprobe rdma_ucm"));
  BOOST_TEST((none.code == errc::unsupported));
  const error other = verbs_error("10.0.0.5", verbs_step::find, ENODEV);
  BOOST_TEST(says(other, "10.0.0.5"));
  BOOST_TEST(says(other, "choose the interface of one"));
  BOOST_TEST((other.code == errc::unsupported));
}

BOOST_AUTO_TEST_CASE(memory_that_may_not_be_locked_names_the_limit) {
  BOOST_TEST(says(verbs_error("mlx5_0:1", verbs_step::reg, ENOMEM), "ulimit -l"));
  BOOST_TEST((verbs_error("mlx5_0:1", verbs_step::reg, ENOMEM).code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_join_that_nobody_answers_names_the_subnet_manager) {
  BOOST_TEST(says(verbs_error("mlx5_0:1", verbs_step::join, ETIMEDOUT), "subnet manager"));
  BOOST_TEST(says(verbs_error("mlx5_0:1", verbs_step::join, EINVAL), "MTU or rate"));
}

BOOST_AUTO_TEST_CASE(a_device_that_may_not_be_opened_is_refused) {
  BOOST_TEST((verbs_error("mlx5_0:1", verbs_step::open, EACCES).code == errc::refused));
  BOOST_TEST((verbs_error("10.0.0.5", verbs_step::manager, EPERM).code == errc::refused));
}

BOOST_AUTO_TEST_CASE(a_failed_completion_says_which_side_what_and_what_next) {
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", true, 4), "sending to the group by mlx5_0:1 ended in: local protection error"));
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", false, 1), "larger than the port's MTU"));
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", false, 5), "opened again"));
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", false, 20), "reset"));
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", false, 999), "status 999"));
  BOOST_TEST(says(verbs_completion_error("mlx5_0:1", false, -1), "status -1"));
}

BOOST_AUTO_TEST_SUITE_END()
