"""cmake/GemmToolchain.cmake: what the user chose stays, and the presets say what is special to them."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES CXX)
include("{root}/cmake/GemmToolchain.cmake")
foreach(variable IN ITEMS CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER CMAKE_CXX_FLAGS_RELWITHDEBINFO)
  message(STATUS "${{variable}}=[${{${{variable}}}}]")
endforeach()
"""


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "cmake or ninja is not installed")
class Toolchain(unittest.TestCase):
    def configure(self, *definitions, backend="emulator"):
        """The variables after the toolchain file was included by a project of nothing else."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "CMakeLists.txt").write_text(PROJECT.format(root=ROOT.as_posix()), encoding="utf-8")
            done = subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", "-G", "Ninja",
                                   f"-DGEMM_STEPS_BACKEND={backend}", "-DGEMM_CCACHE=/usr/bin/ccache", *definitions],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line[3:].split("=", 1) for line in done.stdout.splitlines() if line.startswith("-- CMAKE_")]
        return {name: value.strip("[]") for name, value in lines}

    def test_ccache_starts_the_compiler_unless_the_user_chose_something_else(self):
        name = "CMAKE_CXX_COMPILER_LAUNCHER"
        self.assertEqual(self.configure()[name], "/usr/bin/ccache")
        self.assertEqual(self.configure(f"-D{name}=/usr/bin/env")[name], "/usr/bin/env")
        self.assertEqual(self.configure(f"-D{name}=")[name], "")

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    def test_the_log_of_ptxas_is_kept_with_any_launcher(self):
        name = "CMAKE_CUDA_COMPILER_LAUNCHER"  # without one of the user's it is ccache, as above
        found = self.configure(f"-D{name}=/usr/bin/env", backend="gpu")[name]
        self.assertRegex(found, "/cmake/keep_ptxas_log;/usr/bin/env$")

    def test_only_the_preset_of_the_sanitizers_leaves_out_the_optimiser(self):
        name = "CMAKE_CXX_FLAGS_RELWITHDEBINFO"
        ordinary = self.configure("-DCMAKE_BUILD_TYPE=RelWithDebInfo")[name]
        self.assertIn("-O2", ordinary)
        self.assertNotIn("NDEBUG", ordinary)  # asserts stay on
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        flags = {preset["name"]: preset.get("cacheVariables", {}).get(name) for preset in presets}
        self.assertEqual({preset for preset, value in flags.items() if value}, {"emulator-asan"})
        self.assertEqual(self.configure(f"-D{name}={flags['emulator-asan']}")[name], "-O0 -g1")
