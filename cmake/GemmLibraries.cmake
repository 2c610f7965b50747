# gemm_headers: the include path that picks the backend. gemm_harness: backend-neutral. gemm_backend: one of two.
# gemm_program: command line, records and files, which only programs need (their libraries are slow to compile).

add_library(gemm_headers INTERFACE)
if(GEMM_STEPS_BACKEND STREQUAL "emulator")
  # First match wins: "ptx/memory.cuh" is the emulator's twin, "gemm/gemm.h" the common header.
  target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common/emulator/include")
endif()
target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common")
target_link_libraries(gemm_headers INTERFACE Threads::Threads fmt::fmt nlohmann_json::nlohmann_json)

# The harness itself is compiled alike for both backends, so that ccache compiles it once.
add_library(gemm_neutral_headers INTERFACE)
target_include_directories(gemm_neutral_headers INTERFACE "${PROJECT_SOURCE_DIR}/common")
target_link_libraries(gemm_neutral_headers INTERFACE Threads::Threads fmt::fmt nlohmann_json::nlohmann_json)

file(GLOB harness_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/harness/*.cpp")
set(gpu_sources ${harness_sources})
set(program_sources ${harness_sources})
list(FILTER gpu_sources INCLUDE REGEX "_gpu\\.cpp$")
list(FILTER program_sources INCLUDE REGEX "/(cli|cli_options|program|record|report|suite|timing|trace_run)\\.cpp$")
list(REMOVE_ITEM harness_sources ${gpu_sources} ${program_sources})

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/harness/*.cu"
       "${PROJECT_SOURCE_DIR}/common/ptx/*.cu")
  set(backend_sources ${gpu_sources} ${cuda_sources})
else()
  file(GLOB backend_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/emulator/*.cpp")
endif()

add_library(gemm_harness STATIC ${harness_sources})
add_library(gemm_program STATIC ${program_sources})
add_library(gemm_backend STATIC ${backend_sources})
target_link_libraries(gemm_harness PRIVATE gemm_options gemm_neutral_headers)
target_link_libraries(gemm_program PRIVATE gemm_options gemm_neutral_headers CLI11::CLI11)
target_link_libraries(gemm_backend PRIVATE gemm_options ${CMAKE_DL_LIBS})
# They call each other; CMake repeats the libraries on the link line.
target_link_libraries(gemm_harness INTERFACE gemm_headers gemm_backend)
target_link_libraries(gemm_program INTERFACE gemm_harness gemm_build_info)
target_link_libraries(gemm_backend PUBLIC gemm_headers gemm_harness)
set_target_properties(gemm_program PROPERTIES EXCLUDE_FROM_ALL ${GEMM_STEPS_SANITIZE})
# Parsing a command line is never hot, and its templates take long to optimise.
target_compile_options(gemm_program PRIVATE -O0)
if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  target_link_libraries(gemm_backend PUBLIC gemm_program)  # statistics of the rounds
  # Kernels of the harness itself run on everything the steps run on.
  target_compile_options(gemm_backend
                         PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${GEMM_GENCODE_SM80};${GEMM_GENCODE_SM90A}>")
  target_include_directories(gemm_backend SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
else()
  target_link_libraries(gemm_backend PUBLIC Boost::context)
endif()
