"""The emulator on 64-bit Arm: cross-compiled, its tests under qemu-user."""
import os
import pathlib
import shutil
import subprocess
import unittest

from sandbox import ROOT

SYSROOT = pathlib.Path(os.environ.get("GEMM_STEPS_SYSROOT", ROOT / ".toolchain/arm64"))
BUILD = ROOT / "build/emulator-aarch64"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          cwd=ROOT, **options)


class Arm64(unittest.TestCase):
    def setUp(self):
        for tool in ("aarch64-linux-gnu-g++", "qemu-aarch64"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not here")
        if not (SYSROOT / "complete").exists():
            done = run("tools/lib/arm64.sh", SYSROOT)
            if done.returncode:
                self.skipTest(done.stderr.strip().split("\n")[-1])

    def test_long_the_emulators_tests_under_qemu(self):
        for command in (("cmake", "--preset", "emulator-aarch64"),
                        ("cmake", "--build", BUILD, "-j2", "--target", "tests_emulator")):
            done = run(*command, env={**os.environ, "GEMM_STEPS_SYSROOT": str(SYSROOT)})
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        path = f"{SYSROOT}/bin:{os.environ['PATH']}"
        done = run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E",
                   f"LD_LIBRARY_PATH={SYSROOT}/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib", BUILD / "tests/tests_emulator",
                   "~[long]", env={**os.environ, "PATH": path})
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        self.assertIn("All tests passed", done.stdout)
