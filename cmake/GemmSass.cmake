# The SASS tool: gemm_sass (everything but main.cpp, for the tests) and the program sass_reader.

file(GLOB sass_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/sass_reader/*.cpp")
list(FILTER sass_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(gemm_sass STATIC ${sass_sources} "${nothing}")
target_include_directories(gemm_sass PUBLIC "${PROJECT_SOURCE_DIR}/tools/sass_reader")
target_link_libraries(gemm_sass PRIVATE gemm_options PUBLIC gemm_harness CLI11::CLI11)
if(EXISTS "${PROJECT_SOURCE_DIR}/tools/sass_reader/main.cpp")
  add_executable(sass_reader "${PROJECT_SOURCE_DIR}/tools/sass_reader/main.cpp")
  target_link_libraries(sass_reader PRIVATE gemm_options gemm_sass)
  set_target_properties(sass_reader PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endif()
