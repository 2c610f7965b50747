"""tools/emulate: small kernels that break one rule each, and right ones beside them; and what the last line says."""
import re
import unittest

from test_emulate import WrittenFile

CHECK = 'void check_kernel(emulate::Run& run) { k<<<%s>>>(%s); }\n'
# What a kernel is passed, last, to do it the other way: the run says so, and one compilation serves both.
OTHER = '*getenv("CASE") != 0'


class Rules(WrittenFile):
    def reports(self, text, rule, *says, arguments=(), case=""):
        done = self.emulate(text, *arguments, case=case)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"^{rule}: ")
        for said in says:
            self.assertIn(said, done.stderr)
        return done.stderr

    def passes(self, text, *arguments, case=""):
        done = self.emulate(text, *arguments, case=case)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class LeftOut(Rules):
    def test_each_barrier_is_left_out_in_turn(self):
        text = ("__global__ void k(int* out) {\n  __shared__ int s[64];\n  s[threadIdx.x] = threadIdx.x;\n  __syncthreads();  // needed\n"
                "  out[threadIdx.x] = s[63 - threadIdx.x];\n  __syncthreads();  // not needed\n}\n" + CHECK % ("1, 64", 'run.buffer<int>("out", 64)'))
        told = self.passes(text, "--necessary", "--seeds", "2")
        rows = [row for row in told.splitlines() if row.startswith("| __syncthreads |")]
        self.assertEqual(len(rows), 2, told)
        self.assertRegex(rows[0], r"\| warps 0-1 \| needed: shared-(race|uninitialised) \|$")
        self.assertRegex(rows[1], r"\| warps 0-1 \| not needed in 4 schedules, and there are more \|$")
        done = self.emulate(text.replace("  __syncthreads();  // needed\n", ""), "--necessary")
        self.assertEqual(done.returncode, 3, done.stdout)  # nothing can be left out of what is wrong


class Lanes(Rules):
    def test_coalesced_threads_of_a_branch(self):
        text = ("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
                "__global__ void k(const int* x, int n, int* total, int* first, bool limits) {\n"
                "  for (int i = threadIdx.x; i < n; i += blockDim.x) {\n    if (x[i] % 3 != 0) continue;\n"
                "    const cg::coalesced_group together = cg::coalesced_threads();\n"
                "    int base = 0;\n    if (together.thread_rank() == 0) base = atomicAdd(total, limits && together.size() > 2 ? 3 : (int)together.size());\n"
                "    first[together.shfl(base, 0) + together.thread_rank()] = i;\n  }\n}\n"
                "void check_kernel(emulate::Run& run) {\n  std::vector<int> x(100), zero(1), all;\n"
                "  for (int i = 0; i < 100; ++i) x[i] = i;\n"
                "  int* total = run.buffer(\"total\", zero);\n  int* first = run.buffer<int>(\"first\", 34);\n"
                "  k<<<1, 64>>>(run.buffer(\"x\", x), 100, total, first, " + OTHER + ");\n"
                "  run.expect_equal(\"total\", run.host(total), std::vector<int>{34});\n"
                "  std::vector<int> seen(100);\n  for (int i : run.host(first)) ++seen[i];\n"
                "  for (int i = 0; i < 100; ++i) run.expect(seen[i] == (i % 3 == 0), \"each once\");\n}\n")
        self.passes(text)
        # Not all lanes of a branch need run together.
        done = self.emulate(text, case="limits")
        self.assertNotEqual(done.returncode, 0)

    def test_warp_synchronous_code_is_reported(self):
        text = ("__device__ void fold(volatile int* s, int t) {\n%s}\n__device__ void fold_with_barriers(volatile int* s, int t) {\n%s}\n"
                "__global__ void k(int* out, bool barriers) {\n  __shared__ int s[64];\n  const int t = threadIdx.x;\n  s[t] = t;\n"
                "  __syncthreads();\n  if (t < 32) barriers ? fold_with_barriers(s, t) : fold(s, t);\n  if (t == 0) out[0] = s[0];\n}\n"
                + (CHECK % ("1, 64", 'run.buffer<int>("out", 1), ' + OTHER)).replace("%", "%%"))
        step = "  s[t] += s[t + %d];\n"
        wrong = "".join(step % n for n in (32, 16, 8, 4, 2, 1))
        right = "  int v = s[t] + s[t + 32];\n  __syncwarp();\n  s[t] = v;\n  __syncwarp();\n" + "".join(
            f"  v += s[t + {n}];\n  __syncwarp();\n  s[t] = v;\n  __syncwarp();\n" for n in (16, 8, 4, 2, 1))
        text %= wrong, right
        self.reports(text, "warp-synchronous", "(in line 3)", "missing  __syncwarp() between the store and the load", "--allow warp-synchronous")
        self.passes(text, "--allow", "warp-synchronous")
        self.passes(text, case="barriers")

    def test_a_lane_may_poll_a_flag_of_its_warp(self):
        self.passes("__global__ void k(int* out) {\n  __shared__ int flag;\n  volatile int* f = &flag;\n  if (threadIdx.x == 0) *f = 0;\n"
                    "  __syncwarp();\n  if (threadIdx.x == 3) *f = 7;\n  if (threadIdx.x == 5) {\n    while (*f == 0) {\n    }\n    out[0] = *f;\n  }\n}\n"
                    + CHECK % ("1, 32", 'run.buffer<int>("out", 1)'))


