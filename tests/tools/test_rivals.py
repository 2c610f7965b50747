"""tools/rivals: what it refuses, and what it makes of a checkout that has the right files."""
import unittest

from sandbox import SandboxTest, make_executable

KERNEL = "deep_gemm/include/deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh"
CUTLASS = "third-party/cutlass/include/cute/tensor.hpp"
CLONE = "git clone --recurse-submodules https://github.com/deepseek-ai/DeepGEMM"


class Rivals(SandboxTest):
    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "DeepGEMM"

    def fake_checkout(self, *names):
        for name in names:
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / name).write_text("#error not DeepGEMM\n")

    def fake_machine(self, built="echo raced $*"):
        """A Hopper, and a cmake that makes what it is asked for: a program that says its arguments."""
        self.installed("catch2", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "python3-venv", "python3-jsonschema")
        for program in ("g++", "c++", "ninja", "ccache"):
            self.fake(program, "")
        self.fake("nvidia-smi", 'echo "NVIDIA H200, 9.0"')
        folder = self.repository / "build/gpu"
        program = self.folder / "made"
        make_executable(program, f"#!/bin/bash\n{built}\n")
        self.fake("cmake", f"""[ "$1" = --version ] && echo cmake version 3.25.1 && exit 0
            mkdir -p {folder}/bin; touch {folder}/build.ninja; cat {program} >{folder}/bin/rivals; chmod +x {folder}/bin/rivals""")
        return str(make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n'))

    def scaled(self, step):
        """What a kernel with scales of blocks says of itself."""
        (self.repository / "steps" / step / "kernel.cuh").write_text("Scaling::kBlocks\n")

    def race(self, *arguments, **environment):
        return self.run_tool("rivals", str(self.checkout), *arguments, **environment)

    def test_without_a_checkout_it_says_what_it_needs(self):
        self.assert_refused(self.run_tool("rivals"), "name the folder of a checkout of DeepGEMM", CLONE)
        self.assert_refused(self.race(), f"there is no folder '{self.checkout}'", CLONE)
        self.checkout.mkdir()
        self.assert_refused(self.race(), "is no checkout of DeepGEMM", KERNEL, CLONE)
        self.fake_checkout(KERNEL)
        self.assert_refused(self.race(), "lacks its submodule third-party/cutlass", "submodule update --init")
        self.assertEqual(self.calls(), [])  # nothing was installed or built

    def test_wrong_arguments_are_refused_before_anything_is_built(self):
        self.fake_checkout(KERNEL, CUTLASS)
        self.assert_refused(self.race("--backend", "emulator"), "needs a Hopper GPU: leave --backend emulator out")
        self.assert_refused(self.race("99", "4096"), "there is no step '99'")
        self.assert_refused(self.race("4096", "--sms"), "--sms needs a value")
        self.assert_refused(self.race("4096", "--sms", "many"), "--sms is 'many'")
        self.assert_refused(self.race("4096", "--groups", "4:equal"), "name it, as in tools/rivals CHECKOUT 52")
        self.scaled("03_register_tile")
        self.assert_refused(self.race("01", "03", "4096"), "03_register_tile multiplies another type")
        self.assert_refused(self.race("01", "4096", "--groups", "4:equal/64"), "groups with room for more rows are raced in fp8 only")
        self.assertEqual(self.calls(), [])

    def test_without_a_gpu_there_is_no_race(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine()
        self.installed("catch2", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "python3-venv", "python3-jsonschema",
                       "libboost-context-dev")
        self.fake("nvidia-smi", "exit 9")
        self.assert_refused(self.race("01", "4096", CUDACXX=nvcc), "a race needs a Hopper GPU (nvidia-smi finds no usable GPU)")

    def test_the_build_gets_the_shapes_and_steps_and_the_program_the_words(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine()
        done = self.race("01:8x32", "4096", "64x2112x7168", "--seed", "123", "--sms", "114", "02", CUDACXX=nvcc)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "raced 01:8x32 4096x4096x4096 64x2112x7168 --seed 123 02")
        configured = [call for call in self.calls() if "GEMM_RIVAL_CHECKOUT" in call]
        self.assertEqual(len(configured), 1)
        for part in (f"-DGEMM_RIVAL_CHECKOUT={self.checkout} ", "-DGEMM_RIVAL_SMS=114 ", "-DGEMM_RIVAL_STEPS=01_naive",
                     "-DGEMM_RIVAL_SHAPES=4096x4096x4096;64x2112x7168 "):
            self.assertIn(part, configured[0])

    def test_the_record_gets_the_commit_of_the_checkout_and_of_no_other_folder(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine()
        for top, commit in ((self.checkout, "54e2261a"), (self.folder, "")):
            self.fake("git", f'case "$*" in *show-toplevel) echo {top} ;; *) echo 54e2261a ;; esac')
            self.assertEqual(self.race("01", "4096", CUDACXX=nvcc).returncode, 0)
            self.assertIn(f"-DGEMM_RIVAL_COMMIT={commit} ", [call for call in self.calls() if "GEMM_RIVAL" in call][-1])

    def test_the_steps_say_what_is_multiplied(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine()
        self.scaled("02_shared_tile")
        self.scaled("03_register_tile")
        for arguments, form, steps in (([], "BlockScales", "02_shared_tile;03_register_tile"), (["03"], "BlockScales", "03_register_tile"),
                                       (["01"], "Bf16", "01_naive"), (["01", "--groups", "4:equal"], "Bf16Groups", "01_naive"),
                                       (["03", "--groups", "4:equal"], "BlockScalesGroups", "03_register_tile"),
                                       (["03", "--groups=16:equal:1:256/64"], "BlockScalesMasked", "03_register_tile")):
            done = self.race(*arguments, CUDACXX=nvcc)
            self.assertEqual(done.returncode, 0, done.stderr)
            configured = [call for call in self.calls() if "GEMM_RIVAL_CHECKOUT" in call][-1]
            self.assertIn(f"-DGEMM_RIVAL_FORM={form} ", configured)
            self.assertIn(f"-DGEMM_RIVAL_GROUPS={16 if form.endswith('Masked') else 4 if form.endswith('Groups') else 1} ", configured)
            self.assertTrue(configured.endswith(f"-DGEMM_RIVAL_STEPS={steps}"), configured)
            self.assertIn("4096x7168x16384", done.stdout)

    def test_headers_that_do_not_compile_are_told_in_a_sentence(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine()
        body = (self.bin / "cmake").read_text()
        (self.bin / "cmake").write_text(
            body + '\ncase "$*" in *--build*rivals*) echo "FAILED: kernels.o"; echo "nvcc"; echo "error: not DeepGEMM"; exit 1 ;; esac\n')
        done = self.race("01", "4096", CUDACXX=nvcc)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("error: not DeepGEMM", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], "building rivals for the gpu preset failed")

    def test_a_wrong_result_keeps_its_status(self):
        self.fake_checkout(KERNEL, CUTLASS)
        nvcc = self.fake_machine("echo FAILED; exit 1")
        self.assertEqual(self.race("01", "4096", CUDACXX=nvcc).returncode, 1)


if __name__ == "__main__":
    unittest.main()
