#!/usr/bin/env python3
"""The instructions of part VIII on the targets beside sm_100a: sm_103a has them all, and the family target sm_100f all but those whose scale vector has a name that only `a` targets know."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAIN = """
#include "ptx/convert.cuh"
#include "ptx/tcgen05_cp.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tcgen05_mma_scaled.cuh"
__global__ void kernel(unsigned* out, float x, unsigned long long a) {
  gemm::ptx::tcgen05_cp_32x128b_warpx4(0, a);
  gemm::ptx::tcgen05_mma_f16_ss(0, a, a, 0, true);
  *out = gemm::ptx::cvt_rn_satfinite_e2m1x2_f32(x, 2 * x);
  SCALED
}
"""
SCALED = """
  gemm::ptx::tcgen05_mma_mxf8f6f4_ss(0, a, a, 0, 0, 0, true);
  gemm::ptx::tcgen05_mma_mxf4nvf4_ss<4>(0, a, a, 0, 0, 0, true);
"""


@unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
class FamilyTargets(unittest.TestCase):
    def compiled(self, target, scaled):
        """None where nvcc does not know the target, otherwise what it says of it."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernel.cu"
            source.write_text(PLAIN.replace("SCALED", SCALED if scaled else ""), encoding="utf-8")
            code = f"arch=compute_{target},code=sm_{target}"
            done = subprocess.run(["nvcc", "-std=c++20", "--expt-relaxed-constexpr", "-cubin", "-gencode", code, f"-I{ROOT}/common", "-o", source.with_suffix(".cubin"), source],
                                  capture_output=True, text=True, check=False)
        if "Unsupported gpu architecture" in done.stderr:
            return None
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def test_sm_103a_has_every_instruction(self):
        self.assertIn(self.compiled("103a", True), ("", None))

    def test_the_family_target_lacks_only_names_of_scale_vectors(self):
        self.assertIn(self.compiled("100f", False), ("", None))
        said = self.compiled("100f", True)
        if said is None:
            return
        refused = set(re.findall(r"Feature '([^']*)' not supported", said))
        self.assertEqual(refused, {".scale_vec::1X", ".scale_vec::4X"})


if __name__ == "__main__":
    unittest.main()