class Atomics(Rules):
    # One file for all: what is compiled once serves every case.
    TEXT = ("#include <mma.h>\n#include <cuda/atomic>\n#include <string>\n"
            "__global__ void count(int* total) {\n  atomicAdd_block(total, 1);\n}\n"
            "__global__ void count_by_scope(int* total) {\n"
            "  cuda::atomic_ref<int, cuda::thread_scope_block>(*total).fetch_add(1, cuda::std::memory_order_relaxed);\n}\n"
            "__global__ void largest(const int* x, int* out, int n) {\n"
            "  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) atomicMax(out, x[i]);\n}\n"
            "__global__ void last(volatile int* parts, unsigned* counter, int* out, bool fences) {\n  if (threadIdx.x != 0) return;\n"
            "  parts[blockIdx.x] = blockIdx.x + 1;\n  if (fences) __threadfence();\n  if (atomicInc(counter, 99) != gridDim.x - 1) return;\n"
            "  int sum = 0;\n  for (int b = 0; b < gridDim.x; ++b) sum += parts[b];\n  *out = sum;\n}\n"
            "using namespace nvcuda;\n__global__ void tile(float* out, bool synchronises) {\n  __shared__ float s[256];\n"
            "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;\n  wmma::fill_fragment(f, 2.f);\n"
            "  wmma::store_matrix_sync(s, f, 16, wmma::mem_row_major);\n  if (synchronises) __syncwarp();\n"
            "  for (int i = threadIdx.x; i < 256; i += 32) out[i] = s[i];\n}\n"
            "__global__ void two(int* out) {\n  __shared__ int a[32], b[32];\n  const int t = threadIdx.x;\n  out[32 + t] = a[t];\n  __syncthreads();\n"
            "  b[t] = t;\n  out[t] = b[31 - t];\n}\n"
            "void check_kernel(emulate::Run& run) {\n  const std::string which = getenv(\"CASE\");\n  const std::vector<int> zero(64);\n"
            "  int* out = run.buffer(\"out\", zero);\n  int* parts = run.buffer<int>(\"parts\", 64);\n"
            "  if (which == \"block\") count<<<4, 32>>>(out);\n  if (which == \"own block\") count<<<1, 32>>>(out);\n"
            "  if (which == \"scope\") count_by_scope<<<4, 32>>>(out);\n"
            "  if (which == \"largest\") {\n    std::vector<int> x(3000);\n    for (int i = 0; i < 3000; ++i) x[i] = i * 37 % 1009;\n"
            "    largest<<<4, 32>>>(run.buffer(\"x\", x), out, 3000);\n  }\n"
            "  if (which == \"last\" || which == \"fences\")\n"
            "    last<<<8, 32>>>(parts, (unsigned*)run.buffer(\"counter\", zero), out, which == \"fences\");\n"
            "  if (which == \"tile\" || which == \"warp\") tile<<<1, 32>>>(run.buffer<float>(\"tile\", 256), which == \"warp\");\n"
            "  if (which == \"two\") two<<<1, 32>>>(out);\n}\n")

    def test_atomics_and_what_a_fragment_leaves(self):
        with self.subTest("a scope that excludes the other block"):
            for case, line in (("block", 5), ("scope", 8)):
                self.reports(self.TEXT, "global-race", "an atomic of block scope", f"device scope at own.cu:{line}", case=case)
            self.passes(self.TEXT, case="own block")
        with self.subTest("a maximum that stays the same is no wait"):
            self.passes(self.TEXT, "--seeds", "30", case="largest")
        with self.subTest("a counter raised without a fence"):
            self.reports(self.TEXT, "relaxed-order", "own.cu:15", "own.cu:19", "__threadfence between own.cu:15 and own.cu:17", case="last")
            self.passes(self.TEXT, case="fences")
        with self.subTest("a stored fragment is read by other lanes"):
            self.reports(self.TEXT, "shared-race", "own.cu:27", "own.cu:29", case="tile")
            self.passes(self.TEXT, case="warp")
        with self.subTest("a stricter rule hides no other one"):
            report = self.reports(self.TEXT, "shared-uninitialised", "without that rule, another one is broken:\nshared-race: ", case="two")
            self.assertLess(report.index("--allow shared-uninitialised"), report.index("shared-race"))


