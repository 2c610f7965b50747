# What a step is compiled for: its kernel.cuh declares it (gemm::Architecture in common/gemm/problem/step.h).

# Steps for every GPU from Ampere on get code for Hopper, too.
set(GEMM_GENCODE_OF_kSm80 ${GEMM_GENCODE_SM80} ${GEMM_GENCODE_SM90A})
set(GEMM_GENCODE_OF_kSm90a ${GEMM_GENCODE_SM90A})
set(GEMM_GENCODE_OF_kSm100a -gencode=arch=compute_100a,code=sm_100a)

# Sets `result` to the architecture that a kernel.cuh declares: kSm80, kSm90a or kSm100a.
function(gemm_step_architecture kernel result)
  file(STRINGS "${kernel}" lines REGEX "[.]architecture = Architecture::")
  if(NOT lines MATCHES "[.]architecture = Architecture::(kSm80|kSm90a|kSm100a)[,}]")
    string(REGEX REPLACE "^.*/(steps/)" "\\1" kernel "${kernel}")
    message(FATAL_ERROR "${kernel} does not say which GPUs it is for: its kStep must name .architecture = "
                        "Architecture::kSm80, Architecture::kSm90a or Architecture::kSm100a.")
  endif()
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
