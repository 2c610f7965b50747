"""The device functions of CUDA's headers: each one that tests/own_kernel/intrinsics/names.txt lists compiles for the emulator with the listed
result, or exceptions.txt beside it has a reason why not."""
import os
import pathlib
import re
import tempfile
import unittest

from sandbox import ROOT
from test_emulate import emulate

FOLDER = ROOT / "tests/own_kernel/intrinsics"
NAMES = [line for line in (FOLDER / "names.txt").read_text().splitlines() if line and not line.startswith("#")]


def read_exceptions():
    """Name to reason."""
    reasons = {}
    reason = ""
    for line in (FOLDER / "exceptions.txt").read_text().splitlines():
        if line.startswith("reason: "):
            reason = line.removeprefix("reason: ")
        elif line and not line.startswith("#"):
            reasons[line] = reason
    return reasons


def name_of(function):
    return re.search(r"(\w+)\(", function)[1]


def call_of(function):
    """A statement that does not compile unless the function has these parameters and this result."""
    result, name, parameters = re.fullmatch(r"(.*?) (\w+)\((.*)\)", function).groups()
    call = f"{name}({', '.join(f'any<{parameter}>()' for parameter in parameters.split(', ') if parameter)})"
    return f"  static_assert(std::is_same_v<decltype({call}), {result}>);\n  static_cast<void>({call});\n"


def kernel_file(functions):
    return ('#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n\n#include <ctime>\n#include <type_traits>\n\n'
            "template <typename T>\n__device__ T any() {\n  return T();\n}\n"
            "__device__ void call_all() {\n" + "".join(map(call_of, functions)) + "}\n"
            "__global__ void nothing() {}\nvoid check_kernel(emulate::Run&) {\n  nothing<<<1, 1>>>();\n}\n")


class Intrinsics(unittest.TestCase):
    def setUp(self):
        if pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator")) != ROOT / "build/emulator":
            self.skipTest("tools/emulate uses build/emulator, and these tests are of another build")

    def run_with(self, functions):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "functions.cu"
            file.write_text(kernel_file(functions))
            return emulate(file, "--seeds", "1")

    def test_each_function_compiles(self):
        exceptions = read_exceptions()
        done = self.run_with([function for function in NAMES if name_of(function) not in exceptions])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_missing_function_is_noticed(self):
        done = self.run_with(["float __fadd_rn(float, float)", "float __no_such_function(float)"])
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("__no_such_function", done.stderr)

    def test_another_result_is_noticed(self):
        done = self.run_with(["int __fadd_rn(float, float)"])
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)

    def test_exceptions_are_listed_names_with_a_reason(self):
        names = set(map(name_of, NAMES))
        for name, reason in read_exceptions().items():
            self.assertIn(name, names)
            self.assertTrue(reason, name)

    def test_the_list_is_whole(self):
        names = set(map(name_of, NAMES))
        self.assertGreater(len(names), 900)
        for name in ("__hltu", "__float2half_rd", "__half2int_rz", "__ll2half_rn", "__bfloat162uint_ru", "__hcmadd", "__vabsdiffu4", "__dmul_rd", "__ffma2_rn"):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
