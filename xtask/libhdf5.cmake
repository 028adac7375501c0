# How well CMake optimises libhdf5 within cargo's profiles dev and test: tests are compiled in half the time, and run little longer.
# Release builds keep what libhdf5 asks for, -O3.
if("$ENV{PROFILE}" STREQUAL "debug")
  set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of the C compiler")
endif()
