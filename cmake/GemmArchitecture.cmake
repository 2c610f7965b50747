# What a step is compiled for: gemm::Architecture of its kStep (common/gemm/problem/step.h), which its program writes into
# steps/steps.json.

# Steps for every GPU from Ampere on get code for Hopper, too.
set(GEMM_GENCODE_OF_kSm80 ${GEMM_GENCODE_SM80} ${GEMM_GENCODE_SM90A})
set(GEMM_GENCODE_OF_kSm90a ${GEMM_GENCODE_SM90A})
set(GEMM_GENCODE_OF_kSm100a -gencode=arch=compute_100a,code=sm_100a)

# Sets `result` to the architecture of the step with this kernel.cuh: kSm80, kSm90a or kSm100a. On the emulator, which needs none, a step that
# is not there yet is taken for one of the first kind.
function(gemm_step_architecture kernel result)
  get_filename_component(folder "${kernel}" DIRECTORY)
  get_filename_component(step "${folder}" NAME)
  set(described "${folder}/../steps.json")
  set(line "")
  if(EXISTS "${described}")
    file(STRINGS "${described}" line REGEX "^{\"name\": \"${step}\",")
  endif()
  if(line MATCHES "\"architecture\": \"(80|90a|100a)\"")
    set(${result} "kSm${CMAKE_MATCH_1}" PARENT_SCOPE)
  elseif(GEMM_STEPS_BACKEND STREQUAL "gpu")
    message(FATAL_ERROR "steps/steps.json does not say which GPUs ${step} is for; 'cmake --build build/emulator --target describe_steps' "
                        "writes it.")
  else()
    set(${result} kSm80 PARENT_SCOPE)
  endif()
endfunction()
