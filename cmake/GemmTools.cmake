# Programs in tools/: the SASS reader, and on the GPU the roofline's measurements.

add_subdirectory(tools/sass_reader)

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  add_subdirectory(tools/roofline)
endif()