class Streams(Rules):
    # Broken by CASE, in one place each. What the run says is the same under every schedule, because it follows from the waits.
    TEXT = """#include <cstdlib>
#include <string>
__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }
__global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void count(int* x) { atomicAdd(x, 1); }
int main() {
  const std::string broken = getenv("CASE");
  int *managed, *pinned, *a, *b;
  cudaMallocManaged(&managed, 256), cudaMallocHost(&pinned, 256), cudaMalloc(&a, 512), cudaMalloc(&b, 256);
  cudaStream_t s, t;
  cudaEvent_t filled;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaStreamCreate(&t), cudaEventCreate(&filled);
  for (int i = 0; i < 64; ++i) managed[i] = pinned[i] = 0;
  fill<<<1, 64>>>(managed, 7);
  if (broken != "managed") cudaDeviceSynchronize();
  if (managed[5] != 7) return 1;
  fill<<<1, 64, 0, s>>>(a, 3);
  if (broken != "copy") cudaStreamSynchronize(s);
  cudaMemcpy(pinned, a, 256, cudaMemcpyDeviceToHost);
  if (pinned[5] != 3) return 1;
  cudaMemcpyAsync(pinned, a, 256, cudaMemcpyDeviceToHost, s);
  if (broken != "pinned") while (cudaStreamQuery(s) == cudaErrorNotReady) {}
  if (pinned[5] != 3) return 1;
  cudaMemcpyAsync(a, pinned, 256, cudaMemcpyHostToDevice, s);
  if (broken != "source") cudaStreamSynchronize(s);
  for (int i = 0; i < 64; ++i) pinned[i] = 1;
  copy<<<1, 64, 0, s>>>(a, b);
  cudaEventRecord(filled, s);
  if (broken != "event") cudaStreamWaitEvent(t, filled);
  fill<<<1, 64, 0, t>>>(a, 4);
  fill<<<1, 64, 0, s>>>(a + 64, 5);        // another half of the buffer
  copy<<<1, 64>>>(a, managed);             // the default stream waits for t, and t for s
  count<<<1, 32, 0, s>>>(managed + 63);    // nothing orders this and the copy
  return 0;
}
"""

    def test_what_nothing_orders(self):
        text = self.TEXT.replace("  count<<<", "  if (broken == \"default\") count<<<")
        for case, rule, lines in (("managed", "host-race", (3, 14, 16)), ("pinned", "host-race", (21, 23)), ("source", "host-race", (24, 26)),
                                  ("copy", "stream-race", (3, 17, 19)), ("event", "stream-race", (4, 27, 3, 30)),
                                  ("default", "stream-race", (4, 32, 5, 33))):
            with self.subTest(case):
                for completion in ("random", "earliest", "latest"):
                    self.reports(text, rule, *(f"own.cu:{line}" for line in lines), arguments=("--schedule-seed", "1", "--completion", completion), case=case)
        self.passes(text, case="nothing")


