# Compilers, language standard, warnings, and the compiler launchers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# gemm_use_ccache(LANG): ccache starts the compiler, unless the user has chosen a launcher, or none.
find_program(GEMM_CCACHE ccache)
macro(gemm_use_ccache language)
  if(GEMM_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${GEMM_CCACHE}")
  endif()
endmacro()
gemm_use_ccache(CXX)
# The same for a target that reads precompiled headers: ccache must be told that it may trust them.
function(gemm_cache_precompiled target)
  if(GEMM_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL GEMM_CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "env;CCACHE_SLOPPINESS=pch_defines,time_macros;${GEMM_CCACHE}")
  endif()
endfunction()

# Asserts stay on in every build: nothing here is so hot that it would matter.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "nvcc was not found: install the CUDA Toolkit (12.4 or newer), run 'tools/bootstrap --cuda', "
                        "or use the emulator preset.")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES OFF)  # every target names its own with -gencode
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
    message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old: the CUDA Toolkit must be 12.4 or newer.")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  # In front of it stands what keeps the words of ptxas beside the object, as <object>.ptxas.log.
  gemm_use_ccache(CUDA)
  list(PREPEND CMAKE_CUDA_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_log")
endif()

# Warnings are errors for the compilers that CI has. A newer one warns of more; a reader must not be stopped by that.
# What ptxas says of a kernel (spills, serialised wgmma, setmaxnreg ignored) is always an error.
set(warnings_are_errors "")
set(nvcc_warnings_are_errors "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(warnings_are_errors -Werror)
  set(nvcc_warnings_are_errors -Werror=all-warnings)
endif()

# Flags of every kernel compilation. tools/sass compiles with those of them that influence code.
set(GEMM_NVCC_FLAGS --expt-relaxed-constexpr -lineinfo -Xptxas=-v,--warning-as-error ${nvcc_warnings_are_errors}
                    -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
# The PTX beside it is for GPUs newer than Hopper: the driver compiles it there.
set(GEMM_GENCODE_SM80 -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80)
set(GEMM_GENCODE_SM90A -gencode=arch=compute_90a,code=sm_90a)

# gemm_options: what every target of the project is compiled with.
add_library(gemm_options INTERFACE)
set(no_unroll -Wno-unknown-pragmas)  # kernels say #pragma unroll, nvcc's word
target_compile_options(
  gemm_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wno-missing-field-initializers;${no_unroll};${warnings_are_errors}>"
                         "$<$<COMPILE_LANGUAGE:CUDA>:${GEMM_NVCC_FLAGS}>")
# g++ looks for memory to use again only once it has this much: a tenth of the time where nothing is optimised. (clang does not know
# the parameter: tools/lint and .clangd leave it out.)
target_compile_options(gemm_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=262144>")
# gemm_kernel_options: what sources with kernels are compiled with, beside it. On the emulator variables without an
# initialiser hold a pattern that is no zero, so that accumulators nobody has cleared show.
add_library(gemm_kernel_options INTERFACE)
if(GEMM_STEPS_BACKEND STREQUAL "emulator")
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-ftrivial-auto-var-init=pattern GEMM_PAINTS_VARIABLES)
  if(GEMM_PAINTS_VARIABLES)
    target_compile_options(gemm_kernel_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ftrivial-auto-var-init=pattern>)
  endif()
endif()
# The emulator rounds each operation as a GPU does. Where the processor has a fused multiply-add in its baseline, the compiler
# would use it for a product and a sum of the source.
if(GEMM_STEPS_BACKEND STREQUAL "emulator" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(gemm_options INTERFACE -ffp-contract=off)
endif()
if(GEMM_STEPS_SANITIZE)
  if(NOT GEMM_STEPS_BACKEND STREQUAL "emulator")
    message(FATAL_ERROR "GEMM_STEPS_SANITIZE needs GEMM_STEPS_BACKEND=emulator: the sanitizers cannot follow a GPU.")
  endif()
  target_compile_options(gemm_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(gemm_options INTERFACE -fsanitize=address,undefined)
endif()
# Builds of the kernels that say more (GPU, common/ptx): waits that end with a message, pseudo-random delays, timelines.
foreach(feature IN ITEMS BOUNDED_WAIT JITTER TRACE)
  if(GEMM_STEPS_${feature})
    target_compile_definitions(gemm_options INTERFACE GEMM_STEPS_${feature})
  endif()
endforeach()
