"""tools/emulate: kernels' files that are right, versions of them with one thing broken, and what is no kernel's file."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from sandbox import ROOT, emulate_folder

EXAMPLES = {file.stem: file for file in (ROOT / "tests/own_kernel").glob("**/*.cu")}
# What is said of each broken version: a rule's name, or the beginning of another sentence.
BROKEN = {
    ("addresses", "NO_WAIT"): "load-not-waited|shared-uninitialised",
    ("ampere", "NO_WARP_SYNC"): "shared-race",
    ("ampere", "WAIT_ONE_LESS"): "cp-async-read-before-wait",
    ("half_sums", "NO_GROUP_WAIT"): "load-overwrites|wgmma-accumulator-read",
    ("memory", "NO_BARRIER"): "shared-race|shared-uninitialised",
    ("memory", "WEAK_FLAG"): "global-race",
    ("ring", "EARLY_RELEASE"): "load-overwrites",
    ("ring", "NO_FENCE"): "proxy-fence",
    ("ring", "NO_WAIT"): "load-not-waited",
    ("ring", "SHORT_EXPECT"): "expect-tx-small",
    ("addresses", "WRONG_ADDRESS"): "mbarrier-uninitialised",
    ("attention", "EARLY_RELEASE"): "load-overwrites",
    ("attention", "NO_RESCALE"): "wrong result",
    ("attention", "ONE_BARRIER"): "expect-tx-small",
    ("cluster_ring", "EARLY_RELEASE"): "load-overwrites",
    ("cluster_ring", "HALF_BYTES"): "wgmma-operand-uninitialised|expect-tx-small|mbarrier-tx|load-not-waited",
    ("cluster_ring", "NO_INIT_FENCE"): "mbarrier-init-fence",
    ("cluster_ring", "NO_LAST_MEETING"): "cluster-exit",
    ("cluster_ring", "OWN_EMPTY_ONLY"): "load-overwrites",
    ("dependent_chain", "NO_WAIT"): "dependent-launch",
    ("dependent_chain", "WAIT_BEHIND_LOAD"): "dependent-launch",
    ("convolution", "HALF_BYTES"): "expect-tx-small",
    ("convolution", "NO_WAIT"): "load-not-waited|load-overwrites",
    ("convolution", "OUTSIDE"): "tma-coordinates",
    ("convolution", "TILED"): "tensor-map-mode",
    ("convolution", "WRONG_OFFSET"): "wrong result",
    ("forms", "NEVER_ENOUGH"): "deadlock",
    ("forms", "OTHER_STATE"): "mbarrier-state",
    ("forms", "REDUCTION_NOT_WAITED"): "load-not-waited|load-overwrites|shared-race",
    ("forms", "REDUCTION_WITHOUT_FENCE"): "proxy-fence",
    ("forms", "REMOTE_RACE"): "shared-race|shared-uninitialised",
    ("forms", "SOURCE_REUSED"): "load-not-waited",
    ("forms", "TOO_MANY"): "mbarrier-arrivals",
    ("grid_scan", "NOT_COOPERATIVE"): "co-residency",
    ("grid_scan", "NO_GRID_SYNC"): "global-uninitialised|global-race",
    ("histogram", "NO_CLEAR_BARRIER"): "shared-race",
    ("histogram", "PLAIN_ADD"): "global-race",
    ("interleaved", "CHANNEL_AS_SLICE"): "wrong result",
    ("interleaved", "HALF_BYTES"): "expect-tx-small",
    ("interleaved", "NO_INTERLEAVE"): "wrong result",
    ("interleaved", "NO_READ_WAIT"): "exit-in-flight",
    ("interleaved", "NO_WAIT"): "load-not-waited|load-overwrites|shared-uninitialised",
    ("int8_gemm", "LOAD_EARLY"): "shared-race",
    ("int8_gemm", "NO_BARRIER"): "shared-race|cp-async",
    ("int8_gemm", "WAIT_ONE_LESS"): "cp-async-read-before-wait",
    ("layernorm", "BLOCK_SYNC_ONLY"): "shared-race|shared-uninitialised",
    ("layernorm", "NO_LAST_SYNC"): "cluster-exit",
    ("locked_sums", "FEWER_THEN"): "setmaxnreg",
    ("locked_sums", "NO_BARRIER"): "global-race",
    ("locked_sums", "NO_FENCE"): "global-race",
    ("locked_sums", "UNREAD_RESET"): "global-race",
    ("lookback_scan", "NO_FENCE"): "relaxed-order",
    ("lookback_scan", "NO_LAST_BARRIER"): "shared-race|shared-uninitialised",
    ("lookback_scan", "NO_READ_FENCE"): "relaxed-order",
    ("lookback_scan", "TICKET_RACE"): "shared-race|shared-uninitialised",
    ("mma_forms", "SOME_LANES"): "warp-divergence",
    ("partitions", "OTHER_PARENT"): "shared-uninitialised|shared-out-of-bounds|shared-race",
    ("partitions", "PLAIN_ADD"): "global-race",
    ("partitions", "WHOLE_TILE"): "warp-divergence",
    ("ping_pong", "NO_FENCE"): "proxy-fence",
    ("peers", "DEVICE_SCOPE"): "scope-too-small",
    ("peers", "FREED"): "peer-gone",
    ("peers", "NO_EVENT"): "global-race|global-uninitialised",
    ("peers", "NO_PEER_ACCESS"): "peer-access",
    ("ping_pong", "NO_ORDER_START"): "deadlock",
    ("ping_pong", "NO_STORE_WAIT"): "store-source-overwritten",
    ("ping_pong", "WRONG_STAGES"): "deadlock",
    ("pipelines", "FEW_ARRIVALS"): "deadlock",
    ("pipelines", "NOT_RELEASED"): "cp-async-read-before-wait",
    ("pipelines", "NO_LAST_BARRIER"): "shared-race|cp-async",
    ("pipelines", "NO_CONSUMER_WAIT"): "shared-race|load-not-waited|shared-uninitialised",
    ("pipelines", "NO_PRODUCER_ACQUIRE"): "load-not-waited|shared-race|load-overwrites",
    ("pipelines", "NO_RELEASE"): "load-not-waited|deadlock",
    ("pipelines", "PART_NOT_WAITED"): "load-not-waited|shared-uninitialised",
    ("pipelines", "NO_WAIT"): "cp-async-read-before-wait|shared-race",
    ("pipelines", "PRIOR_ONE_MORE"): "cp-async-read-before-wait|shared-race",
    ("remote_stores", "CTA_SCOPE"): "load-not-waited",
    ("remote_stores", "EXPECTS_LESS"): "expect-tx-small|load-overwrites|load-not-waited",
    ("remote_stores", "EXPECTS_MORE"): "deadlock",
    ("remote_stores", "INTO_OWN"): "cluster-address",
    ("remote_stores", "NOT_CLEARED"): "shared-uninitialised",
    ("remote_stores", "NO_WAIT"): "load-not-waited|load-overwrites",
    ("runtime", "NO_DEPENDENCY"): "global-uninitialised",
    ("runtime", "NO_EVENT"): "stream-race",
    ("runtime", "NO_SYNCHRONIZE"): "host-race",
    ("runtime", "OUTSIDE"): "global-out-of-bounds",
    ("runtime", "USE_FREED"): "global-uninitialised",
    ("same_value", "OTHER_VALUES"): "shared-race",
    ("same_value", "OTHER_WARPS"): "shared-race",
    ("shuffle_reduction", "NO_BARRIER"): "shared-race|shared-uninitialised",
    ("shuffle_reduction", "ONE_ROW_MORE"): "global-out-of-bounds",
    ("shuffle_reduction", "SHORT_MASK"): "warp-divergence",
    ("softmax", "ONE_BARRIER_LESS"): "shared-race",
    ("split_k", "NO_RELEASE_BARRIER"): "global-race",
    ("split_k", "NO_REUSE_BARRIER"): "shared-race",
    ("split_k", "RELAXED_RELEASE"): "global-race",
    ("tensor_map_updates", "ACQUIRE_ELSEWHERE"): "tensormap-acquire",
    ("tensor_map_updates", "CTA_RELEASE"): "tensormap-scope",
    ("tensor_map_updates", "NO_ACQUIRE"): "tensormap-acquire",
    ("tensor_map_updates", "NO_RELEASE"): "tensormap-release",
    ("tensor_map_updates", "NO_START_ACQUIRE"): "tensormap-acquire",
    ("tensor_map_updates", "NO_WARP_SYNC"): "shared-race",
    ("tensor_map_updates", "TOO_MANY_ROWS"): "global-out-of-bounds",
    ("tensor_memory", "CTA_SCOPE"): "load-not-waited",
    ("tensor_memory", "NO_ANSWER"): "launch-control-response",
    ("tensor_memory", "NO_FENCE"): "tcgen05-fence",
    ("tensor_memory", "NO_LOAD_WAIT"): "tcgen05-ld-not-waited",
    ("tensor_memory", "NO_ZEROS"): "tensor-memory-uninitialised",
    ("tma_ring", "EARLY_RELEASE"): "load-overwrites",
    ("tma_ring", "FIRST_PHASE"): "deadlock",
    ("tma_ring", "NO_LAST_WAIT"): "exit-in-flight",
    ("tma_ring", "ONE_WARPGROUP"): "load-overwrites",
    ("tma_transpose", "NO_FENCE"): "proxy-fence",
    ("tma_transpose", "NO_READ_WAIT"): "exit-in-flight",
    ("tma_transpose", "NO_WAIT"): "load-overwrites|load-not-waited|shared-uninitialised",
    ("tma_transpose", "ONE_BARRIER_LESS"): "store-source-race",
    ("votes_and_prefetches", "MIXED_BARRIER"): "named-barrier",
    ("votes_and_prefetches", "PREFETCH_BEHIND"): "prefetch-bounds",
    ("votes_and_prefetches", "PREFETCH_ODD"): "tma-alignment",
    ("wmma_gemm", "NO_WARP_SYNC"): "shared-race|shared-uninitialised",
    ("wmma_gemm", "ONE_STAGE"): "shared-race",
    ("work_stealing", "ASKS_AGAIN"): "launch-control-after-failure",
    ("work_stealing", "LOST"): "launch-control-lost",
    ("work_stealing", "NOT_ASKED"): "launch-control-not-canceled",
    ("work_stealing", "NO_FENCE"): "launch-control-fence",
    ("work_stealing", "NO_WAIT"): "load-not-waited|launch-control-response",
}
# The file's own arguments of tools/emulate.
ARGUMENTS = {"split_k": ["--allow", "co-residency"]}
ENVIRONMENT = {"peers": {"GEMM_STEPS_DEVICES": "2"}}
UNNOTICED = {("softmax", "NO_NEUTRAL")}  # the value of a register: docs/emulator/bring-your-own-kernel.md


def emulate(file, *arguments, **variables):
    """Runs tools/emulate on this repository's build for the emulator."""
    return subprocess.run([str(ROOT / "tools/emulate"), str(file), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, cwd=ROOT, env={**os.environ, **variables})


def masked(report):
    """Its lines without what depends on which CTAs ran at the same time."""
    return re.sub(r"\(\d+,\d+,\d+\)|(?<=warp )\d+|(?<=lane )\d+|(?<= \+ )\d+|\(-?\d+, -?\d+\)", "N", report).split("\n")


class EmulateTest(unittest.TestCase):
    def setUp(self):
        if pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator")) != ROOT / "build/emulator":
            self.skipTest("tools/emulate uses build/emulator, and these tests are of another build")


class ExampleTest(EmulateTest):
    """Compiles with emulate-cc and runs the program, as tools/emulate does after it has seen that the build is up to date."""

    def setUp(self):
        super().setUp()
        self.programs = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.programs)

    def run_example(self, name, *arguments, definition=None):
        program = self.programs / f"{name}-{definition}"
        if not program.exists():
            command = [ROOT / "tools/own_kernel/emulate-cc", EXAMPLES[name], "-o", program, "--name", EXAMPLES[name].relative_to(ROOT), "--kit",
                       ROOT / "build/emulator/emulate/kit", *(["-D", definition] if definition else [])]
            done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=ROOT)
            self.assertEqual(done.returncode, 0, done.stderr)
        return subprocess.run([str(program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=ROOT,
                              env={**os.environ, **ENVIRONMENT.get(name, {})})

    def check_right(self, name, schedules=("--seeds", "4")):
        done = self.run_example(name, *schedules, *ARGUMENTS.get(name, []))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no rule is broken, and the results are right", done.stdout)

    def check_functions(self, name):
        """Functions of one thread: a second schedule would compute the same."""
        self.check_right(name, ("--schedule-seed", "1"))

    def check_broken(self, name, definition):
        done = self.run_example(name, *ARGUMENTS.get(name, []), definition=definition)
        self.assertEqual(done.returncode, 1 if BROKEN[name, definition] == "wrong result" else 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"(?m)^({BROKEN[name, definition]})")
        self.assertRegex(done.stderr, r"\n  again    --schedule-seed \d+ --completion \w+ --sms 4( --allow co-residency)?\n")
        return done.stderr

    def check_quoted(self, rule, report):
        """The chapter shows this report."""
        page = (ROOT / "docs/emulator/bring-your-own-kernel.md").read_text()
        quoted = re.search(rf"```\n({rule}: .*?)\n```", page, re.S)[1]
        self.assertEqual(masked(quoted), [line for line in masked(report) if line in masked(quoted)])


class Examples(ExampleTest):
    def test_inline_ptx_of_a_hopper_gemm_in_a_header(self):
        self.check_right("ring")
        report = self.check_broken("ring", "NO_FENCE")
        folder = "tests/own_kernel/inline_ptx"
        self.assertRegex(report, rf"  store    cp\.async\.bulk\.tensor\.2d\.\S+ at {folder}/ring\.cuh:\d+ \(in {folder}/wrappers\.cuh:\d+\) by thread")

    def test_inline_ptx_of_an_ampere_gemm(self):
        self.check_right("ampere")
        self.check_broken("ampere", "WAIT_ONE_LESS")

    def test_inline_ptx_of_accumulators_of_16_bits(self):
        self.check_right("half_sums")

    def test_inline_ptx_of_blackwell(self):
        self.check_right("tensor_memory")
        self.check_broken("tensor_memory", "NO_LOAD_WAIT")
        report = self.check_broken("tensor_memory", "NO_ZEROS")  # the group is an operand of the statement
        self.assertIn("tcgen05.mma.cta_group::1.kind::f16 accesses tensor memory that was never written", report)

    def test_inline_ptx_of_arithmetic(self):
        self.check_functions("scalar")

    def test_inline_ptx_of_loads_stores_atomics_and_votes(self):
        self.check_right("memory")
        self.check_broken("memory", "WEAK_FLAG")

    def test_functions_of_half_and_bf16(self):
        self.check_functions("narrow")

    def test_functions_of_floats_in_each_rounding(self):
        self.check_functions("floats")

    def test_functions_of_integers(self):
        self.check_functions("integers")

    def test_conversions_of_fp8(self):
        self.check_functions("fp8")

    def test_a_tma_transpose(self):
        self.check_right("tma_transpose")
        report = self.check_broken("tma_transpose", "NO_FENCE")
        line = EXAMPLES["tma_transpose"].read_text().split("\n").index(
            "    turned[i % kTile][i / kTile] = tile[i / kTile][i % kTile];") + 1
        self.assertIn(f"  written  tests/own_kernel/tma_transpose.cu:{line} by thread", report)
        self.check_quoted("proxy-fence", report)

    def test_a_ring_with_clusters_and_multicast(self):
        self.check_right("cluster_ring")
        self.check_broken("cluster_ring", "OWN_EMPTY_ONLY")

    def test_a_ring_as_in_step_11_and_its_speed(self):
        done = self.run_example("tma_ring", "--seeds", "4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        speed, tiles = re.search(r"(?m)^(\d+) k-tiles per second of CPU time: (\d+) in [\d.]+ s of launches$", done.stdout).groups()
        self.assertEqual(int(tiles), 6 * 4 * 9)
        self.assertGreaterEqual(int(speed), 200)
        self.check_broken("tma_ring", "ONE_WARPGROUP")

    def test_ping_pong(self):
        self.check_right("ping_pong")

    def test_attention(self):
        self.check_right("attention")

    def test_a_reduction_with_shuffles(self):
        self.check_right("shuffle_reduction")

    def test_a_chain_of_dependent_launches(self):
        self.check_right("dependent_chain")
        report = self.check_broken("dependent_chain", "NO_WAIT")
        self.assertIn("missing  griddepcontrol.wait before this read", report)
        self.check_broken("dependent_chain", "WAIT_BEHIND_LOAD")

    def test_a_histogram(self):
        self.check_right("histogram")
        report = self.check_broken("histogram", "PLAIN_ADD")
        self.assertIn("  bytes    bins + ", report)  # a __device__ variable, by its name
        self.assertIn("  missing  an atomic at tests/own_kernel/histogram.cu:25 (atomicAdd, for example)", report)

    def test_a_scan_of_the_grid(self):
        self.check_right("grid_scan")

    def test_a_softmax(self):
        self.check_right("softmax")
        self.check_quoted("shared-race", self.check_broken("softmax", "ONE_BARRIER_LESS"))

    def test_lanes_store_the_same_value(self):
        self.check_right("same_value")
        self.check_broken("same_value", "OTHER_VALUES")
        self.check_broken("same_value", "OTHER_WARPS")

    def test_addresses_of_32_bits(self):
        self.check_right("addresses")

    def test_a_convolution(self):
        self.check_right("convolution")
        report = self.check_broken("convolution", "OUTSIDE")
        self.assertIn("  box      coordinate 1 is -2, the box goes from -1 to 17", report)

    def test_pipelines(self):
        self.check_right("pipelines")
        self.check_broken("pipelines", "NO_PRODUCER_ACQUIRE")
        self.check_broken("pipelines", "NOT_RELEASED")

    def test_sums_behind_a_lock(self):
        self.check_right("locked_sums")
        self.check_broken("locked_sums", "UNREAD_RESET")
        report = self.check_broken("locked_sums", "NO_FENCE")
        self.assertRegex(report, r"missing  a release: atomic_ref::fetch_add at \S+( \(in [^)]*\))? does not order earlier accesses, and the latest fence")

    def test_partitions_of_warps(self):
        self.check_right("partitions")
        self.check_broken("partitions", "WHOLE_TILE")

    def test_interleaved_layouts(self):
        self.check_right("interleaved")
        self.check_broken("interleaved", "CHANNEL_AS_SLICE")
        self.check_broken("interleaved", "HALF_BYTES")

    def test_several_devices(self):
        self.check_right("peers")
        self.check_broken("peers", "DEVICE_SCOPE")

    def test_other_forms(self):
        self.check_right("forms")

    def test_stores_and_reductions_into_another_cta(self):
        self.check_right("remote_stores")
        self.check_broken("remote_stores", "CTA_SCOPE")

    def test_tensor_maps_that_change(self):
        self.check_right("tensor_map_updates")
        self.check_broken("tensor_map_updates", "NO_ACQUIRE")
        report = self.check_broken("tensor_map_updates", "NO_RELEASE")
        self.assertIn("  missing  fence.proxy.tensormap::generic.release by thread (0,0,0)", report)

    def test_a_scan_with_look_back(self):
        self.check_right("lookback_scan")
        report = self.check_broken("lookback_scan", "NO_FENCE")
        self.assertIn("  flag     the thread has seen that later store at tests/own_kernel/lookback_scan.cu:", report)

    def test_split_k_behind_a_semaphore(self):
        self.check_right("split_k")
        self.check_broken("split_k", "RELAXED_RELEASE")
        done = self.run_example("split_k")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "^co-residency: a CTA waits for (CTAs that have not started|another CTA of the grid)")

    def test_a_layernorm_of_clusters(self):
        self.check_right("layernorm")
        report = self.check_broken("layernorm", "NO_LAST_SYNC")
        self.assertRegex(report, r"  access   a load at tests/own_kernel/layernorm.cu:\d+ by thread")

    def test_an_int8_gemm_with_cp_async(self):
        self.check_right("int8_gemm")

    def test_narrow_types(self):
        self.check_right("narrow_types")

    def test_a_gemm_with_wmma(self):
        self.check_right("wmma_gemm")

    def test_mma_of_every_type(self):
        self.check_right("mma_forms")

    def test_votes_and_prefetches(self):
        self.check_right("votes_and_prefetches")
        self.check_broken("votes_and_prefetches", "MIXED_BARRIER")

    def test_streams_graphs_textures_and_groups(self):
        self.check_right("runtime")
        self.check_quoted("host-race", self.check_broken("runtime", "NO_SYNCHRONIZE"))

    def test_clusters_that_are_cancelled(self):
        self.check_right("work_stealing")
        self.check_broken("work_stealing", "NO_FENCE")

    def test_every_broken_version_in_the_files_has_an_expectation(self):
        named = set()
        for file in EXAMPLES.values():
            header = file.with_suffix(".cuh")
            text = file.read_text() + (header.read_text() if header.exists() else "")
            named |= {(file.stem, name) for name in re.findall(r"(?m)^#(?:ifn?def |(?:el)?if !?defined\()([A-Z_]+)\)?$", text)}
        self.assertEqual(named, set(BROKEN) | UNNOTICED)

    def test_long_every_broken_version(self):
        for name, definition in BROKEN:
            with self.subTest(name=name, definition=definition):
                self.check_broken(name, definition)
        for name, definition in UNNOTICED:
            self.assertEqual(self.run_example(name, definition=definition).returncode, 0)


class WrittenFile(EmulateTest):
    """A small file, written by a test."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(shutil.rmtree, self.program_folder(), ignore_errors=True)

    def program_folder(self):
        return emulate_folder(self.folder / "own.cu")

    def emulate(self, text, *arguments, case=""):
        """`case`: what the file's host code finds in CASE, so that one compilation serves several runs."""
        file = self.folder / "own.cu"
        file.write_text(text)
        return emulate(file, *arguments, CASE=case)


class SeveralFiles(WrittenFile):
    KERNEL = """#include <cuda_runtime.h>
        #include "other.h"
        static __constant__ int factor = 3;
        __global__ void scale(int* x) { x[threadIdx.x] *= factor; }
        void run_scale(int* x, cudaStream_t stream) { scale<<<1, 32, 0, stream>>>(x); }
        """
    HOST = """#include <cuda_runtime.h>
        #include "other.h"
        unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
        #ifdef __CUDACC__
        #error "host code is compiled as for nvcc"
        #endif
        int main() {
          int *x = nullptr, host[32];
          cudaMalloc(&x, sizeof host);
          for (unsigned i = 0; i < 32; ++i) host[i] = static_cast<int>(umin(i, 20));
          cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
          run_scale(x, nullptr);
          cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
          return host[5] == 15 && host[31] == 60 ? 0 : 1;
        }
        """

    def test_one_with_the_kernel_and_one_with_main(self):
        (self.folder / "other.h").write_text("void run_scale(int* x, cudaStream_t stream);\n")
        (self.folder / "kernel.cu").write_text(self.KERNEL)
        (self.folder / "host.cpp").write_text(self.HOST)
        done = emulate(self.folder / "kernel.cu", self.folder / "host.cpp")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the results are right", done.stdout)
        (self.folder / "second.cpp").write_text("int main() { return 0; }\n")
        done = emulate(self.folder / "kernel.cu", self.folder / "host.cpp", self.folder / "second.cpp")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("2 of the files have a main or a check_kernel: only one of them can run the kernels.", done.stderr)
        for path in (ROOT / "build/emulator/emulate").glob("kernel-*"):
            shutil.rmtree(path, ignore_errors=True)


class OwnKernels(WrittenFile):
    def sentence(self, text, *arguments):
        """What is refused, in one line; nothing is left behind."""
        done = self.emulate(text, *arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = [line for line in done.stderr.strip().split("\n") if line.startswith("tools/emulate: error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertFalse(self.program_folder().exists())
        return lines[0].removeprefix("tools/emulate: error: ")

    def test_an_instruction_that_is_not_known_is_named_where_it_is_reached(self):
        text = '__global__ void k(int x) { if (x) asm("vset4.u32.u32.eq %0, %0, 1, 2;" : "+r"(x)); }\nint main(int count, char**) { k<<<1, 1>>>(count - 1); }\n'
        done = self.emulate(text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.emulate(text, "--", "reached")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("inline-ptx: the emulator has no inline PTX like 'vset4.u32.u32.eq'\n  where    own.cu:1\n", done.stderr)

    def test_what_is_no_kernels_file_is_refused_in_one_sentence(self):
        self.assertEqual(self.sentence("int f();\n"), "own.cu has no kernel: no function in it is __global__.")
        self.assertIn("nothing that runs them", self.sentence("__global__ void k() {}\n"))
        done = emulate(self.folder / "missing.cu")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("there is no file", done.stderr)

    def test_an_instruction_that_is_not_there_is_named(self):
        check = "void check_kernel(emulate::Run&) { k<<<1, 1>>>(nullptr); }\n"
        self.assertEqual(
            self.sentence("#include <cuda/ptx>\n__global__ void k(int* x) { cuda::ptx::tcgen05_alloc(x, 3); }\n" + check),
            "own.cu:2: the emulator has no cuda::ptx::tcgen05_alloc.")
        self.assertEqual(
            self.sentence("#include <cuda/ptx>\n__global__ void k(float* x) {\n  cuda::ptx::cp_reduce_async_bulk(cuda::ptx::space_cluster, "
                          "cuda::ptx::space_shared, cuda::ptx::op_add, x, x, 16u, nullptr);\n}\n" + check),
            "own.cu:3: the emulator has cp.reduce.async.bulk.shared::cluster as the PTX ISA has it: inc and dec of u32, min and max of "
            "u32 and s32, and, or and xor of b32, add of u32, s32, u64 and s64.")

    def test_a_function_that_calls_itself(self):
        done = self.emulate("__device__ int product(int n) { return n < 2 ? 1 : n * product(n - 1); }\n"
                            "__global__ void k(int* x) { x[threadIdx.x] = product(threadIdx.x); }\n"
                            "int main() {\n  int *x, last;\n  cudaMalloc(&x, 8 * sizeof(int));\n  k<<<1, 8>>>(x);\n"
                            "  cudaMemcpy(&last, x + 7, sizeof last, cudaMemcpyDeviceToHost);\n  return last != 5040;\n}\n", "--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_special_registers_and_logic(self):
        done = self.emulate('__global__ void k(unsigned* x) {\n  unsigned below, lane, one;\n  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));\n'
                            '  asm("mov.u32 %0, %laneid;" : "=r"(lane));\n  asm("lop3.b32 %0, %1, %1, %1, 3;" : "=r"(one) : "r"(lane));\n'
                            '  x[lane] = below + (one == ~lane);\n}\nvoid check_kernel(emulate::Run& run) {\n  unsigned* x = run.buffer<unsigned>("x", 32);\n'
                            '  k<<<1, 32>>>(x);\n  std::vector<unsigned> e(32);\n  for (int i = 0; i < 32; ++i) e[i] = 1u << i;\n'
                            '  run.expect_equal("x", run.host(x), e);\n}\n')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_a_file_has_of_inline_ptx_is_listed(self):
        done = self.emulate('__global__ void k(int x) {\n  asm("add.u32 %0, %0, 1;" : "+r"(x));\n  asm("vset4.u32.u32.eq %0, %0, 1, 2;" : "+r"(x));\n}\n'
                            "int main() {}\n", "--list-ptx")
        self.assertEqual((done.returncode, done.stdout), (0, "own.cu:2: add.u32\nown.cu:3: vset4.u32.u32.eq   not known: vset4.u32.u32.eq\n"), done.stderr)

    def test_headers_of_another_folder_and_arguments_of_main(self):
        (self.folder / "kernels").mkdir()
        (self.folder / "kernels/scale.cuh").write_text(
            "#pragma once\n__global__ void gemm(int* x, int by) { extern __shared__ int m[][2]; m[0][1] = by; x[0] *= m[0][1]; }\n"
            "#define LAUNCH(...) gemm<<<1, 1, 8>>>(__VA_ARGS__)\ninline void scale(int* x, int by) { LAUNCH(x, by); }\n")
        text = ("#include <scale.cuh>\n#include <cstdlib>\nint main(int argc, char** argv) {\n  int x = 5, *d;\n  cudaMalloc(&d, 4);\n"
                "  cudaMemcpy(d, &x, 4, cudaMemcpyHostToDevice);\n  scale(d, argc == 3 ? atoi(argv[2]) : 0);\n"
                "  cudaMemcpy(&x, d, 4, cudaMemcpyDeviceToHost);\n  return x == 35 ? 0 : 1;\n}\n")
        done = self.emulate(text, "-I", str(self.folder / "kernels"), "--", "by", "7")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.emulate(text, f"-I{self.folder}/kernels", "--", "by", "8").returncode, 1)

    def test_a_kernel_by_a_void_pointer(self):
        text = ("template <int kBy> __global__ void __cluster_dims__(kBy, 1, 1) k(int* x) { atomicAdd(x, kBy); }\n"
                "void check_kernel(emulate::Run& run) {\n  int* x = run.buffer(\"x\", std::vector<int>(1, 0));\n"
                "  void const* kernel = (void const*)&k<2>;\n  void* arguments[] = {&x};\n  cudaLaunchConfig_t config{};\n  config.gridDim = 4;\n"
                "  config.blockDim = 1;\n  cudaLaunchKernelExC(&config, kernel, arguments);\n"
                "  run.expect_equal(\"x\", run.host(x), std::vector<int>{8});\n}\n")
        done = self.emulate(text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_main_without_a_return_ends_as_one(self):
        done = self.emulate("__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n}\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_variables_of_the_file_begin_anew_in_each_schedule(self):
        done = self.emulate("__global__ void k(int* x) { x[0] = 1; }\nint main() {\n  static int* memory = nullptr;\n  static int runs = 0;\n"
                            "  if (!memory) cudaMalloc(&memory, 4);\n  k<<<1, 1>>>(memory);\n  return runs++;\n}\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_copies_in_other_modes_are_named(self):
        kernel = "__global__ void k() {%s}\nvoid check_kernel(emulate::Run&) { %s }\n"
        self.assertEqual(self.sentence("#include <cuda.h>\n" + kernel % ("", "cuTensorMapEncodeIm2colWide(1, 2);")),
                         "own.cu:3: the emulator has no cuTensorMapEncodeIm2colWide: that mode is Blackwell's.")

    def test_an_intrinsic_that_is_not_there_is_named(self):
        self.assertEqual(self.sentence("__global__ void k(int* x) {\n  x[0] = __isGlobal(x + 1);\n}\n"
                                       "void check_kernel(emulate::Run&) { k<<<1, 1>>>(nullptr); }\n"),
                         "own.cu:2: the emulator has no __isGlobal.")

    def test_what_the_runtime_does_not_have_is_named_with_a_way_out(self):
        text = "__global__ void k() {}\nint main() {\n  %s\n  k<<<1, 1>>>();\n  return 0;\n}\n"
        for line, name, instead in (("cudaIpcMemHandle_t shared;", "cudaIpcMemHandle_t", "memory cannot be shared with another process: allocate it"),
                                    ("cuModuleLoad(0, 0);", "cuModuleLoad", "launch the kernel by its name"),
                                    ("cudaProfilerSetMode(1);", "cudaProfilerSetMode", "leave it out with #ifndef")):
            self.assertIn(f"own.cu:3: the emulator has no {name}; {instead}", self.sentence(text % line))

    def test_an_index_outside_a_shared_array_is_reported(self):
        text = ("#include <cstdlib>\n__global__ void k(int* out, int first, int last) {\n  __shared__ int row[16];\n"
                "  for (int i = first + threadIdx.x; i <= last; i += 32) row[i] = 1;\n  __syncthreads();\n"
                "  out[threadIdx.x] = row[threadIdx.x % 16];\n}\n"
                "int main(int, char** argv) {\n  int* out;\n  cudaMalloc(&out, 128);\n  k<<<1, 32>>>(out, atoi(argv[1]), atoi(argv[2]));\n  return 0;\n}\n")
        for first, last, said in ((0, 16, "4 bytes past the end of __shared__ row (64 bytes)"),
                                  (-1, 15, "4 bytes before __shared__ row (64 bytes)")):
            done = self.emulate(text, "--", str(first), str(last))
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            self.assertIn("shared-out-of-bounds: a write of 4 bytes lies outside a __shared__ variable\n  where    own.cu:4", done.stderr)
            self.assertIn(f"  address  {said}", done.stderr)
        done = self.emulate(text, "--", "0", "15")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_map_in_another_layout_is_refused_in_one_sentence(self):
        text = ("#include <cstdlib>\n#include <cuda.h>\n__global__ void k(CUtensorMap) {}\nint main(int, char** argv) {\n  void* in;\n"
                "  cudaMalloc(&in, 8192);\n  const cuuint64_t extent[] = {8, 4, 2, 2}, stride[] = {(cuuint64_t)atoi(argv[1]), 1024, 2048};\n"
                "  const cuuint32_t box[] = {8, 4, 16, 1}, steps[] = {1, 1, 1, 1};\n  CUtensorMap map;\n"
                "  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, in, extent, stride, box,\n"
                "      steps, CU_TENSOR_MAP_INTERLEAVE_32B, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,\n"
                "      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n  k<<<1, 1>>>(map);\n}\n")
        self.assertEqual(self.emulate(text, "--", "256").returncode, 0)
        done = self.emulate(text, "--", "272")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("error: cuTensorMapEncodeTiled: the stride of dimension 1 of a tensor with slices of 32 bytes is 272 bytes; it must be "
                      "a multiple of 32", done.stderr)

    def test_a_kernel_that_never_ends_is_stopped(self):
        done = self.emulate("__global__ void k(const int* flag, int* out) {\n  while (flag[0] == 0) {\n  }\n  out[0] = 1;\n}\n"
                            "void check_kernel(emulate::Run& run) {\n"
                            "  k<<<1, 32>>>(run.buffer(\"flag\", std::vector<int>{0}), run.buffer<int>(\"out\", 1));\n}\n",
                            "--seconds", "0.5")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"^livelock: .*a loop that does not end\n  where    own.cu:\d")

    def test_host_code_that_never_ends_is_stopped(self):
        beside = "run for more than 0.2 s outside its launches"
        text = ("#include <cstring>\n#include <unistd.h>\n__global__ void k() {\n  volatile int i = 0;\n  while (i < 20000) i = i + 1;\n}\n"
                "static volatile int number;\nint main(int, char** argv) {\n  volatile int* seen = &number;\n  k<<<1, 32>>>();\n"
                "  if (!strcmp(argv[1], \"polls\")) while (*seen == 0) usleep(1000);\n"
                "  if (!strcmp(argv[1], \"launches\")) while (true) k<<<1, 32>>>();\n  while (true) {\n  }\n}\n")
        for loop, said in (("spins", {beside}), ("polls", {beside}),
                           # Between 4 s of launches a busy machine may spend 0.2 s as well.
                           ("launches", {beside, "launched kernels for more than 4 s"})):
            done = self.emulate(text, "--seconds", "0.2", "--", loop)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(done.stderr, {f"error: the host code has {one} and seems not to end; --seconds allows more\n"
                                        for one in said})

    def test_what_a_line_that_updates_lacks(self):
        """A reduction lacks a barrier where its reader writes elsewhere; a histogram lacks an atomic, as its reader writes there."""
        kernel = ("__global__ void k%d(int* out) {\n  __shared__ int s[256];\n  const int t = threadIdx.x;\n"
                  "  s[t] = t; __syncthreads();\n  %s  out[t] = s[t];\n}\n")
        bodies = ("for (int n = 128; n > 0; n /= 2)\n    if (t < n) s[t] += s[t + n];\n", "\n  s[t] = s[(t + 1) % 256];\n", "\n  s[t / 8] += t;\n")
        text = ("".join(kernel % one for one in enumerate(bodies)) + "int main(int count, char**) {\n  int* out;\n  cudaMalloc(&out, 1024);\n"
                "  (count == 1 ? k0 : count == 2 ? k1 : k2)<<<1, 256>>>(out);\n  return 0;\n}\n")
        for number, said in enumerate(("a barrier between the reads and the writes at own.cu:%d: thread ",
                                       "a barrier between the reads and the writes at own.cu:%d: thread ",
                                       "an atomic at own.cu:%d (atomicAdd, for example)")):
            done = self.emulate(text, "--", *["one more"] * number)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(f"\n  missing  {said % (6 + 8 * number)}", done.stderr)

    def test_a_kernel_that_touches_the_hosts_memory_is_reported(self):
        pointers = (("(int*)malloc(256)", "bytes that host code has allocated"), ("new int[64]", "bytes into 256 bytes that host code"),
                    ("v.data()", "bytes that host code has allocated"), ("local", "a variable on the host's stack"), ("device", ""), ("pinned", ""))
        text = ("#include <cstdlib>\n#include <vector>\nstruct Parameters { int* x; int table[4]; };\n"
                "__global__ void k(Parameters p) {\n  p.x[threadIdx.x] = p.table[threadIdx.x % 4];\n}\n"
                "int main(int, char** argv) {\n  std::vector<int> v(64);\n  int local[64];\n  Parameters p{nullptr, {1, 2, 3, 4}};\n"
                "  int *device, *pinned;\n  cudaMalloc(&device, 256);\n  cudaMallocHost(&pinned, 256);\n  switch (atoi(argv[1])) {\n"
                + "".join(f"    case {number}: p.x = {pointer}; break;\n" for number, (pointer, _) in enumerate(pointers)) +
                "  }\n  k<<<1, 64>>>(p);\n  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;\n}\n")
        for number, (pointer, said) in enumerate(pointers):
            done = self.emulate(text, "--", str(number))
            self.assertEqual(done.returncode, 3 if said else 0, pointer + done.stdout + done.stderr)
            if said:
                self.assertRegex(done.stderr, rf"(?m)^global-out-of-bounds: a kernel makes a write of 4 bytes in the host's memory\n  where    own.cu:5\n"
                                              rf"  by .*\n  address  .*{said}")

    def test_managed_memory_is_for_both_sides(self):
        text = ("#include <cstdio>\n__global__ void add(int n, int before, float* x, float* y) {\n"
                "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i - before] = x[i] + y[i];\n}\n"
                "int main(int count, char**) {\n  const int n = 1000, before = 2 * (count - 1);\n  float *x, *y;\n  cudaMallocManaged(&x, n * sizeof(float));\n"
                "  cudaMallocManaged(&y, n * sizeof(float));\n  for (int i = 0; i < n; i++) {\n    x[i] = 1;\n    y[i] = 2;\n  }\n"
                "  add<<<3, 256>>>(n, before, x, y);\n  cudaDeviceSynchronize();\n  int wrong = 0;\n"
                "  for (int i = 0; i < n; i++) wrong += y[i] != 3;\n  cudaFree(x);\n  cudaFree(y);\n  return wrong != 0;\n}\n")
        done = self.emulate(text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.emulate(text, "--", "shifted")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)

    def test_how_a_file_may_be_written(self):
        kernel = "__global__ void k() {}\n"
        check = "void check_kernel(emulate::Run&) { k<<<1, 1>>>(); }\n"
        self.assertEqual(self.sentence(kernel + check + "int main() { return 0; }\n"),
                         "own.cu has a main and a check_kernel, and either runs the kernels: leave one of them out.")
        self.assertEqual(self.emulate("\ufeff" + kernel + check).returncode, 0)  # as some editors save it
        file = self.folder / "two\nlines.cu"
        file.write_text(kernel + check)
        done = emulate(file)
        self.assertEqual((done.returncode, done.stderr), (2, "tools/emulate: error: the file's name contains a line break; "
                                                             "give it another name.\n"))

    ENDINGS = ("exit(0);", "if (runs == 1) exit(5); exit(0);", "if (runs == 1) abort(); exit(0);", "std::thread([] { exit(0); }).join();", "throw 42;",
               "return 5 / zero;", 'return strlen(zero ? "" : (char*)(long)zero);', "std::thread thread([] {});")

    def host_code(self, ending, *arguments):
        """A file with a main that launches a kernel and then does that."""
        cases = "".join(f"    case {number}: {{\n      {one}\n      break;\n    }}\n" for number, one in enumerate(self.ENDINGS))
        return self.emulate("#include <cstdlib>\n#include <cstring>\n#include <thread>\n__global__ void k(int* x) { x[0] = 1; }\n"
                            "static int runs;\nint main(int, char** argv) {\n  int* x;\n  volatile int zero = 0;\n  cudaMalloc(&x, 4);\n"
                            f"  k<<<1, 1>>>(x);\n  ++runs;\n  switch (atoi(argv[1])) {{\n{cases}  }}\n  return zero;\n}}\n",
                            *arguments, "--", str(self.ENDINGS.index(ending)))

    def test_how_host_code_may_end(self):
        done = self.host_code("exit(0);")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\n14 schedules on 4 SMs: no rule is broken", done.stdout)
        for ending, said in ((self.ENDINGS[1], "exit(5)"), (self.ENDINGS[2], "abort()")):
            done = self.host_code(ending)
            self.assertEqual((done.returncode, done.stderr), (1, f"wrong result: the host code ended with {said}\n"
                                                                 "  again    --schedule-seed 1 --completion random --sms 4\n"))
        done = self.host_code(self.ENDINGS[3])
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        # What crashes is told in one sentence.
        program = "tools/emulate: error: the program of own.cu was ended by "
        for ending, said in ((self.ENDINGS[4], "error: an exception that is not a std::exception was thrown"),
                             (self.ENDINGS[5], program + "SIGFPE: a division by zero."),
                             (self.ENDINGS[6], program + "SIGSEGV: it touched memory")):
            done = self.host_code(ending)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertTrue(done.stderr.startswith(said), done.stderr)
        done = self.host_code(self.ENDINGS[7])
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (2, program + "SIGABRT: abort(), an assertion, or an "
                                                                           "exception that nobody caught."))
        for value in ("nan", "inf", "0", "ten"):
            done = self.host_code("exit(0);", "--seconds", value)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(f"'{value}' is not a number of seconds from 0.1 to 3600", done.stderr)

    def test_a_full_stderr_leaves_the_status(self):
        file = self.folder / "own.cu"
        file.write_text("__global__ void k(int* x) { x[0] = threadIdx.x; }\n"
                        "void check_kernel(emulate::Run& run) { k<<<1, 64>>>(run.buffer<int>(\"x\", 1)); }\n")
        for arguments, status in (("", 3), ("--bogus", 2)):
            self.assertEqual(subprocess.run(f"{ROOT}/tools/emulate {file} {arguments} >/dev/null 2>/dev/full", shell=True,
                                            check=False).returncode, status)

    def test_a_program_with_a_main_runs_as_it_is(self):
        text = """#include <cstdio>
__device__ int sum;
__global__ void add(const int* x, int n) { if (threadIdx.x < n) atomicAdd(&sum, x[threadIdx.x]); assert(n > 3); }
int main() {
  const int host[4] = {1, 2, 3, 4};
  int* x;
  if (cudaMalloc(&x, sizeof host) != cudaSuccess) return 1;
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  int result = 0;
  cudaMemcpyToSymbol(sum, &result, sizeof result);
  add<<<1, 32>>>(x, N);
  if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpyFromSymbol(&result, sum, sizeof result);
  cudaFree(x);
  return result != 10;
}
"""
        done = self.emulate(text, "-D", "N=4", "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("own.cu: compiled with its loads and stores instrumented in ", done.stdout)
        done = self.emulate(text, "-DN=3", "--seeds", "2")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("assert: the assertion 'n > 3' does not hold\n  where    own.cu:3", done.stderr)
        self.assertNotIn("compiled", self.emulate(text, "-D", "N=4", "--seeds", "2").stdout)  # it was