class Memory(Rules):
    def test_objects_in_memory_that_a_kernel_allocates_and_in_shared_memory(self):
        text = """#include <new>
struct Base { __device__ virtual void push(int) = 0; };
struct Sum : Base {
  int sum = 0;
  __device__ void push(int x) override { atomicAdd(&sum, x); }
};
__global__ void make(Sum** sum, int* blocks) { *sum = new Sum; blocks[0] = 0; }
__global__ void add(Sum** sum, int* out, bool in_order) {
  __shared__ __align__(8) unsigned char memory[sizeof(Sum)];
  __shared__ Base* own;
  if (threadIdx.x == 0) own = new (memory) Sum;
  __syncthreads();
  own->push(1);
  (*sum)->push(1);
  if (in_order) __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = reinterpret_cast<Sum*>(memory)->sum;
}
__global__ void end(Sum** sum, int* out) { *out = (*sum)->sum; delete *sum; }
void check_kernel(emulate::Run& run) {
  Sum** sum = run.buffer<Sum*>("sum", 1);
  int* out = run.buffer<int>("out", 5);
  make<<<1, 1>>>(sum, out);
  add<<<4, 64>>>(sum, out, %s);
  end<<<1, 1>>>(sum, out + 4);
  run.expect_equal("out", run.host(out), std::vector<int>{64, 64, 64, 64, 256});
}
""" % OTHER
        self.passes(text, case="in order")
        self.reports(text, "shared-race", "an atomic", "own.cu:16")

    def test_a_shared_array_that_nobody_writes_is_reported(self):
        text = ("__global__ void k(float* out, bool writes) {\n  __shared__ float s[32];\n  if (writes) s[threadIdx.x] = 1;\n"
                "  out[threadIdx.x] = s[threadIdx.x] + 1;\n}\n" + CHECK % ("1, 32", 'run.buffer<float>("out", 32), ' + OTHER))
        self.reports(text, "shared-uninitialised", "__shared__ s")
        self.passes(text, case="writes")

    def test_a_store_into_a_cta_that_may_not_have_started(self):
        text = ("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__global__ void __cluster_dims__(2, 1, 1) k(int* out, bool late) {\n"
                "  __shared__ int box[32];\n  const cg::cluster_group cluster = cg::this_cluster();\n  if (!late) cluster.sync();\n"
                "  cluster.map_shared_rank(box, cluster.block_rank() ^ 1)[threadIdx.x] = threadIdx.x;\n  cluster.sync();\n"
                "  out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];\n}\n" + CHECK % ("4, 32", 'run.buffer<int>("out", 128), ' + OTHER))
        self.passes(text)
        self.reports(text, "cluster-start", "own.cu:7", "a barrier of the cluster before the first remote access", case="late")

    def test_one_value_that_several_warps_store(self):
        text = ("__global__ void k(const int* x, int* found, char how) {\n  if (x[threadIdx.x] <= 0) return;\n  if (how == 0) *found = 1;\n"
                "  if (how == 'e') atomicExch(found, 1);\n  if (how == 'v') *(volatile int*)found = 1;\n}\n"
                + CHECK % ("1, 128", 'run.buffer("x", std::vector<int>(128, 1)), run.buffer("found", std::vector<int>(1)), *getenv("CASE")'))
        self.reports(text, "global-race", "an atomic store (atomicExch, cuda::atomic_ref or a volatile pointer) is no race")
        for store in ("exchanges", "volatile"):
            self.passes(text, case=store)


