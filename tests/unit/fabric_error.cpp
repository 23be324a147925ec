// What libfabric's errors become: a code, a cause and a cure.
#include "transports/fabric/fabric_error.hpp"

#include <rdma/fi_errno.h>

#include <boost/test/unit_test.hpp>

using namespace ddf;

BOOST_AUTO_TEST_SUITE(fabric_error_)

static bool says(std::string_view provider, fabric_step step, int code, std::string_view words, int provider_code = 0) {
  const std::string_view cure = fabric_cure(provider, step, code, provider_code);
  BOOST_TEST_INFO(cure);
  return cure.find(words) != std::string_view::npos;
}

BOOST_AUTO_TEST_CASE(memory_that_may_not_be_locked_names_the_limit) {
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::reg, FI_ENOMEM, "ulimit -l"));
  BOOST_TEST(!says("tcp;ofi_rxm", fabric_step::reg, FI_ENOMEM, "ulimit -l"));   // it locks nothing
  BOOST_TEST((fabric_error("verbs;ofi_rxm", fabric_step::reg, FI_ENOMEM).code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_not_there_says_what_is_missing) {
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::find, FI_ENODATA, "ibv_devinfo"));
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::find, FI_ENODATA, "ip address"));
  BOOST_TEST((fabric_error("verbs;ofi_rxm", fabric_step::find, FI_ENODATA).code == errc::unsupported));
}

BOOST_AUTO_TEST_CASE(a_queue_too_large_for_the_device_names_the_setting) { BOOST_TEST(says("verbs;ofi_rxm", fabric_step::enable, FI_EINVAL, "FI_UNIVERSE_SIZE")); }

BOOST_AUTO_TEST_CASE(a_failed_work_completion_says_more_than_input_output_error) {
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::read, FI_EIO, "GID and MTU", 12));
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::read, FI_EIO, "key", 10));
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::read, FI_EIO, "room for requests", 13));
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::read, FI_EIO, "connection was lost", 5));
  BOOST_TEST(says("verbs;ofi_rxm", fabric_step::read, FI_EIO, "kernel log", 999));
}

BOOST_AUTO_TEST_CASE(what_became_of_a_read_is_told_apart) {
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::read, FI_ETIMEDOUT, "firewall"));
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::read, FI_ECONNREFUSED, "nobody listens"));
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::read, FI_ECANCELED, "connection was lost"));
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::read, FI_EHOSTUNREACH, "no way to the peer"));
  BOOST_TEST(says("tcp;ofi_rxm", fabric_step::read, FI_ETRUNC, "does not fit"));
  BOOST_TEST(says("process_vm_readv", fabric_step::read, ESRCH, "ended"));
  BOOST_TEST(says("process_vm_readv", fabric_step::read, EPERM, "ptrace_scope"));
  BOOST_TEST((fabric_error("process_vm_readv", fabric_step::read, EFAULT).code == errc::refused));
  BOOST_TEST((fabric_error("tcp;ofi_rxm", fabric_step::read, FI_ETIMEDOUT).code == errc::network));
}

BOOST_AUTO_TEST_CASE(the_text_has_the_provider_and_the_attempt_and_the_number_only_of_an_errno) {
  const error e = fabric_error("verbs;ofi_rxm", fabric_step::reg, FI_ENOMEM);
  BOOST_TEST(e.what.find("registering memory over verbs;ofi_rxm") == 0u);
  BOOST_TEST(e.os == FI_ENOMEM);
  BOOST_TEST(fabric_error("tcp;ofi_rxm", fabric_step::read, FI_ETRUNC).os == 0);
}

BOOST_AUTO_TEST_SUITE_END()
