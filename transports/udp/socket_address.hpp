// Endpoints as the system writes them.
#pragma once
#include <sys/socket.h>

#include "lib/model/endpoint.hpp"

namespace ddf {

socklen_t to_sockaddr(const endpoint& e, sockaddr_storage& out);
endpoint from_sockaddr(const sockaddr_storage& s);

}  // namespace ddf
