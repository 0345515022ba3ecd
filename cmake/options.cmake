# Compile options every target of the project shares, as one interface target.

set(ROCEMU_SANITIZE "" CACHE STRING
    "Sanitizers for the NIC and its tests: empty, 'address,undefined' or 'thread'")
option(ROCEMU_WERROR "Treat warnings as errors" ON)
option(ROCEMU_FUZZ "Link fuzz targets with libFuzzer (needs clang)" OFF)

add_library(rocemu_options INTERFACE)
# Results of rocemu sim are the same on every machine: no product is rounded together with a sum.
target_compile_options(rocemu_options INTERFACE -ffp-contract=off)
target_include_directories(rocemu_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(rocemu_options INTERFACE -Wall -Wextra -Wshadow -Wcast-align
                       $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
# g++ 12 sees overlapping copies in std::string's operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(rocemu_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(ROCEMU_WERROR)
  target_compile_options(rocemu_options INTERFACE -Werror)
endif()
target_compile_definitions(rocemu_options INTERFACE ROCEMU_VERSION="${PROJECT_VERSION}")

# What is loaded into somebody else's program (verbs_shim) is never built with a
# sanitizer: the program itself is not. Everything else links this as well.
add_library(rocemu_sanitizers INTERFACE)
if(ROCEMU_SANITIZE)
  target_compile_options(rocemu_sanitizers INTERFACE
    -fsanitize=${ROCEMU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(rocemu_sanitizers INTERFACE -fsanitize=${ROCEMU_SANITIZE})
  # With AddressSanitizer's instrumentation g++ takes parts of std::regex for uninitialized (GCC bug 105562).
  if(ROCEMU_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(rocemu_sanitizers INTERFACE -Wno-maybe-uninitialized)
  endif()
  # ThreadSanitizer knows no fences, and g++ warns of each. Ours order what other processes see, of which it knows nothing.
  if(ROCEMU_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(rocemu_sanitizers INTERFACE -Wno-tsan)
  endif()
endif()
