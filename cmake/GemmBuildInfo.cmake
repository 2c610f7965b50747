# gemm_build_info: the commit and the day, refreshed by every build; only this one small file is compiled again when they
# change.

set(GEMM_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(build_info "${GEMM_GENERATED_DIR}/build_info.cpp")
set(write_build_info "${CMAKE_COMMAND}" "-DOUTPUT=${build_info}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}"
                     "-DBACKEND=${GEMM_STEPS_BACKEND}" -P "${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake")
add_custom_target(
  gemm_write_build_info
  COMMAND ${write_build_info}
  BYPRODUCTS "${build_info}"
  COMMENT ""
  VERBATIM)
add_library(gemm_build_info STATIC "${build_info}")
add_dependencies(gemm_build_info gemm_write_build_info)
target_include_directories(gemm_build_info PUBLIC "${PROJECT_SOURCE_DIR}/common")
target_link_libraries(gemm_build_info PRIVATE gemm_options)