class Registers(Rules):
    def test_accumulators_that_are_stored_before_the_wait(self):
        text = ("#include \"ptx/wgmma.cuh\"\n#include <cuda_bf16.h>\nnamespace ptx = gemm::ptx;\n"
                "__device__ inline unsigned long long tile(const void* t) {\n  return (__cvta_generic_to_shared(t) & 0x3ffff) >> 4 | 1ull << 16 | "
                "64ull << 32 | 1ull << 62;\n}\n"
                "__global__ void k(float* out, bool late) {\n  __shared__ alignas(1024) __nv_bfloat16 a[64 * 64], b[8 * 64];\n"
                "  for (int i = threadIdx.x; i < 64 * 64; i += 128) a[i] = __float2bfloat16(1);\n"
                "  for (int i = threadIdx.x; i < 8 * 64; i += 128) b[i] = __float2bfloat16(1);\n"
                "  asm_free_fence();\n  __syncthreads();\n  float d[4];\n  ptx::wgmma_fence_operand(d);\n  ptx::wgmma_fence();\n"
                "  ptx::wgmma_m64nNk16_f32_bf16_ss<8>(d, tile(a), tile(b), false);\n  ptx::wgmma_commit_group();\n"
                "  if (!late) ptx::wgmma_wait_group<0>();\n"
                "  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];\n  if (late) ptx::wgmma_wait_group<0>();\n}\n"
                + CHECK % ("1, 128", 'run.buffer<float>("out", 512), ' + OTHER))
        text = text.replace("asm_free_fence()", "ptx::fence_proxy_async_shared_cta()").replace(
            "#include <cuda_bf16.h>", '#include "ptx/fence.cuh"\n#include <cuda_bf16.h>')
        self.passes(text)
        self.reports(text, "wgmma-accumulator-read", "a store uses an accumulator that wgmma had not finished when it was read", "own.cu:",
                     "groups   1 committed, 0 waited for", case="late")

    def test_registers_of_tensor_memory_that_are_stored_before_the_wait(self):
        text = ("#include \"ptx/tcgen05_alloc.cuh\"\n#include \"ptx/tcgen05_ld.cuh\"\n#include \"ptx/tcgen05_fence.cuh\"\nnamespace ptx = gemm::ptx;\n"
                "__global__ void k(float* out, bool late) {\n  __shared__ uint32_t at;\n"
                "  if (threadIdx.x < 32) {\n    ptx::tcgen05_alloc(&at, 32);\n    ptx::tcgen05_relinquish_alloc_permit();\n  }\n  __syncthreads();\n"
                "  const uint32_t columns = at;\n  const uint32_t mine = columns + (threadIdx.x / 32 * 32u << 16);\n"
                "  uint32_t w[8];\n  float r[8];\n  for (int i = 0; i < 8; ++i) w[i] = __float_as_uint(float(threadIdx.x));\n"
                "  ptx::tcgen05_st_32x32b_x8(mine, w);\n  ptx::tcgen05_wait_st();\n  ptx::tcgen05_ld_32x32b_x8(r, mine);\n"
                "  if (!late) ptx::tcgen05_wait_ld();\n  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = r[i];\n"
                "  if (late) ptx::tcgen05_wait_ld();\n  __syncthreads();\n  if (threadIdx.x < 32) ptx::tcgen05_dealloc(columns, 32);\n}\n"
                + CHECK % ("1, 128", 'run.buffer<float>("out", 1024), ' + OTHER))
        self.passes(text)
        self.reports(text, "tcgen05-ld-not-waited", "a store uses a register that tcgen05.ld had not filled", "missing  tcgen05.wait::ld",
                     case="late")


