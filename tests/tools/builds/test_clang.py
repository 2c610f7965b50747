"""The emulator built by clang: its libraries, some steps, and kernels' files that clang instruments."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from sandbox import ROOT

BUILD = ROOT / "build/emulator-clang"
STEPS = {"01": "01_naive", "11": "11_mbarrier_ring", "22": "22_peak", "45": "45_four_bit_weights", "54": "54_map_updates"}


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          cwd=ROOT)


class Clang(unittest.TestCase):
    def setUp(self):
        if not shutil.which("clang++"):
            self.skipTest("clang++ is not here")
        if pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator")) != ROOT / "build/emulator":
            self.skipTest("once is enough: this test has a build of its own")

    def succeed(self, *command):
        done = run(*command)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        return done.stdout

    def test_long_clang_builds_the_emulator_steps_and_kernels_files(self):
        self.succeed("cmake", "--preset", "emulator-clang")
        self.succeed("cmake", "--build", BUILD, "-j2", "--target", "emulate", *STEPS.values())
        for step in STEPS.values():
            with self.subTest(step=step):
                self.assertIn("verified launches", self.succeed(BUILD / "bin" / step, "--check"))
        with tempfile.TemporaryDirectory(prefix="gemm-steps-test.") as folder:
            for name, broken in (("tma_ring", "ONE_WARPGROUP"), ("softmax", "ONE_BARRIER_LESS"), ("pipelines", "NO_RELEASE")):
                file = ROOT / f"tests/own_kernel/{name}.cu"
                program = pathlib.Path(folder) / name
                compile_it = [ROOT / "tools/own_kernel/emulate-cc", file, "-o", program, "--kit", BUILD / "emulate/kit"]
                with self.subTest(name=name):
                    self.succeed(*compile_it)
                    self.assertIn("no rule is broken, and the results are right", self.succeed(program, "--seeds", "4"))
                with self.subTest(name=name, broken=broken):
                    self.succeed(*compile_it, "-D", broken)
                    self.assertEqual(run(program).returncode, 3)
