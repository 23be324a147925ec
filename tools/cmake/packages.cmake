# Everything ddf needs from outside. What is REQUIRED is needed by the library; the rest drops a part when missing.

find_package(tl-expected REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_path(DDF_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(DDF_ASIO_INCLUDE_DIR asio.hpp REQUIRED)
mark_as_advanced(DDF_XXHASH_INCLUDE_DIR DDF_ASIO_INCLUDE_DIR)

find_library(DDF_URING_LIBRARY uring)
find_path(DDF_URING_INCLUDE_DIR liburing.h)
mark_as_advanced(DDF_URING_LIBRARY DDF_URING_INCLUDE_DIR)
if(DDF_URING_LIBRARY AND DDF_URING_INCLUDE_DIR)
  set(DDF_HAVE_URING TRUE)
else()
  set(DDF_HAVE_URING FALSE)
endif()
