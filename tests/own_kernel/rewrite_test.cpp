// What tools/emulate makes of a kernel's file before the compiler sees it.
#include "rewrite.h"

#include <algorithm>
#include <string>

#include "catch.h"

namespace {

using emulate::Backend;
using emulate::Refused;
using emulate::rewrite;

const std::string kCheck = "void check_kernel(emulate::Run&) {}\n";

std::string emulated(const std::string& text) {
  return rewrite(text + kCheck, "k.cu", Backend::kEmulator);
}

std::string refusal(const std::string& text) {
  try {
    rewrite(text, "k.cu", Backend::kEmulator);
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a launch becomes a call that knows the kernel by its name and its address", "[emulator]") {
  const std::string text = emulated("__global__ void k(int);\nvoid f() { k<<<dim3(1, 2), 32>>>(7); }\n");
  CHECK(contains(text,
                 "void f() { ::emulator_cuda::configured(dim3(1, 2), 32).with([&](auto... emulator_values)"));
  CHECK(contains(text, "{ k(emulator_values...); }"));
  CHECK(contains(text, "{ return emulator_probe(k); })(7);"));
  CHECK(contains(emulated("__global__ void k(int);\nvoid f() { (*p)<<<1, 32>>>(7); }\n"),
                 "(*p) ->* ::emulator_cuda::configured(1, 32)(7);"));
}

TEST_CASE("template arguments and shifts inside a launch stay what they are", "[emulator]") {
  const std::string text = emulated(
      "template <int N> __global__ void k(int);\nvoid f() { n::k<4, (3 > 2)><<<(n + 31) >> 5, 32, "
      "g<int>(1)>>>(1 << 3); "
      "}\n");
  CHECK(contains(text, " ::emulator_cuda::configured((n + 31) >> 5, 32, g<int>(1)).with("));
  CHECK(contains(text, "{ n::k<4, (3 > 2)>(emulator_values...); }"));
  CHECK(contains(text, "; })(1 << 3);"));
}

TEST_CASE("the cast of a kernel to a void pointer goes where its parameters are needed", "[emulator]") {
  const std::string kernel = "__global__ void k(int);\n";
  CHECK(
      contains(emulated(kernel + "void f() { cudaLaunchCooperativeKernel((void *)k, 1, 32, arguments); }\n"),
               "cudaLaunchCooperativeKernel(k, 1, 32, arguments);"));
  CHECK(contains(emulated(kernel + "void f() { cudaFuncSetAttribute((void *)k, 1, 32); }\n"),
                 "((void *)k, 1, 32);"));
}

TEST_CASE("inline PTX is refused with the name of the instruction, and what to write instead", "[emulator]") {
  const auto instead = [](const std::string& instruction) {
    const std::string sentence = refusal("__global__ void k() {\n  asm volatile(\"" + instruction +
                                         " [%0];\" :: \"l\"(p));\n}\n" + kCheck);
    const std::string begin =
        "k.cu:2: the emulator does not run inline PTX, and here is '" + instruction + "'; write ";
    CHECK(sentence.rfind(begin, 0) == 0);
    return sentence.substr(std::min(begin.size(), sentence.size()));
  };
  CHECK(contains(instead("st.async.weak.shared::cluster"), "cuda::ptx::st_async"));
  CHECK(contains(instead("red.async.relaxed.cluster"), "cuda::ptx::red_async"));
  CHECK(contains(instead("red.global.add.u32"), "atomicAdd"));
  CHECK(contains(instead("tensormap.replace.tile.rank"), "cuda::ptx::tensormap_*"));
  CHECK(contains(instead("fence.proxy.tensormap::generic.acquire.gpu"), "cuda::ptx::fence*"));
  CHECK(contains(instead("bar.red.popc.u32"), "gemm::ptx::bar_red_*"));
  CHECK(contains(instead("bar.sync"), "gemm::ptx::bar_sync"));
  CHECK(contains(instead("prefetch.tensormap"), "gemm::ptx::prefetch_tensormap"));
  CHECK(contains(instead("prefetch.global.L2"), "\"ptx/prefetch.cuh\""));
  CHECK(contains(instead("cp.async.bulk.prefetch.L2.global"), "\"ptx/prefetch.cuh\""));
  CHECK(contains(instead("cp.async.bulk.shared::cluster.global"), "cuda::ptx::cp_async_bulk"));
}

TEST_CASE("comments and literals are left alone", "[emulator]") {
  const std::string text =
      "__global__ void k();\n// k<<<1, 1>>>()\nconst char* s = \"<<<>>> asm(\";\nconst char c = '\"';\n";
  CHECK(contains(emulated(text), text));
}

TEST_CASE("dynamic shared memory in a function is a reference, in a namespace an array", "[emulator]") {
  const std::string inside =
      emulated("__global__ void k() {\n  extern __shared__ __align__(1024) unsigned char memory[];\n}\n");
  CHECK(contains(inside, "unsigned char (&memory)[] = *static_cast<"));
  CHECK(!contains(inside, "extern __shared__"));
  const std::string outside = "namespace a {\nextern __shared__ float memory[];\n__global__ void k() {}\n}\n";
  CHECK(contains(emulated(outside), outside));
}

TEST_CASE("the cluster of a kernel is told behind it", "[emulator]") {
  const std::string text = emulated(
      "constexpr int kC = 2;\n__global__ void __cluster_dims__(kC, 1, 1) __launch_bounds__(128) k(int x) {\n "
      " x = 1;\n}\n");
  CHECK(contains(text,
                 "x = 1;\n} [[maybe_unused]] static const ::emulator_cuda::ClusterDims "
                 "emulator_cluster_0(\"k\", kC, 1, 1);"));
}

TEST_CASE("every line keeps its number", "[emulator]") {
  const std::string text = emulated(
      "__global__ void k() {\n  extern __shared__\n  float m[];\n}\nvoid f() { k<<<1,\n 2>>>(); }\n");
  const std::size_t begin = text.find("#line 1 \"k.cu\"\n") + 15;
  const std::size_t check = text.find("void check_kernel");
  CHECK(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                   text.begin() + static_cast<std::ptrdiff_t>(check), '\n') == 6);
}

TEST_CASE("a main is called where there is no check_kernel", "[emulator]") {
  const std::string text =
      rewrite("__global__ void k() {}\nint main() { return 0; }\n", "k.cu", Backend::kEmulator);
  CHECK(contains(text, "int emulate_main() { return 0; }"));
  CHECK(contains(text, "call_main(&::emulate_main, run)"));
}

TEST_CASE("a file for a GPU keeps its launches", "[emulator]") {
  const std::string text = "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n" + kCheck;
  CHECK(contains(rewrite(text, "k.cu", Backend::kGpu), text));
}

TEST_CASE("what cannot be emulated is one sentence", "[emulator]") {
  CHECK(refusal("int main() {}\n") == "k.cu has no kernel: no function in it is __global__.");
  CHECK(contains(refusal("__global__ void k() {}\n"),
                 "k.cu has kernels but nothing that runs them: write 'void check_kernel"));
  CHECK(refusal("__global__ void k() {\n  asm volatile(\"{\\n.reg .pred p;\\n mbarrier.try_wait.b64 p, "
                "[%0];}\" :: \"r\"(1));\n}\n" +
                kCheck) ==
        "k.cu:2: the emulator does not run inline PTX, and here is 'mbarrier.try_wait.b64'; write "
        "cuda::ptx::mbarrier_* of <cuda/ptx>.");
  CHECK(refusal("__global__ void k() {\n asm(\"frobnicate.b32 %0;\" :: \"r\"(1));\n}\n" + kCheck) ==
        "k.cu:2: the emulator does not run inline PTX, and here is 'frobnicate.b32'; the emulator has no "
        "such instruction.");
  CHECK(refusal("__global__ void k() { asm volatile(\"\" ::: \"memory\"); }\n" + kCheck).empty());
  CHECK(refusal("__global__ void k() {}\nvoid f() { k<<<1, 1; }\n" + kCheck) ==
        "k.cu:2: a launch begins with <<< but has no >>>.");
}
