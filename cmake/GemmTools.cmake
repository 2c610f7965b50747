# Programs in tools/. The SASS reader needs no backend: the emulator's build tests what it does, and the GPU build checks the
# steps with it. tools/roofline and, on the GPU, tools/sweep, tools/measuring and tools/compare --lab build their programs when they are asked for.

if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  add_subdirectory(tools/sass_reader)
  add_subdirectory(tools/roofline EXCLUDE_FROM_ALL)
  add_subdirectory(tools/sweep_program EXCLUDE_FROM_ALL)
  add_subdirectory(tools/lab_program EXCLUDE_FROM_ALL)
  add_subdirectory(tools/measuring_program EXCLUDE_FROM_ALL)
  add_subdirectory(tools/own_kernel EXCLUDE_FROM_ALL)
  add_subdirectory(tools/fit_program EXCLUDE_FROM_ALL)
  if(GEMM_RIVAL_CHECKOUT AND EXISTS "${GEMM_RIVAL_CHECKOUT}/deep_gemm/include")  # tools/rivals names one
    add_subdirectory(tools/rivals_program EXCLUDE_FROM_ALL)
  endif()
elseif(NOT GEMM_STEPS_SANITIZE)
  add_subdirectory(tools/sass_reader)
  add_subdirectory(tools/exercise_program)
  add_subdirectory(tools/page_program)
  add_subdirectory(tools/own_kernel)
  add_subdirectory(tools/sweep_program)
  add_subdirectory(tools/lab_program)
  add_subdirectory(tools/measuring_program)
  add_subdirectory(tools/fit_program)
endif()
