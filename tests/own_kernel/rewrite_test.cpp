// What tools/emulate makes of a kernel's file before the compiler sees it.
#include "rewrite.h"

#include <algorithm>
#include <string>

#include "catch.h"

namespace {

using emulate::Refused;
using emulate::rewrite;
using emulate::rewrite_preprocessed;

const std::string kCheck = "void check_kernel(emulate::Run&) {}\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// What the preprocessor would make of it, as far as these texts need it.
std::string preprocessed(const std::string& text) {
  std::string result = replaced(rewrite(text, "k.cu"), "#line 1 \"k.cu\"", "# 1 \"k.cu\"");
  result = replaced(result, "__shared__", "__attribute__((aligned(16))) thread_local");
  return replaced(result, "__cluster_dims__(kC, 1, 1)", "__attribute__((emulator_cluster_dims(kC, 1, 1)))");
}

std::string emulated(const std::string& text) {
  return rewrite_preprocessed(preprocessed(text + kCheck));
}

std::string refusal(const std::string& text) {
  try {
    rewrite_preprocessed(preprocessed(text));
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

TEST_CASE("a cast to a void pointer writes down what kernel it is of", "[emulator]") {
  const std::string kernel = "__global__ void k(int);\n";
  CHECK(
      contains(emulated(kernel + "void f() { cudaLaunchCooperativeKernel((void *)k, 1, 32, arguments); }\n"),
               "cudaLaunchCooperativeKernel(::emulator_cuda::VoidCast<void *>() ->* k, 1, 32, arguments);"));
  CHECK(contains(emulated(kernel + "auto p = reinterpret_cast<const void*>(&k);\n"),
                 "auto p = ::emulator_cuda::VoidCast<const void*>() ->* (&k);"));
  const std::string other = "int n = sizeof(void*); void g(void*) noexcept; void h() { free((void*)(p)); }\n";
  CHECK(contains(emulated(kernel + other), other));
}

TEST_CASE("inline PTX becomes calls, with the operands of its statement", "[emulator]") {
  const std::string text = emulated(
      "__global__ void k(unsigned* p) {\n  unsigned x = 1;\n  asm volatile(\"{ .reg .pred q; setp.ne.u32 q, "
      "%1, 0;\\n\"\n"
      "    \"@q add.u32 %0, %0, %2; }\" : \"+r\"(x) : \"r\"(p[2]), \"n\"(7) : \"memory\");\n  p[0] = "
      "x;\n}\n");
  CHECK(contains(text, "auto& ptx_0 = (x);"));
  CHECK(contains(text, "auto ptx_1 = ::inline_ptx::as<::inline_ptx::u32>(p[2]);"));
  CHECK(contains(text, "constexpr auto ptx_2 = ::inline_ptx::immediate(7);"));
  CHECK(contains(text, "::inline_ptx::Compare::kNe"));
  CHECK(contains(text, "if (::inline_ptx::as<bool>(ptx_q_0)) { ::inline_ptx::set(ptx_0, ::inline_ptx::add("));
  CHECK(contains(text, "\n# 4 \"k.cu\"\n\n  p[0] = x;"));
}

TEST_CASE("operands without a comma between them are two, as nvcc takes them", "[emulator]") {
  const std::string text = emulated(
      "__global__ void k(unsigned x) { asm(\"add.u32 %0, %1, %2;\" : \"=r\"(x) : \"r\"(x)\n \"n\"(7)); }\n");
  CHECK(contains(text, "auto ptx_1 = ::inline_ptx::as<::inline_ptx::u32>(x);"));
  CHECK(contains(text, "constexpr auto ptx_2 = ::inline_ptx::immediate(7);"));
}

TEST_CASE("a member template gets the word template, which nvcc does without", "[emulator]") {
  const std::string text = emulated(
      "struct S { template <int N, bool B = (N > 2)> __attribute__((always_inline)) int next(int) const; };\n"
      "template <typename T> __global__ void k(T t, T* u) {\n  int i = t.next<3>(1) + u->next<t.limit>(2) + "
      "t.template next<1>(3);\n  if (t.limit < (i) || t.next(i) < 4) trap();\n  T::next<5>(1);\n  n::next<6>(1);\n}\n");
  CHECK(contains(text, "T::template next<5>(1);\n  n::next<6>(1);"));
  CHECK(contains(text, "t.template next<3>(1) + u->template next<t.limit>(2) + t.template next<1>(3);"));
  CHECK(contains(text, "if (t.limit < (i) || t.next(i) < 4) trap();"));
}

TEST_CASE("an instruction that the emulator has not ends the run where it is reached", "[emulator]") {
  CHECK(contains(
      emulated("__global__ void k() { int x; asm(\"vset4.u32.u32.eq %0, 1, 2, 3;\" : \"=r\"(x)); }\n"),
      "{ ::inline_ptx::untranslated(\"vset4.u32.u32.eq\", ::emulator::Where::here()); }"));
  CHECK(contains(emulated("__global__ void k() { asm(\"mov.u32 %%envreg0, 1;\"); }\n"),
                 "untranslated(\"the operand %%envreg0\""));
}

TEST_CASE("assembly of the host and names of declarations stay", "[emulator]") {
  const std::string text =
      "__global__ void k() {}\nint f() __asm__(\"g.h\");\nvoid h() { asm volatile(\"pause\" ::: \"memory\"); "
      "}\n";
  CHECK(contains(emulated(text), "__asm__(\"g.h\");"));
  CHECK(contains(emulated(text), "asm volatile(\"pause\" ::: \"memory\");"));
}

TEST_CASE("what system headers have is left alone", "[emulator]") {
  CHECK(contains(rewrite_preprocessed("# 1 \"/usr/x.h\" 1 3\nvoid f() { asm(\"trap;\"); }\n# 2 \"k.cu\" "
                                      "2\nvoid g() { asm(\"trap;\"); }\n"),
                 "void f() { asm(\"trap;\"); }"));
}

TEST_CASE("the statements of inline PTX are listed with what is not known of them", "[emulator]") {
  const std::string list = emulate::list_ptx(
      "# 1 \"k.cu\"\nvoid f(int x) {\n asm(\"add.u32 %0, %0, 1; trap;\" : \"+r\"(x));\n\n "
      "asm(\"vset4.u32.u32.eq %0, 1, 2, 3;\" : \"=r\"(x));\n}\n");
  CHECK(list == "k.cu:2: add.u32, trap\nk.cu:4: vset4.u32.u32.eq   not known: vset4.u32.u32.eq\n");
}

TEST_CASE("a kernel called gemm steps aside for the namespace of that name", "[emulator]") {
  const std::string text = emulated(
      "namespace gemm { int a; }\n__global__ void gemm(int);\nvoid f() { gemm<<<1, 1>>>(gemm::a); "
      "n::gemm(1); }\n");
  CHECK(contains(text, "namespace gemm { int a; }\n__global__ void gemm_(int);"));
  CHECK(contains(text, "{ gemm_(emulator_values...); }"));
  CHECK(contains(text, "(gemm::a); n::gemm_(1);"));
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
  const std::string outside =
      "namespace a {\nextern __attribute__((aligned(16))) thread_local float memory[];\n__global__ void k() "
      "{}\n}\n";
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
  const std::size_t begin = text.find("# 1 \"k.cu\"\n") + 11;
  const std::size_t check = text.find("void check_kernel");
  CHECK(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                   text.begin() + static_cast<std::ptrdiff_t>(check), '\n') == 6);
}

TEST_CASE("a cluster of template parameters is told by the kernel", "[emulator]") {
  const std::string text =
      emulated("template <int kC> __global__ void __cluster_dims__(kC, 1, 1) k(int x) {\n  x = 1;\n}\n");
  CHECK(
      contains(text, "k(int x) { ::emulator_cuda::declare_cluster(kC, 1, 1);\n  x = 1;\n} [[maybe_unused]]"));
  CHECK(contains(text, "emulator_cluster_0(\"k\");"));
}

TEST_CASE("dynamic shared memory may have more than one dimension", "[emulator]") {
  CHECK(contains(emulated("__global__ void k() {\n  extern __shared__ float m[][32];\n}\n"),
                 "float (&m)[][32] = *static_cast<"));
}

TEST_CASE("a main is called where there is no check_kernel", "[emulator]") {
  const std::string text = rewrite("__global__ void k() {}\nint main() { return 0; }\n", "k.cu");
  CHECK(contains(text, "int emulate_main() { return 0;  return 0; }"));
  CHECK(contains(text, "call_main(&::emulate_main, run)"));
}

TEST_CASE("a file for a GPU keeps its launches", "[emulator]") {
  const std::string text = "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n" + kCheck;
  CHECK(contains(rewrite(text, "k.cu"), text));
}

TEST_CASE("what cannot be emulated is one sentence", "[emulator]") {
  CHECK(refusal("int main() {}\n") == "k.cu has no kernel: no function in it is __global__.");
  CHECK(contains(refusal("__global__ void k() {}\n"),
                 "k.cu has kernels but nothing that runs them: write 'void check_kernel"));
  CHECK(refusal("__global__ void k() { asm volatile(\"\" ::: \"memory\"); }\n" + kCheck).empty());
  CHECK(refusal("__global__ void k() {}\nvoid f() { k<<<1, 1; }\n" + kCheck) ==
        "k.cu:2: a launch begins with <<< but has no >>>.");
}
