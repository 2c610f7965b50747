# The text of kernels inside the programs that run them.

# Sets `result` to the definition that puts the text of a kernel's source into the program, for the emulator, which
# learns from it what the compiler does not tell. `scope`: the namespace inside gemm; `path`: as reports name it.
function(gemm_embed_kernel file scope path result)
  file(READ "${file}" text)
  gemm_embed_text("${text}" "${scope}" "${path}" definition)
  set(${result} "${definition}" PARENT_SCOPE)
endfunction()
function(gemm_embed_text text scope path result)
  set(${result} "" PARENT_SCOPE)
  if(NOT GEMM_STEPS_BACKEND STREQUAL "emulator")
    return()
  endif()
  set(${result} "\n#include \"emulator/report/kernel_source.h\"\nnamespace source_of_${scope} {\nstatic const emulator::KernelSource kSource(\"${scope}\", \"${path}\", R\"kernel(${text})kernel\");\n}\n" PARENT_SCOPE)
endfunction()
