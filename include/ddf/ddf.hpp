// ddf: moves large, versioned objects from one machine to many.
#pragma once
#include <ddf/doctor.hpp>
#include <ddf/error.hpp>
#include <ddf/options.hpp>
#include <ddf/publisher.hpp>
#include <ddf/subscriber.hpp>

namespace ddf {
const char* version();   // "0.1.0"
}
