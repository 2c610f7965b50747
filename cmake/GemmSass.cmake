# The SASS tool: gemm_sass (everything but main.cpp, for the tests) and the program sass_tool.

file(GLOB sass_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/sass_tool/*.cpp")
list(FILTER sass_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(gemm_sass STATIC ${sass_sources} "${nothing}")
target_include_directories(gemm_sass PUBLIC "${PROJECT_SOURCE_DIR}/tools/sass_tool")
target_link_libraries(gemm_sass PRIVATE gemm_options PUBLIC gemm_headers CLI11::CLI11)
if(EXISTS "${PROJECT_SOURCE_DIR}/tools/sass_tool/main.cpp")
  add_executable(sass_tool "${PROJECT_SOURCE_DIR}/tools/sass_tool/main.cpp")
  target_link_libraries(sass_tool PRIVATE gemm_options gemm_sass)
  set_target_properties(sass_tool PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endif()
