# How targets are made here. Every property is set on a target, by these functions; nothing on a directory.

find_program(DDF_CCACHE ccache)
mark_as_advanced(DDF_CCACHE)

# The static library must serve consumers of every compiler, so it carries machine code beside GCC's intermediate
# code (-ffat-lto-objects). clang 14 cannot do that; its builds go without.
set(DDF_LTO_WORKS FALSE)
if(DDF_LTO)
  include(CheckIPOSupported)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    check_ipo_supported(RESULT DDF_LTO_WORKS LANGUAGES CXX)
  endif()
  if(NOT DDF_LTO_WORKS)
    message(STATUS "ddf: no link-time optimisation (needs GCC with its linker plugin)")
  endif()
endif()

# The properties of every target of ours. LTO: also optimise at link time. Warnings count for our own sources only.
function(ddf_set_up target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LTO" "" "")
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
      -Wcast-align -Wold-style-cast -Wimplicit-fallthrough -Wformat=2 -Wextra-semi
      $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op -Wno-missing-field-initializers -Wno-maybe-uninitialized>   # the last: false alarms in std::variant
      $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers -Wno-missing-braces>)
  endif()
  if(DDF_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(DDF_DEBUG_ASSERTS)
    target_compile_definitions(${target} PRIVATE DDF_DEBUG_ASSERTS=1)
  endif()
  if(DDF_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${DDF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${DDF_SANITIZE})
  endif()
  if(DDF_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(DDF_LTO_WORKS AND arg_LTO)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
    target_link_options(${target} PRIVATE -flto=auto -O2)
  elseif(DDF_LTO_WORKS)
    target_link_options(${target} PRIVATE -fno-lto)  # tests link the machine code: many programs, fast links
  endif()
  if(DDF_CCACHE AND PROJECT_IS_TOP_LEVEL)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER ${DDF_CCACHE})
  endif()
endfunction()

# What sources of ours may include beside their own folder: the repository root ("lib/model/ids.hpp"), the public
# headers (<ddf/...>), and the header-only or small libraries that even values and engines use.
add_library(ddf_common INTERFACE)
target_include_directories(ddf_common INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

function(ddf_use_packages target)
  target_link_libraries(${target} PUBLIC ddf_common tl::expected)
  target_include_directories(${target} SYSTEM PRIVATE ${DDF_XXHASH_INCLUDE_DIR} ${DDF_ZSTD_INCLUDE_DIR} ${DDF_FABRIC_INCLUDE_DIR} ${DDF_VERBS_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE XXH_INLINE_ALL=)
endfunction()

# How asio is configured, in every translation unit alike. It asks libstdc++ for aligned_alloc before it has included any
# of its headers, so that the answer would depend on what was included first, and memory of one file's malloc would
# reach another's delete.
set(DDF_ASIO_DEFINITIONS ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_HAS_STD_ALIGNED_ALLOC=1)

function(ddf_use_asio target)
  target_include_directories(${target} SYSTEM PRIVATE ${DDF_ASIO_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE ${DDF_ASIO_DEFINITIONS})
endfunction()

# ddf_add_layer(<target> <folder> [USES <target>...] [ASIO]): the sources of one folder as an OBJECT library.
# A source named *uring* needs liburing; without it the part is left out.
function(ddf_add_layer target folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "USES")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  set(uring_sources ${sources})
  list(FILTER uring_sources INCLUDE REGEX "/[^/]*uring[^/]*$")
  if(uring_sources AND NOT DDF_HAVE_URING)
    message(STATUS "ddf: no io_uring in ${folder} (install liburing-dev)")
    list(REMOVE_ITEM sources ${uring_sources})
    set(uring_sources "")
  endif()
  set(uses ${arg_USES})
  list(REMOVE_ITEM uses ASIO)

  if(NOT sources)
    message(STATUS "ddf: nothing in ${folder} yet")
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ddf_common tl::expected ${uses})
    return()
  endif()
  add_library(${target} OBJECT ${sources})
  ddf_set_up(${target} LTO)
  ddf_use_packages(${target})
  target_link_libraries(${target} PUBLIC ${uses})
  if("ASIO" IN_LIST arg_USES)
    ddf_use_asio(${target})
  endif()
  if(uring_sources)
    target_compile_definitions(${target} PRIVATE DDF_HAVE_URING=1)
    target_include_directories(${target} SYSTEM PRIVATE ${DDF_URING_INCLUDE_DIR})
    set_property(GLOBAL APPEND PROPERTY DDF_PRIVATE_LIBRARIES uring)
  endif()
endfunction()

# ddf_add_library(<target> LAYERS <target>...): the layers as one library, with the public headers.
# Also <target>_internals, for our own tools, tests and benchmarks, which may include what is inside.
function(ddf_add_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LAYERS")
  add_library(${target})
  add_library(${target}::${target} ALIAS ${target})
  foreach(layer IN LISTS arg_LAYERS)
    get_target_property(type ${layer} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer}>)
    endif()
  endforeach()
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/ddf/*.hpp ${PROJECT_SOURCE_DIR}/include/ddf/*.h)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  target_compile_features(${target} PUBLIC cxx_std_20)
  get_property(private_libraries GLOBAL PROPERTY DDF_PRIVATE_LIBRARIES)
  target_link_libraries(${target} PUBLIC tl::expected PRIVATE Threads::Threads ${private_libraries})
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
  ddf_set_up(${target} LTO)

  add_library(${target}_internals INTERFACE)
  target_link_libraries(${target}_internals INTERFACE ${target} ddf_common tl::expected fmt::fmt-header-only Threads::Threads)
  target_include_directories(${target}_internals SYSTEM INTERFACE ${DDF_XXHASH_INCLUDE_DIR} ${DDF_ASIO_INCLUDE_DIR} ${DDF_FABRIC_INCLUDE_DIR})
  target_compile_definitions(${target}_internals INTERFACE XXH_INLINE_ALL= ${DDF_ASIO_DEFINITIONS})
endfunction()
