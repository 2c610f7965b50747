# The libraries of the project. A missing one is named with its package in Debian and Ubuntu; with GEMM_PACKAGES_REPORT
# those that are there are named instead.

function(gemm_require package apt_package)
  find_package(${package} QUIET ${ARGN})
  if(GEMM_PACKAGES_REPORT)
    if(${package}_FOUND)
      message(STATUS "found ${apt_package}")
    endif()
  elseif(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found: install the package ${apt_package} ('apt-get install ${apt_package}') "
                        "or run 'tools/bootstrap'.")
  endif()
  set(${package}_FOUND ${${package}_FOUND} PARENT_SCOPE)
  set(${package}_VERSION ${${package}_VERSION} PARENT_SCOPE)
  set(${package}_DIR ${${package}_DIR} PARENT_SCOPE)
endfunction()

# Imported targets must be visible in every folder.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
gemm_require(CLI11 libcli11-dev)
gemm_require(fmt libfmt-dev)
gemm_require(nlohmann_json nlohmann-json3-dev)
if(GEMM_STEPS_TESTS)
  gemm_require(Catch2 catch2)
endif()
if(GEMM_STEPS_BACKEND STREQUAL "emulator")
  gemm_require(Boost libboost-context-dev CONFIG COMPONENTS context)
endif()