class Copies(Rules):
    def test_memcpy_async_is_called_so_and_every_reader_waits(self):
        text = ("#include <cuda/barrier>\n__global__ void k(const int* in, int* out, bool one) {\n  const int count = one ? 1 : 64;\n  __shared__ alignas(16) int s[64];\n"
                "  __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n  if (threadIdx.x == 0) init(&bar, count);\n  __syncthreads();\n"
                "  if (threadIdx.x == 0) cuda::memcpy_async(s, in + 64, cuda::aligned_size_t<16>(256), bar);\n"
                "  if (threadIdx.x < count) bar.arrive_and_wait();\n  out[threadIdx.x] = s[threadIdx.x];\n}\n"
                + CHECK % ("1, 64", 'run.buffer("in", std::vector<int>(128, 1)), run.buffer<int>("out", 64), ' + OTHER))
        self.passes(text)
        report = self.reports(text, "load-overwrites|load-not-waited", case="one")
        self.assertNotIn("cp_async_bulk", report)
        self.assertIn("256 bytes from in + 256", report)
        self.assertRegex(report, r"missing  a wait (at|for phase 0 \(parity 0\) of) mbarrier __shared__ bar \+ 0.* has never waited")

    def test_a_stage_that_was_not_released(self):
        text = ("#include <cuda/pipeline>\n__global__ void k(const int* in, int* out, bool kept) {\n  __shared__ int s[2][64];\n"
                "  auto pipe = cuda::make_pipeline();\n  for (int i = 0; i < 4; ++i) {\n    pipe.producer_acquire();\n"
                "    cuda::memcpy_async(&s[i & 1][threadIdx.x], &in[i * 64 + threadIdx.x], sizeof(int), pipe);\n    pipe.producer_commit();\n"
                "    pipe.consumer_wait();\n    out[i * 64 + threadIdx.x] = s[i & 1][threadIdx.x];\n    if (!kept) pipe.consumer_release();\n"
                "  }\n}\n" + CHECK % ("1, 64", 'run.buffer("in", std::vector<int>(256, 1)), run.buffer<int>("out", 256), ' + OTHER))
        self.passes(text)
        self.reports(text, "cp-async-read-before-wait", "missing  pipeline::consumer_wait() for the stage of this copy", "consumer_release() comes",
                     case="kept")

    def test_threads_that_leave_a_barrier(self):
        text = ("#include <cuda/barrier>\n__global__ void k(int* out, bool stays) {\n  __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n"
                "  __shared__ int s[64];\n  const int t = threadIdx.x;\n  if (t == 0) init(&bar, 64);\n  __syncthreads();\n  if (t >= 40) {\n"
                "    if (!stays) bar.arrive_and_drop();\n    return;\n  }\n  for (int round = 0; round < 3; ++round) {\n"
                "    s[t] = t + round;\n    bar.arrive_and_wait();\n    out[t] = s[39 - t];\n    bar.arrive_and_wait();\n  }\n}\n"
                + CHECK % ("1, 64", 'run.buffer<int>("out", 40), ' + OTHER))
        self.passes(text)
        self.reports(text, "deadlock", case="stays")


class Verdict(Rules):
    KERNEL = "__global__ void k(int* x) { x[threadIdx.x] = 1; }\n"

    def test_the_last_line_says_what_nobody_looked_at(self):
        check = (self.KERNEL + "void check_kernel(emulate::Run& run) {\n  const char what = *getenv(\"CASE\");\n  int* x = run.buffer<int>(\"x\", 32);\n"
                 "  if (what != 'n') k<<<1, 32>>>(x);\n  if (what == 'c') run.expect_equal(\"x\", run.host(x), std::vector<int>(32, 1));\n}\n")
        compared = self.passes(check, case="compares")
        self.assertIn(": no rule is broken, and the results are right (", compared)
        self.assertIn(": no rule is broken; the results were not looked at, because check_kernel calls none of", self.passes(check))
        self.assertIn(": no kernel was launched, so nothing was checked (", self.passes(check, case="nothing"))
        switched = self.passes(check, "--allow", "exit-in-flight,warp-synchronous")
        self.assertIn("; not checked, as --allow says: exit-in-flight, warp-synchronous (", switched)
        main = (f"#include <cstdlib>\n{self.KERNEL}int main() {{\n  int* x;\n  cudaMalloc(&x, 128);\n  k<<<1, 32>>>(x);\n"
                '  if (*getenv("CASE")) exit(0);\n  return 0;\n}\n')
        for case in ("", "exits"):
            self.assertIn(": no rule is broken, and the results are right (", self.passes(main, case=case))

    def test_a_long_launch_ends_after_the_given_time(self):
        text = ("__global__ void k(const float* x, float* out, int n) {\n  float sum = 0;\n  for (int i = 0; i < n; ++i) sum += x[i % 256];\n"
                "  out[threadIdx.x] = sum;\n}\n"
                + CHECK % ("1, 256", 'run.buffer("x", std::vector<float>(256)), run.buffer<float>("out", 256), 1000000'))
        report = self.reports(text, "livelock", "the kernel is still running after 1 s", arguments=("--seconds", "1"))
        self.assertTrue(re.search("either it does not end, or it needs more time than that", report))


if __name__ == "__main__":
    unittest.main()
