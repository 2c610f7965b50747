"""cmake --install, and another project that checks its kernels with find_package(gemm_emulator)."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from sandbox import ROOT

KERNEL = """#include "limit.h"
__global__ void turn(const int* from, int* to) {
  __shared__ int scratch[LIMIT];
  scratch[threadIdx.x] = from[threadIdx.x];
#ifndef NO_BARRIER
  __syncthreads();
#endif
  to[threadIdx.x] = scratch[LIMIT - 1 - threadIdx.x];
}
void check_kernel(emulate::Run& run) {
  const std::vector<int> values = run.small_integers<int>(LIMIT);
  const int* from = run.buffer("from", values);
  int* to = run.buffer<int>("to", LIMIT);
  turn<<<1, LIMIT>>>(from, to);
  run.expect_equal("to", run.host(to), std::vector<int>(values.rbegin(), values.rend()));
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES NONE)
enable_testing()
find_package(gemm_emulator REQUIRED)
gemm_emulator_add_test(turn kernels/turn.cu ARGUMENTS --seeds 2 INCLUDE_DIRECTORIES include)
gemm_emulator_add_test(turn_without_barrier kernels/turn.cu DEFINITIONS NO_BARRIER INCLUDE_DIRECTORIES include)
"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
        if build != ROOT / "build/emulator":
            raise unittest.SkipTest("the emulator is installed from build/emulator, and these tests are of another build")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        done = run("cmake", "--install", build, "--prefix", cls.folder / "first")
        assert done.returncode == 0, done.stderr
        cls.prefix = cls.folder / "a prefix"  # what is installed can be moved, also into a folder with a space
        (cls.folder / "first").rename(cls.prefix)

    def project(self, name):
        folder = self.folder / name
        (folder / "kernels").mkdir(parents=True)
        (folder / "include").mkdir()
        (folder / "CMakeLists.txt").write_text(PROJECT)
        (folder / "kernels/turn.cu").write_text(KERNEL)
        (folder / "include/limit.h").write_text("#define LIMIT 64\n")
        return folder, folder / "build"

    def configure(self, folder):
        return run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_another_project_checks_its_kernels(self):
        folder, build = self.project("other")
        done = self.configure(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("cmake", "--build", build)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = run("ctest", "--test-dir", build, "--output-on-failure")
        self.assertRegex(done.stdout, r"turn \.+ +Passed")
        self.assertRegex(done.stdout, r"turn_without_barrier \.+\*+Failed")
        self.assertIn("shared-", done.stdout)
        self.assertIn("by thread", done.stdout)
        self.assertIn("kernels/turn.cu:8", done.stdout)  # a path of that project
        self.assertNotIn(str(folder), done.stdout.split("shared-")[1])
        # Nothing has changed: nothing is compiled. A header has: both are.
        self.assertIn("no work to do", run("cmake", "--build", build).stdout)
        (folder / "include/limit.h").write_text("#define LIMIT 96\n")
        self.assertEqual(run("cmake", "--build", build).stdout.count("Compiling kernels/turn.cu"), 2)

    def test_what_does_not_fit_is_one_sentence(self):
        folder, _ = self.project("wrong")
        (folder / "CMakeLists.txt").write_text(PROJECT.replace("kernels/turn.cu ARG", "kernels/tern.cu ARG"))
        self.assertIn("there is no file", self.configure(folder).stderr)
        (folder / "CMakeLists.txt").write_text(PROJECT.replace("ARGUMENTS", "ARGS"))
        self.assertIn("does not know 'ARGS;--seeds;2", self.configure(folder).stderr.replace("\n", " "))
        compiler = self.prefix / "bin/emulate-cc"
        (folder / "none.cu").write_text("int f();\n")
        for arguments, sentence in [
                ([], "name a kernel's file: emulate-cc FILE.cu -o PROGRAM."),
                (["none.cu"], "name the program: emulate-cc none.cu -o PROGRAM."),
                (["none.cu", "more.cu", "-o", "p"], "there is no file 'more.cu'."),
                (["none.cu", "-o", "p"], "none.cu has no kernel: no function in it is __global__."),
                (["none.cu", "-o"], "-o needs a value (emulate-cc --help)."),
                (["none.cu", "-o", "p", "--fast"], "there is no argument '--fast' (emulate-cc --help)."),
                (["gone.cu", "-o", "p"], "there is no file 'gone.cu'."),
                (["none.cu", "-o", "nowhere/p"], "nothing can be written beside 'nowhere/p'.")]:
            done = run(compiler, *arguments, cwd=folder)
            self.assertEqual((done.returncode, done.stderr.rstrip().split("\n")[-1]), (2, f"emulate-cc: error: {sentence}"))
        self.assertEqual(sorted(path.name for path in folder.iterdir() if path.name.startswith((".part", "p"))), [])

    def test_nothing_installed_needs_the_source_tree(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and path.suffix not in (".a", ".h", ".cuh") and path.name != "emulate_rewrite":
                self.assertNotIn(str(ROOT).encode(), path.read_bytes(), path)
        for header in ("ptx/wgmma.cuh", "emulator/cuda/cuda/ptx", "emulator/include/ptx/wgmma.cuh"):
            self.assertTrue((self.prefix / "include/gemm_emulator" / header).is_file(), header)
