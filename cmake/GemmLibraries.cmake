# gemm_headers: the include path that picks the backend. gemm_harness: backend-neutral. gemm_backend: one of two.

add_library(gemm_headers INTERFACE)
if(GEMM_STEPS_BACKEND STREQUAL "emulator")
  # First match wins: "ptx/memory.cuh" is the emulator's twin, "gemm/gemm.h" the common header.
  target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common/emulator/include")
endif()
target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common")
target_link_libraries(gemm_headers INTERFACE Threads::Threads fmt::fmt nlohmann_json::nlohmann_json)

file(GLOB harness_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/harness/*.cpp")
set(gpu_sources ${harness_sources})
list(FILTER harness_sources EXCLUDE REGEX "_gpu\\.cpp$")
list(FILTER gpu_sources INCLUDE REGEX "_gpu\\.cpp$")

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/harness/*.cu"
       "${PROJECT_SOURCE_DIR}/common/ptx/*.cu")
  set(backend_sources ${gpu_sources} ${cuda_sources})
else()
  file(GLOB backend_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/emulator/*.cpp")
endif()

# A library needs a source; while a layer has none yet its target still exists for others to link.
set(nothing "${GEMM_GENERATED_DIR}/nothing.cpp")
if(NOT EXISTS "${nothing}")
  file(WRITE "${nothing}" "// An empty translation unit.\n")
endif()

add_library(gemm_harness STATIC ${harness_sources} "${nothing}")
add_library(gemm_backend STATIC ${backend_sources} "${nothing}")
target_link_libraries(gemm_harness PRIVATE gemm_options CLI11::CLI11)
target_link_libraries(gemm_backend PRIVATE gemm_options ${CMAKE_DL_LIBS})
# Each calls the other; CMake repeats the pair on the link line.
target_link_libraries(gemm_harness PUBLIC gemm_headers gemm_backend gemm_build_info)
target_link_libraries(gemm_backend PUBLIC gemm_headers gemm_harness)
if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  # Kernels of the harness itself run on everything the steps run on.
  target_compile_options(gemm_backend
                         PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${GEMM_GENCODE_SM80};${GEMM_GENCODE_SM90A}>")
  target_include_directories(gemm_backend SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
else()
  target_link_libraries(gemm_backend PUBLIC Boost::context)
endif()
