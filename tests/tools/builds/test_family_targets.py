#!/usr/bin/env python3
"""The instructions of part VIII: which machine code sm_100a has for the forms of tcgen05.cp and of the block-scaled tcgen05.mma, most of which no step uses; sm_103a has them all, and the family target sm_100f all but those whose scale vector has a name that only `a` targets know."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHAPES = {"128x256b": "", "128x128b": ".128dp128bit", "4x256b": ".4dp256bit", "64x128b_warpx2_02_13": ".2x64dp128bit_lw02_lw13",
          "64x128b_warpx2_01_23": ".2x64dp128bit_lw01_lw23", "32x128b_warpx4": ".4x32dp128bit"}
FORMATS = {"": "", "_b8x16_b4x16_p64": ".U4x16P64", "_b8x16_b6x16_p32": ".U6x16P32"}
SCALED = {"mxf8f6f4_ss<": ("UTCQMMA{} gdesc", "a"), "mxf8f6f4_ts<": ("UTCQMMA{} tmem", "0"), "mxf4_ss<": ("UTCOMMA{} gdesc", "a"),
          "mxf4nvf4_ss<2, ": ("UTCOMMA{} gdesc", "a"), "mxf4nvf4_ss<4, ": ("UTCOMMA{}.4X gdesc", "a")}
KERNEL = """
#include "ptx/convert.cuh"
#include "ptx/tcgen05_cp.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tcgen05_mma_scaled.cuh"
using namespace gemm::ptx;
template <int kGroup> __device__ void plain(unsigned long long a) { %s }
template <int kGroup> __device__ void scaled(unsigned long long a) { %s }
__global__ void one(unsigned* out, float x, unsigned long long a) {
  tcgen05_mma_f16_ss(0, a, a, 0, true);
  *out = cvt_rn_satfinite_e2m1x2_f32(x, 2 * x);
  plain<1>(a);
  SCALED<1>(a);
}
__global__ void pair(unsigned long long a) {
  plain<2>(a);
  SCALED<2>(a);
}
""" % (" ".join(f"tcgen05_cp_{shape}{form}<kGroup>(0, a);" for shape in SHAPES for form in FORMATS),
       " ".join(f"tcgen05_mma_{name}kGroup>(0, {a}, a, 0, 0, 0, true);" for name, (_, a) in SCALED.items()))
NVDISASM = shutil.which("nvdisasm") or shutil.which("nvdisasm", path=ROOT / ".toolchain/bin")


@unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
class FamilyTargets(unittest.TestCase):
    def compiled(self, target, scaled, disassembles=False):
        """None where nvcc does not know the target, otherwise what it says of it; or the machine code."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernel.cu"
            source.write_text(KERNEL.replace("SCALED", "scaled" if scaled else "plain"), encoding="utf-8")
            code = f"arch=compute_{target},code=sm_{target}"
            done = subprocess.run(["nvcc", "-std=c++20", "--expt-relaxed-constexpr", "-cubin", "-gencode", code, f"-I{ROOT}/common", "-o", source.with_suffix(".cubin"), source],
                                  capture_output=True, text=True, check=False)
            if disassembles and done.returncode == 0:
                return subprocess.run([NVDISASM, "-c", source.with_suffix(".cubin")], capture_output=True, text=True, check=True).stdout
        if "Unsupported gpu architecture" in done.stderr:
            return None
        return "" if done.returncode == 0 else done.stdout + done.stderr

    @unittest.skipUnless(NVDISASM, "nvdisasm is not installed")
    def test_sm_100a_has_an_instruction_for_each_form(self):
        listing = self.compiled("100a", True, disassembles=True)
        found = re.findall(r"(UTCCP\S*|UTC[QO]MMA\S* (?:gdesc|tmem))", listing)
        for group in ("", ".2CTA"):
            expected = [f"UTCCP.T.S{group}{shape}{form}" for shape in SHAPES.values() for form in FORMATS.values()]
            expected += [code.format(group) for code, _ in SCALED.values()]
            self.assertEqual(sorted(one for one in found if (".2CTA" in one) == bool(group)), sorted(expected))

    def test_sm_103a_has_every_instruction(self):
        self.assertIn(self.compiled("103a", True), ("", None))

    def test_the_family_target_lacks_only_names_of_scale_vectors(self):
        self.assertIn(self.compiled("100f", False), ("", None))
        said = self.compiled("100f", True)
        if said is None:
            return
        refused = set(re.findall(r"Feature '([^']*)' not supported", said))
        self.assertEqual(refused, {".scale_vec::1X", ".scale_vec::2X", ".scale_vec::4X"})


if __name__ == "__main__":
    unittest.main()
