# The build for WebAssembly: the modules in which the site's pages run kernels.

include(GemmKernelText)

file(GLOB GEMM_STEPS CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/steps" "${PROJECT_SOURCE_DIR}/steps/[0-9][0-9]_*")
list(SORT GEMM_STEPS)
add_subdirectory(tools/page_program)
