#define BOOST_TEST_MODULE ddf
#include <boost/test/unit_test.hpp>

// What another process, or another endpoint of this one, reads from memory that was lent to it is ordered by messages, which
// ThreadSanitizer does not see; who reads too late finds other stamps. Only accesses inside libfabric are left out.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libfabric.so\n"; }
