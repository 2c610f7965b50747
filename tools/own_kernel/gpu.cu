// The program around a kernel's file on a GPU: one run of its check_kernel.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "own_kernel/emulate.h"
#include "product.h"

void emulate::detail::name_next_allocation(const std::string&) {}

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {  // what follows is for the file's main
      emulate::detail::arguments_of_main.assign(argv + i + 1, argv + argc);
      break;
    }
    char* end = argv[i];
    if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) seed = std::strtoull(argv[++i], &end, 10);
    if (*end != '\0' || end == argv[i]) {
      std::fprintf(stderr, "error: on a GPU the program takes --seed NUMBER; '%s' is not that\n", argv[i]);
      return 2;
    }
  }
  try {
    int capability = 0;
    emulate::detail::check(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0),
                           "asking for the GPU");
    if (capability != 9) {
      std::fprintf(
          stderr,
          "error: the file is compiled for Hopper (compute capability 9.0), and the GPU here has %d.x\n",
          capability);
      return 2;
    }
    emulate::Run run(seed, false);
    emulate::detail::run_once(run);
    emulate::detail::check(cudaDeviceSynchronize(), "the kernel");
    emulate::detail::check(cudaGetLastError(), "a launch");
  } catch (const emulate::Mismatch& mismatch) {
    std::fprintf(stderr, "wrong result: %s\n", mismatch.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
  std::printf("one run: the results are right\n");
  return 0;
}
