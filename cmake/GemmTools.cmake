# Programs in tools/: the SASS reader, and on the GPU the roofline's measurements.

add_subdirectory(tools/sass_reader)

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  file(GLOB roofline_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/roofline/*.cpp"
       "${PROJECT_SOURCE_DIR}/tools/roofline/*.cu")
  if(roofline_sources MATCHES "/main\\.")
    add_executable(roofline ${roofline_sources})
    target_compile_options(roofline PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${GEMM_GENCODE_SM80};${GEMM_GENCODE_SM90A}>")
    target_link_libraries(roofline PRIVATE gemm_options gemm_harness CLI11::CLI11)
    set_target_properties(roofline PROPERTIES LINKER_LANGUAGE CUDA RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  endif()
endif()
