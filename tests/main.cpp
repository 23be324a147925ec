#define BOOST_TEST_MODULE ddf
#include <boost/test/unit_test.hpp>
