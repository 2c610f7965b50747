"""The shell scripts: what they install, what they refuse, what they print."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import ptxas_log
from sandbox import ROOT, SandboxTest, make_executable

LIBRARIES = ["catch2", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "libboost-context-dev", "python3-venv",
             "python3-jsonschema"]
PROGRAMS = ["g++", "cmake", "ninja", "ccache"]


class Steps(SandboxTest):
    def test_every_spelling_of_a_step_is_understood(self):
        for spelling in ("01", "1", "naive", "01_naive", "steps/01_naive", "01_naive/"):
            done = self.shell(f"resolve_step '{spelling}'; echo $resolved_step")
            self.assertEqual(done.stdout, "01_naive\n", done.stderr)

    def test_an_unknown_step_is_answered_with_the_nearest_and_the_list(self):
        self.assert_refused(self.run_tool("run", "shard_tile"), "'shard_tile'", "did you mean 02_shared_tile",
                            "01_naive 02_shared_tile 03_register_tile")
        self.assert_refused(self.run_tool("run", "99"), "there is no step '99'")

    def test_an_unknown_step_is_refused_without_python_too(self):
        (self.bin / "python3").unlink()
        self.assert_refused(self.run_tool("run", "shard_tile"), "there is no step 'shard_tile'", "02_shared_tile")

    def test_an_unknown_step_installs_nothing(self):
        self.installed()
        self.fake("apt-get", "")
        self.run_tool("run", "nonsense")
        self.assertEqual(self.calls(), [])

    def test_no_step_is_answered_with_the_list(self):
        self.assert_refused(self.run_tool("compare"), "01_naive 02_shared_tile 03_register_tile")

    def test_an_unknown_backend_is_refused(self):
        self.assert_refused(self.run_tool("run", "01", "--backend", "cpu"), "'cpu'", "gpu or emulator")
        self.assert_refused(self.run_tool("run", "01", "--backend"), "gpu or emulator")

    def test_an_argument_too_many_is_refused(self):
        self.assert_refused(self.run_tool("format", "--check", "x.cpp"), "'x.cpp' is one argument too many", "--check")
        self.assert_refused(self.run_tool("lint", "--text", "x.cpp"), "'x.cpp' is one argument too many", "--text")

    def test_help_is_the_first_comment(self):
        for tool in ("run", "test", "compare", "profile", "measuring", "diff-steps", "bootstrap", "format", "lint"):
            done = self.run_tool(tool, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(f"Usage: tools/{tool}"), done.stdout)
            self.assertNotIn("shellcheck source", done.stdout)

    def test_outside_of_git_there_is_nothing_to_format_or_lint(self):
        self.fake("clang-format-14", "echo clang-format version 14.0.6")
        for arguments in (("format", "--check"), ("format",), ("lint", "--text")):
            self.assert_refused(self.run_tool(*arguments), "is not a git repository that can be read")
        (self.bin / "git").unlink()
        self.assert_refused(self.run_tool("format", "--check"), "git is not installed")

    def test_machine_code_is_not_built_for_arguments_that_are_wrong(self):
        self.fake("cmake", "")
        for arguments, part in ((["99"], "there is no step '99'"), (["diff", "02"], "diff compares two steps"),
                                (["diff", "02", "99"], "there is no step '99'"), (["diff", "01", "02", "03"], "two steps"),
                                (["check", "99"], "there is no step '99'"), (["update", "all", "99"], "there is no step"),
                                (["02", "03"], "tools/sass diff 02 03 compares two"), (["--full"], "name a step"),
                                (["02", "--varian", "32"], "unknown flag '--varian'; did you mean --variant?"),
                                (["02", "--variant"], "--variant needs a value")):
            self.assert_refused(self.run_tool("sass", *arguments), part)
        self.assertEqual(self.calls(), [])

    def test_machine_code_needs_a_compiler_before_the_reader_is_built(self):
        for program in ("g++", "c++", "ninja", "ccache"):
            self.fake(program, "")
        self.fake("cmake", "echo cmake version 3.25.1")
        for arguments in (["02"], ["02:32", "--full"], ["diff", "01:8x32", "02", "--variant=64"], ["check"], ["check", "all"],
                          ["update", "02", "03"]):
            self.assert_refused(self.run_tool("sass", *arguments), "needs nvcc, which is not here", "tools/bootstrap --cuda")
        self.assertEqual([call for call in self.calls() if "--build" in call], [])

    def test_every_script_runs_through_a_link_and_under_another_shell(self):
        scripts = [path for path in sorted((self.repository / "tools").iterdir())
                   if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")]
        self.assertGreater(len(scripts), 11)
        link = self.folder / "link"
        link.symlink_to("middle")
        for script in scripts:
            (self.folder / "middle").unlink(missing_ok=True)
            (self.folder / "middle").symlink_to(script)
            for command in ([link], ["sh", script], ["bash", "--posix", script], ["sh", link]):
                done = subprocess.run([*command, "--help"], env=self.variables(), cwd=self.folder, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{command}")
                self.assertTrue(done.stdout.startswith(f"Usage: tools/{script.name}"), done.stdout)
                self.assertNotIn("shellcheck source", done.stdout)
        link.unlink()
        link.symlink_to(self.repository / "tools/run")
        done = subprocess.run([link, "01", "--backend", "cpu"], env=self.variables(), capture_output=True, text=True, check=False)
        self.assert_refused(done, "tools/run: error: --backend is 'cpu'")


class Generators(unittest.TestCase):
    """What runs from the repository itself, and takes no argument in silence."""

    def said(self, *command):
        return subprocess.run([str(ROOT / command[0]), *command[1:]], capture_output=True, text=True, check=False, timeout=20)

    def test_the_ci_explains_itself(self):
        for command in ([ROOT / ".ci/run"], ["sh", ROOT / ".ci/run"]):
            done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=20)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("Usage: .ci/run\n"), done.stdout)
        done = self.said(".ci/run", "--hlep")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", ".ci/run: error: unknown argument '--hlep'; there is only --help.\n"))


class Bootstrap(SandboxTest):
    def setUp(self):
        super().setUp()
        for program in PROGRAMS:
            self.fake(program, "")
        self.fake("id", "echo 1000")

    def test_nothing_missing_is_quiet_and_quick(self):
        self.installed(*LIBRARIES)
        started = time.monotonic()
        done = self.run_tool("bootstrap")
        self.assertLess(time.monotonic() - started, 1)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_without_root_and_sudo_the_exact_packages_are_printed(self):
        self.installed("libfmt-dev", "python3-venv", "python3-jsonschema")
        (self.bin / "ninja").unlink()
        done = self.run_tool("bootstrap")
        self.assert_refused(done, "not root", "apt-get install -y ninja-build catch2 libcli11-dev nlohmann-json3-dev "
                            "libboost-context-dev\n")

    def test_a_sudo_that_wants_a_password_is_not_waited_for(self):
        self.installed()
        self.fake("sudo", "exit 1")
        self.fake("apt-get", "")
        self.assert_refused(self.run_tool("bootstrap"), "sudo wants a password", "sudo apt-get install -y")
        self.assertFalse([call for call in self.calls() if call.startswith("apt-get")])

    def test_root_installs_what_is_missing_and_says_so(self):
        self.fake("id", "echo 0")
        self.fake("apt-get", "")
        self.installed(*LIBRARIES[1:])
        done = self.run_tool("bootstrap")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "tools/bootstrap: installing catch2\n")
        self.assertEqual([call for call in self.calls() if call.startswith("apt-get")],
                         ["apt-get update", "apt-get install -y --no-install-recommends catch2"])

    def test_sudo_is_used_when_it_asks_nothing(self):
        self.fake("sudo", '[ "$1" = -n ] && shift; "$@"')
        self.fake("apt-get", "")
        self.installed(*LIBRARIES[1:])
        self.assertEqual(self.run_tool("bootstrap").returncode, 0)
        self.assertIn("apt-get install -y --no-install-recommends catch2", self.calls())

    def test_a_failed_installation_is_a_failure(self):
        self.fake("id", "echo 0")
        self.fake("apt-get", 'echo "E: Unable to locate package"; exit 100')
        self.installed()
        done = self.run_tool("bootstrap")
        self.assertEqual(done.returncode, 2)
        self.assertIn("E: Unable to locate package", done.stderr)
        self.assertIn("could not install catch2", done.stderr)

    def test_a_library_that_cmake_finds_needs_no_package(self):
        self.installed("python3-venv", "python3-jsonschema")
        self.fake("c++", "")
        self.fake("cmake", 'printf -- "-- found %s\\n" libcli11-dev libfmt-dev nlohmann-json3-dev libboost-context-dev')
        self.assert_refused(self.run_tool("bootstrap"), "not root", "apt-get install -y catch2\n")

    def test_before_a_build_only_what_it_needs_is_a_reason_to_install(self):
        self.fake("ccache", "")
        (self.bin / "ccache").unlink()
        self.installed(*set(LIBRARIES) - {"libboost-context-dev"})
        self.assertEqual(self.shell("ensure_base").returncode, 0)
        self.installed(*set(LIBRARIES) - {"libboost-context-dev", "catch2"})
        self.assert_refused(self.shell("ensure_base"), "apt-get install -y ccache catch2 libboost-context-dev\n")

    def test_boost_is_for_the_emulator(self):
        self.installed(*set(LIBRARIES) - {"libboost-context-dev"})
        self.fake("cmake", "echo cmake version 3.25.1")
        self.fake("c++", "")
        self.fake("nvidia-smi", 'echo "NVIDIA H200, 9.0"')
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.assertEqual(self.shell("prepare auto; echo $backend", CUDACXX=str(nvcc)).stdout, "gpu\n")
        self.assert_refused(self.shell("prepare auto"), "apt-get install -y libboost-context-dev\n")

    def test_a_toolkit_that_cannot_be_fetched_leaves_nothing_behind(self):
        self.installed(*LIBRARIES)
        self.fake("python3", '[ "$3" = --version ] || { mkdir -p "${@: -9:1}"; echo "no matching wheel"; exit 1; }')
        done = self.run_tool("bootstrap", "--cuda")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("no matching wheel", done.stderr)
        self.assertIn("CUDA Toolkit could not be fetched", done.stderr)
        self.assertEqual(list((self.repository / ".toolchain").iterdir()), [])

    def fake_pip(self, *tools):
        """pip that unpacks a toolkit made of scripts."""
        tool = '#!/bin/bash\\necho "#\\$ TOP=$(dirname "$0")/.."\\n'
        make = "\n".join(f"printf '{tool}' >$target/nvidia/cu13/bin/{name}; chmod +x $target/nvidia/cu13/bin/{name}"
                         for name in tools)
        self.fake("python3", f"""[ "$3" = --version ] && exit 0
            while [ "$1" != --target ]; do shift; done
            target=$2
            mkdir -p $target/nvidia/cu13/bin $target/nvidia/cu13/lib $target/nvidia/cu13/include
            touch $target/nvidia/cu13/lib/libcublas.so.13
            {make}""")

    def test_a_fetched_toolkit_is_found_afterwards(self):
        self.installed(*LIBRARIES)
        self.fake_pip("nvcc", "cuobjdump", "nvdisasm")
        done = self.run_tool("bootstrap", "--cuda")
        self.assertEqual(done.returncode, 0, done.stderr)
        toolkit = self.repository / ".toolchain" / "cuda"
        self.assertEqual((toolkit / "lib64" / "libcublas.so").resolve(), toolkit / "lib" / "libcublas.so.13")
        done = self.shell('find_cuda; echo "$nvcc $CUDACXX $CUDAToolkit_ROOT"; command -v cuobjdump')
        self.assertEqual(done.stdout.split(), [str(toolkit / "bin/nvcc")] * 2 + [str(toolkit),
                                                                                str(toolkit / "bin/cuobjdump")])
        self.assertEqual([path.name for path in (self.repository / ".toolchain").iterdir()], ["cuda"])

    def test_disassemblers_are_added_to_a_toolkit_without_them(self):
        self.installed(*LIBRARIES)
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.fake_pip("cuobjdump", "nvdisasm")
        done = self.run_tool("bootstrap", CUDACXX=str(nvcc))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(path.name for path in (self.repository / ".toolchain/bin").iterdir()),
                         ["cuobjdump", "nvdisasm"])

    def test_missing_disassemblers_are_no_failure_offline(self):
        self.installed(*LIBRARIES)
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.fake("python3", '[ "$3" = --version ]')
        done = self.run_tool("bootstrap", CUDACXX=str(nvcc))
        self.assertEqual(done.returncode, 0)
        self.assertIn("cuobjdump and nvdisasm are missing and could not be fetched", done.stderr)
        self.assertEqual(list((self.repository / ".toolchain").iterdir()), [])

    def test_an_unknown_argument_is_refused(self):
        self.assert_refused(self.run_tool("bootstrap", "--cdua"), "'--cdua'", "--cuda")


class Machine(SandboxTest):
    """What the scripts conclude about the machine."""

    def setUp(self):
        super().setUp()
        self.nvcc = make_executable(self.folder / "toolkit/bin/nvcc",
                                    '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')

    def choose(self, wanted="auto", step="01_naive", **environment):
        return self.shell(f'find_cuda; choose_backend {wanted} {step}; echo "$backend: $reason"', **environment)

    def gpu(self, name, capability):
        self.fake("nvidia-smi", f'echo "{name}, {capability}"')

    def test_no_gpu_means_the_emulator(self):
        self.fake("nvidia-smi", "echo 'No devices were found'; exit 6")
        self.assertEqual(self.choose(CUDACXX=str(self.nvcc)).stdout,
                         "emulator: nvidia-smi finds no usable GPU\n")

    def test_a_gpu_and_nvcc_mean_the_gpu(self):
        self.gpu("NVIDIA H200", "9.0")
        self.assertEqual(self.choose(CUDACXX=str(self.nvcc)).stdout, "gpu: NVIDIA H200 and nvcc are here\n")

    def test_a_gpu_without_nvcc_means_the_emulator_and_says_what_to_do(self):
        self.gpu("NVIDIA H200", "9.0")
        self.assertIn("tools/bootstrap --cuda", self.choose().stdout)

    def test_a_gpu_that_is_too_old_means_the_emulator(self):
        self.gpu("Tesla T4", "7.5")
        self.assertEqual(self.choose(CUDACXX=str(self.nvcc)).stdout,
                         "emulator: Tesla T4 has compute capability 7.5, the steps need 8.0\n")

    def test_hopper_steps_need_hopper(self):
        self.gpu("NVIDIA A100", "8.0")
        self.describe("03_register_tile", architecture="80")
        self.describe("02_shared_tile", architecture="90a")
        self.assertTrue(self.choose(step="03_register_tile", CUDACXX=str(self.nvcc)).stdout.startswith("gpu"))
        needs_hopper = "emulator: 02_shared_tile needs Hopper (compute capability 9.0) and {} is not\n"
        for steps in ("02_shared_tile", "01_naive 02_shared_tile 03_register_tile"):
            self.assertEqual(self.choose(step=steps, CUDACXX=str(self.nvcc)).stdout, needs_hopper.format("NVIDIA A100"))
        self.gpu("NVIDIA B200", "10.0")
        self.assertEqual(self.choose(step="02_shared_tile", CUDACXX=str(self.nvcc)).stdout,
                         needs_hopper.format("NVIDIA B200"))

    def test_blackwell_steps_need_blackwell(self):
        self.describe("02_shared_tile", architecture="100a")
        self.gpu("NVIDIA H200", "9.0")
        self.assertEqual(self.choose(step="02_shared_tile", CUDACXX=str(self.nvcc)).stdout,
                         "emulator: 02_shared_tile needs Blackwell (compute capability 10.0) and NVIDIA H200 is not\n")
        self.gpu("NVIDIA B200", "10.0")
        self.assertTrue(self.choose(step="02_shared_tile", CUDACXX=str(self.nvcc)).stdout.startswith("gpu"))

    def test_a_step_that_does_not_say_which_gpus_it_is_for_is_refused(self):
        self.gpu("NVIDIA H200", "9.0")
        self.describe("02_shared_tile", architecture="86")
        says = "steps/steps.json does not say which GPUs 02_shared_tile is for"
        self.assert_refused(self.choose(step="02_shared_tile", CUDACXX=str(self.nvcc)), says, "describe_steps")
        done = self.cmake_architecture("02_shared_tile")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(says, " ".join(done.stderr.split()))

    def cmake_architecture(self, step):
        script = self.folder / "script.cmake"
        script.write_text(f'set(GEMM_STEPS_BACKEND gpu)\ninclude("{ROOT}/cmake/GemmArchitecture.cmake")\n'
                          f'gemm_step_architecture("{self.repository}/steps/{step}/kernel.cuh" found)\nmessage("${{found}}")\n')
        return subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=False)

    def test_cmake_and_the_scripts_read_the_same_architecture(self):
        for architecture in ("80", "90a", "100a"):
            self.describe("02_shared_tile", architecture=architecture, title="a [list], and more")
            done = self.shell('find_architecture 02_shared_tile; echo "kSm$architecture"')
            self.assertEqual((done.stdout, done.stderr), (f"kSm{architecture}\n", ""))
            self.assertEqual(self.cmake_architecture("02_shared_tile").stderr, done.stdout)

    def test_asking_for_the_gpu_without_one_is_refused(self):
        self.fake("nvidia-smi", "exit 9")
        self.assert_refused(self.choose("gpu", CUDACXX=str(self.nvcc)), "no usable GPU", "--backend emulator")
        self.assert_refused(self.choose("gpu"), "needs nvcc", "tools/bootstrap --cuda")

    def test_a_race_needs_a_gpu(self):
        self.installed(*LIBRARIES)
        for program in PROGRAMS:
            self.fake(program, "echo cmake version 3.25.1")
        self.fake("c++", "")
        self.fake("nvidia-smi", "exit 9")
        self.assert_refused(self.run_tool("compare", "all", "4096"), "needs a GPU", "--check")
        self.assert_refused(self.run_tool("compare", "--suite"), "needs a GPU")
        self.assert_refused(self.run_tool("compare", "--lab", "51:all", "4096"), "needs a GPU")
        self.assert_refused(self.run_tool("measuring"), "only on a Hopper GPU")

    def run_without_cuda(self, *arguments, **environment):
        self.installed(*LIBRARIES)
        for program in [*PROGRAMS, "c++"]:
            self.fake(program, "")
        folder = self.repository / "build/emulator/bin"
        self.fake("cmake", f"""[ "$1" = --version ] && echo cmake version 3.25.1 && exit 0
            mkdir -p {folder}; printf '#!/bin/bash\\necho it runs\\n' >{folder}/01_naive; chmod +x {folder}/01_naive""")
        return self.run_tool("run", "01", *arguments, **environment)

    def test_an_nvcc_that_does_not_work_gets_a_note_and_the_emulator_runs(self):
        false = shutil.which("false")
        for arguments in ((), ("--backend", "emulator")):
            done = self.run_without_cuda(*arguments, CUDACXX=false)
            self.assertEqual((done.returncode, "it runs" in done.stdout.splitlines()), (0, True), done.stderr)
            self.assertEqual([line for line in done.stderr.splitlines() if "nvcc" in line],
                             [f"tools/run: the nvcc at {false} does not work: '{false} --dryrun' names no toolkit"])
        self.gpu("NVIDIA H200", "9.0")
        self.assertIn(f"NVIDIA H200 is here but the nvcc at {false} does not work", self.choose(CUDACXX=false).stdout)
        done = self.choose("gpu", CUDACXX=false)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"the GPU build needs nvcc, the nvcc at {false} does not work", done.stderr)

    def test_what_cudacxx_names_is_not_replaced(self):
        self.fake("nvcc", 'echo "#$ TOP=."')
        done = self.shell('find_cuda; echo "[$nvcc]"', CUDACXX="/nowhere/nvcc")
        self.assertEqual((done.stdout, done.stderr), ("[]\n", "tools/probe: CUDACXX is '/nowhere/nvcc', which is not a program; "
                                                               "no other nvcc is taken in its place\n"))
        self.assertEqual(self.shell('find_cuda; echo "[$nvcc]"').stdout, f"[{self.bin}/nvcc]\n")

    def test_behind_a_broken_nvcc_on_the_path_another_is_found(self):
        self.fake("nvcc", "exit 1")
        toolkit = self.repository / ".toolchain/cuda/bin/nvcc"
        make_executable(toolkit, '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        done = self.shell('find_cuda; echo "$nvcc"')
        self.assertEqual((done.stdout, done.stderr.count("\n")), (f"{toolkit}\n", 1), done.stderr)

    def test_a_folder_for_temporary_files_that_is_not_there_is_named(self):
        for arguments in ((), ("--backend", "emulator")):
            self.assert_refused(self.run_without_cuda(*arguments, TMPDIR="/nonexistent"), "TMPDIR is '/nonexistent'")
        self.assert_refused(self.run_tool("bootstrap", TMPDIR="/nonexistent"), "TMPDIR is '/nonexistent'")

    def test_old_or_missing_build_tools_are_named(self):
        self.assert_refused(self.shell("check_compilers"), "cmake is not installed", "3.25")
        self.fake("cmake", "echo cmake version 3.22.1")
        self.assert_refused(self.shell("check_compilers"), "cmake is version 3.22.1", "3.25 or newer")
        self.fake("cmake", "echo cmake version 3.25.1")
        self.assert_refused(self.shell("check_compilers"), "ninja is not installed")
        self.fake("ninja", "")
        self.assert_refused(self.shell("check_compilers", CXX="nosuch++"), "'nosuch++' is not installed")

    def test_a_wrapper_of_nvcc_leads_to_the_toolkit(self):
        (self.folder / "toolkit/lib64").mkdir()
        wrapper = make_executable(self.folder / "elsewhere/nvcc", f'#!/bin/bash\nexec {self.nvcc} "$@"\n')
        done = self.shell('find_cuda; echo "$CUDAToolkit_ROOT"', CUDACXX=str(wrapper))
        self.assertEqual(done.stdout.strip(), str(self.folder / "toolkit"), done.stderr)


CTEST = r"""
names='' pattern='' label=''
while (($# > 0)); do
  case $1 in
    --test-dir) folder=$2 ;; --output-junit) report=$2 ;; -N) names=plain ;; --show-only=json-v1) names=json ;;
    -R) pattern=$2 ;;
    -L) label=$2 ;;
  esac
  shift
done
if [ "$names" = json ]; then  # as ctest indents it
  echo '{ "tests" : ['
  while read -r name program labels; do
    [[ $name =~ $pattern && $labels =~ $label ]] || continue
    printf '{\n  "command" :\n  [\n    "%s"\n  ],\n  "name" : "%s",\n  "properties" : [\n    {\n' "$folder/$program" "$name"
    printf '      "name" : "REQUIRED_FILES",\n      "value" :\n      [\n        "%s",\n        "/elsewhere"\n      ]\n' "$folder/$program"
    printf '    },\n    {\n      "name" : "WORKING_DIRECTORY",\n      "value" : "%s"\n    }\n' "$folder/tests"
    echo '  ] },'
  done <"$folder/tests.txt"
  echo '] }'
  exit 0
fi
if [ "$names" = plain ]; then
  if [ -f "$folder/tests.txt" ]; then
    while read -r name program; do echo "  Test   #1: $name"; done < <(grep -e "$pattern" "$folder/tests.txt")
  fi
  echo "Total Tests: 7"
  exit 0
fi
read -r tests failures skips <"$folder/counts"
cat >"$report" <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)"
	tests="$tests"
	failures="$failures"
	disabled="0"
	skipped="$skips"
	hostname=""
>
	<testcase name="host.a &quot;b&quot; &lt; c" classname="x" time="0.25" status="run" tests="99" skipped="99">
	</testcase>
	<testcase name="steps.12.slow" classname="x" time="11.5" status="run"/>
</testsuite>
END
printf '\nLabel Time Summary:\nfast    =   0.25 sec*proc (1 test)\nslow    =  11.50 sec*proc (12 tests)\n\nTotal\n'
((failures == 0))
"""


class Test(SandboxTest):
    """tools/test, with a ctest that answers from a file."""

    def setUp(self):
        super().setUp()
        self.installed(*LIBRARIES)
        for program in ["g++", "c++", "ninja", "ccache"]:
            self.fake(program, "")
        self.fake("cmake", "echo cmake version 3.25.1")
        self.fake("ctest", CTEST)
        self.fake("nvidia-smi", "exit 9")

    def results(self, **parts):
        for preset, counts in parts.items():
            folder = self.repository / "build" / preset.replace("_", "-")
            folder.mkdir(parents=True)
            (folder / "counts").write_text(counts + "\n")

    def test_the_sum_is_the_last_line(self):
        self.results(emulator="10 0 1", emulator_asan="5 0 0")
        done = self.run_tool("test", "--long")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "14 passed, 0 failed, 1 skipped")
        self.assertRegex(done.stdout, r"(?m)^emulator: 9 of 10 passed, 1 skipped in \d+ s$")
        self.assertRegex(done.stdout, r"(?m)^emulator under ASan and UBSan: 5 of 5 passed in \d+ s$")
        self.assertIn("GPU build: not tested, nvcc is not here", done.stdout)
        self.assertNotIn("left out: ", done.stdout)

    def test_all_says_that_it_leaves_out_the_sanitizers(self):
        self.results(emulator="10 0 1")
        done = self.run_tool("test", "--all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-2:], [
            "left out: AddressSanitizer (tools/test asan), coverage (tools/test coverage) and the long tier (tools/test --long)", "9 passed, 0 failed, 1 skipped"])
        self.assertNotIn("UBSan", done.stdout)
        self.assertNotIn("left out: ", self.run_tool("test", "--all", "emulator").stdout)

    def test_a_failure_makes_the_status(self):
        self.results(emulator="10 2 1", emulator_asan="5 0 0")
        done = self.run_tool("test", "emulator", "asan")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "12 passed, 2 failed, 1 skipped")

    def test_without_arguments_it_is_what_one_runs_before_a_push(self):
        self.listed("host.raster tests/tests_host fast push\nsteps.11.x tests/tests_steps_11 fast\n")
        done = self.run_tool("test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.built(), ["build.ninja", "tests/tests_host"])
        self.assertTrue(any("--output-junit" in call and "-L push" in call for call in self.calls()))
        self.assertRegex(done.stdout, r"(?m)^before a push: 2 of 2 passed in \d+ s$")
        self.assertIn("left out: 7 tests of the emulator's build", done.stdout)
        self.assertNotIn("Sanitizer and UBSan:", done.stdout)

    def test_arguments_of_ctest_are_looked_at_before_anything_is_built(self):
        for arguments, texts in ((["--bogus"], ["ctest has no argument '--bogus'", "-R PATTERN"]),
                                 (["-R"], ["-R needs a value"]),
                                 (["-N", "-LE"], ["-LE needs a value"]),
                                 (["raster"], ["ctest has no argument 'raster'"]),
                                 ([], ["after -- come arguments of ctest"])):
            self.assert_refused(self.run_tool("test", "emulator", "--", *arguments), *texts)
        self.assertEqual(self.calls(), [])
        self.fake("ctest", "echo 'RegularExpression::compile(): Unmatched [].'")  # and the status is 0
        self.assert_refused(self.run_tool("test", "emulator", "--", "-R", "["), "'-R [' contains a regular expression")
        self.assertEqual(self.built(), [])

    def test_a_help_that_cannot_be_written_ends_there(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([self.repository / "tools/test", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.calls(), [])

    def test_gpu_tests_without_a_gpu_count_as_skipped(self):
        self.results(gpu="4 0 0")
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.fake("cuobjdump", "")
        self.fake("nvdisasm", "")
        done = self.run_tool("test", "gpu", CUDACXX=str(nvcc))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU tests: not run, nvidia-smi finds no usable GPU (7 tests skipped)", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "4 passed, 0 failed, 7 skipped")

    def test_without_a_gpu_its_programs_are_built_by_the_long_tier_only(self):
        self.results(gpu="4 0 0")
        (self.repository / "build/gpu/tests.txt").write_text("sass.machine_code bin/sass_reader ptxas\nptxas.no_spills kernel.cu.o ptxas\n")
        (self.repository / "build/gpu/build.ninja").touch()
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.fake("cuobjdump", "")
        self.fake("nvdisasm", "")
        kernels = ["build.ninja", "bin/sass_reader kernel.cu.o"]
        for arguments, targets in ((["gpu"], kernels), (["--all", "gpu"], kernels),
                                   (["--long", "gpu"], ["all roofline sweep lab measuring time_plans"])):
            self.log.unlink(missing_ok=True)
            self.run_tool("test", *arguments, CUDACXX=str(nvcc))
            self.assertEqual(self.built(), targets)

    def listed(self, text):
        self.results(emulator="2 0 0")
        (self.repository / "build/emulator/tests.txt").write_text(text)
        (self.repository / "build/emulator/build.ninja").touch()

    def built(self):
        return [call.split("--target ")[1] for call in self.calls() if "--build" in call]

    def test_the_slowest_tests_and_the_seconds_of_the_labels_come_before_the_sum(self):
        self.results(emulator="10 0 1", emulator_asan="5 0 0")
        lines = self.run_tool("test", "emulator", "asan").stdout.splitlines()
        begin = lines.index("slowest tests:")
        self.assertEqual(lines[begin + 1:], [
            "    11.5 s  steps.12.slow", "    11.5 s  steps.12.slow", '     0.2 s  host.a "b" < c', '     0.2 s  host.a "b" < c',
            "seconds of each label, all processors together: fast 0 s (2 tests), slow 23 s (24 tests)",
            "14 passed, 0 failed, 1 skipped"])

    def test_only_what_the_tests_need_is_built(self):
        self.listed("host.raster tests/tests_host\nmutants.s11_a tests/tests_mutants_s11\n"
                    "mutants.s11_b tests/tests_mutants_s11\nsteps.11.x tests/tests_steps_11\n")
        done = self.run_tool("test", "emulator", "--", "-R", "s11|steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.built(), ["build.ninja", "tests/tests_mutants_s11 tests/tests_steps_11"])
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed, 0 skipped")

    def test_coverage_builds_and_runs_its_tests_alone(self):
        self.listed("coverage.01_naive bin/01_naive coverage\nhost.raster tests/tests_host fast\n")
        done = self.run_tool("test", "coverage")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.built(), ["build.ninja", "bin/01_naive"])
        self.assertTrue(any("--output-junit" in call and "-C Coverage -L coverage" in call for call in self.calls()))
        self.log.unlink()
        self.run_tool("test", "--long")
        self.assertFalse(any("Coverage" in call for call in self.calls()))

    def test_without_a_pattern_everything_is_built(self):
        self.listed("host.raster tests/tests_host\n")
        self.run_tool("test", "emulator")
        self.assertEqual(self.built(), ["all"])

    def test_a_pattern_that_matches_nothing_is_refused(self):
        self.listed("host.raster tests/tests_host\n")
        (self.repository / "build/emulator/counts").write_text("0 0 0\n")
        done = self.run_tool("test", "emulator", "--", "-R", "rastr")
        self.assert_refused(done, "no test of emulator matches '-R rastr'", "tools/test emulator -- -N lists their names")
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.built(), ["build.ninja"])

    def test_names_are_listed_without_a_build(self):
        self.listed("host.raster tests/tests_host\nmutants.s11_a tests/tests_mutants_s11\n")
        done = self.run_tool("test", "emulator", "--", "-N", "-R", "raster")
        self.assertEqual((done.returncode, done.stdout), (0, "host.raster\n"), done.stderr)
        self.assertEqual(self.built(), ["build.ninja"])
        self.assert_refused(self.run_tool("test", "emulator", "--", "-N", "-R", "rastr"), "matches '-N -R rastr'")

    def test_a_ctest_that_does_not_run_is_a_failure(self):
        self.fake("ctest", "echo broken; exit 8")
        done = self.run_tool("test", "emulator")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")

    def test_a_build_that_fails_is_shown(self):
        self.fake("cmake", """[ "$1" = --version ] && echo cmake version 3.25.1 && exit 0
            [ "$1" = --build ] || exit 0
            echo '[1/2] Building x'; echo 'kernel.cuh:3: error: no'; exit 1""")
        done = self.run_tool("test", "emulator")
        self.assertEqual(done.returncode, 2)
        self.assertIn("kernel.cuh:3: error: no", done.stderr)
        self.assertNotIn("[1/2]", done.stderr)
        self.assertIn("building all for the emulator preset failed", done.stderr)

    def test_an_unknown_part_is_refused(self):
        self.assert_refused(self.run_tool("test", "cpu"), "'cpu'", "--all", "emulator, asan, coverage and gpu")


class PtxasLog(SandboxTest):
    """The compiler launcher that keeps what ptxas says."""

    def launch(self, compiler):
        self.fake("compiler", compiler)
        return subprocess.run([ROOT / "cmake" / "keep_ptxas_log", self.bin / "compiler", "-c", "x.cu", "-o", "x.o"],
                              cwd=self.folder, capture_output=True, text=True, check=False)

    def test_the_report_is_kept_and_the_rest_is_shown(self):
        report = "ptxas info    : Used 30 registers, used 0 barriers\\n"
        done = self.launch(f'printf "{report}something else\\n" >&2')
        self.assertEqual((done.returncode, done.stderr), (0, "something else\n"))
        self.assertEqual((self.folder / "x.o.ptxas.log").read_text(),
                         "ptxas info    : Used 30 registers, used 0 barriers\nsomething else\n")

    def test_a_failure_shows_everything_and_keeps_nothing(self):
        (self.folder / "x.o.ptxas.log").write_text("of an earlier build\n")
        done = self.launch('echo "ptxas info: (C7510) serialized" >&2; echo "error: bad" >&2; exit 3')
        self.assertEqual(done.returncode, 3)
        self.assertIn("C7510", done.stderr)
        self.assertIn("error: bad", done.stderr)
        self.assertEqual([path.name for path in self.folder.glob("x.o*")], [])


class PtxasFaults(unittest.TestCase):
    """The test of every step's log in the GPU build: spills and notes."""

    CLEAN = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z6kernelv' for 'sm_90a'
ptxas info    : Function properties for _Z6kernelv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
"""

    def test_a_clean_log_passes(self):
        self.assertEqual(list(ptxas_log.findings(self.CLEAN)), [])

    def test_a_spill_is_named_with_its_kernel(self):
        spilled = self.CLEAN + self.CLEAN.replace("_Z6kernelv", "_Z5otherv").replace("0 bytes spill loads",
                                                                                     "48 bytes spill loads")
        self.assertEqual(list(ptxas_log.findings(spilled)),
                         ["_Z5otherv for sm_90a: spills 0 bytes in stores, 48 in loads"])

    def test_a_note_that_ptxas_gave_up_is_a_fault(self):
        note = ("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
                "to the presence of function calls in the function '_Z6kernelv'\n")
        faults = list(ptxas_log.findings(self.CLEAN + note))
        self.assertEqual(len(faults), 1)
        self.assertIn("C7510: Potential Performance Loss", faults[0])

    def test_logs_without_kernels_prove_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            logs = [pathlib.Path(folder) / "main.log", pathlib.Path(folder) / "tiles.log"]
            for text, status in (("ptxas info    : 0 bytes gmem\n", 1), (self.CLEAN, 0)):  # one of a step's objects may have none
                logs[0].write_text("ptxas info    : 0 bytes gmem\n")
                logs[1].write_text(text)
                done = subprocess.run([sys.executable, ptxas_log.__file__, *logs], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stdout)


class Project(unittest.TestCase):
    """The CMake project itself, configured in a copy."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gemm-steps-test.")
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self):
        repository = f"{self.folder}/repository"
        for folder in ("cmake", "common", "tests", "tools"):
            shutil.copytree(ROOT / folder, f"{repository}/{folder}", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "CMakeLists.txt", repository)
        return repository

    def configure(self, source, *arguments):
        return subprocess.run(["cmake", "-S", source, "-B", f"{self.folder}/build", "-G", "Ninja", *arguments],
                              capture_output=True, text=True, check=False)

    def test_a_folder_is_a_step(self):
        repository = self.copy()
        for step in ("41_first", "42_second"):
            make_executable(pathlib.Path(repository) / "steps" / step / "kernel.cuh",
                            "#pragma once\n")
        done = self.configure(repository)
        self.assertEqual(done.returncode, 0, done.stderr)
        targets = subprocess.run(["cmake", "--build", f"{self.folder}/build", "--target", "help"], capture_output=True,
                                 text=True, check=True).stdout
        for target in ("41_first", "42_second", "compare"):
            self.assertRegex(targets, rf"(?m)^{target}: phony")
        table = pathlib.Path(f"{self.folder}/build/generated/programs/compare.cpp").read_text()
        self.assertIn("{step_41_first, step_42_second}", table)

    def test_a_folder_with_a_bad_name_is_refused(self):
        repository = self.copy()
        make_executable(pathlib.Path(repository) / "steps/4_Bad/kernel.cuh", "")
        done = self.configure(repository)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("steps/4_Bad is not named like a step", done.stderr)

    def test_a_missing_library_is_named_with_its_package(self):
        for library, package in (("CLI11", "libcli11-dev"), ("Boost", "libboost-context-dev"), ("Catch2", "catch2"),
                                 ("fmt", "libfmt-dev"), ("nlohmann_json", "nlohmann-json3-dev")):
            done = self.configure(ROOT, "-UCMAKE_DISABLE_FIND_PACKAGE_*",
                                  f"-DCMAKE_DISABLE_FIND_PACKAGE_{library}=ON")
            self.assertNotEqual(done.returncode, 0)
            message = re.sub(r"\s+", " ", done.stderr)
            self.assertIn(f"{library} was not found: install the package {package} ('apt-get install {package}')",
                          message)

    def test_what_cmake_finds_is_named(self):
        packages = set(LIBRARIES) - {"python3-venv", "python3-jsonschema"}
        for arguments, missing in (((), set()), (("-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON",), {"libfmt-dev"})):
            done = self.configure(ROOT / "tools/lib/packages", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(re.findall(r"-- found (\S+)", done.stdout)), packages - missing)

    def test_an_unknown_backend_is_refused(self):
        done = self.configure(ROOT, "-DGEMM_STEPS_BACKEND=cpu")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("it must be gpu or emulator", done.stderr)


    def test_a_test_case_that_cmake_cannot_read_is_refused(self):
        for name, source in (("template", 'TEMPLATE_TEST_CASE("name", "", int) {}'), ("semicolon", 'TEST_CASE("one; two") {}'),
                             ("macro", 'TEST_CASE(kName) {}')):
            repository = self.copy()
            (pathlib.Path(repository) / "tests/host/odd_test.cpp").write_text(source + "\n")
            done = self.configure(repository)
            self.assertNotEqual(done.returncode, 0)
            message = re.sub(r"\s+", " ", done.stderr)
            self.assertIn('odd_test.cpp: a test case is written TEST_CASE("name", "[tags]") {', message, name)
            shutil.rmtree(repository)

    def test_a_sanitised_source_that_is_gone_is_named(self):
        repository = self.copy()
        (pathlib.Path(repository) / "tests/host/verify/workload_test.cpp").unlink()
        done = self.configure(repository, "-DGEMM_STEPS_SANITIZE=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tests/host/verify/workload_test.cpp, which does not exist", re.sub(r"\s+", " ", done.stderr))

    def test_test_cases_that_only_the_program_knows_fail_its_build(self):
        cases = pathlib.Path(self.folder) / "cases"
        cases.write_text("a name, with a comma\nb")
        for said, missing in (("b\\na name, with a comma\\n", None), ("a name, with a comma\\nb\\nc\\n", "Only in the program: 'c'"),
                              ("b\\n", "Only in the sources: 'a name, with a comma'")):
            done = subprocess.run(["cmake", "-D", f"CASES={cases}", "-P", ROOT / "cmake/GemmTests.cmake", "--", "printf", said],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode == 0, missing is None, done.stderr)
            self.assertIn(missing or "", re.sub(r"\s+", " ", done.stderr))


class Names(unittest.TestCase):
    """What ctest calls the tests of this build."""

    def setUp(self):
        build = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
        if not (build / "CTestTestfile.cmake").exists():
            self.skipTest(f"{build} is not set up")
        self.build = build
        self.names = self.listed()

    def listed(self, *arguments):
        told = subprocess.run(["ctest", "--test-dir", str(self.build), "-N", *arguments], capture_output=True, text=True, check=True).stdout
        return re.findall(r"(?m)^ +Test +#\d+: (.*)$", told)

    def test_what_a_test_requires_is_part_of_the_whole_build(self):
        listed = json.loads(subprocess.run(["ctest", "--test-dir", str(self.build), "--show-only=json-v1"],
                                           capture_output=True, text=True, check=True).stdout)
        commands = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", "all"], capture_output=True, text=True, check=True).stdout
        made = {str(self.build / name) for name in re.findall(r" -o (\S+)", commands)}
        required = {file for test in listed["tests"] for item in test.get("properties", [])
                    if item["name"] == "REQUIRED_FILES" for file in item["value"]}
        self.assertGreater(len(required), 100)
        self.assertEqual(set(), required - made, "tools/test --all would not find these programs")

    def test_every_test_is_of_an_area(self):
        areas = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
        self.assertEqual([], [name for name in self.names if name.split(".")[0] not in areas])

    def test_every_mutant_and_every_exercise_has_a_test(self):
        mutants = {f"mutants.{step.name}_{path.stem}" for step in ROOT.glob("tests/mutants/s*") for path in step.glob("**/*.mutant")}
        exercises = {f"exercises.{path.parts[-3][:2]}_{path.stem}" for path in ROOT.glob("steps/*/exercises/*.md")}
        self.assertEqual(set(), mutants - set(self.names))
        self.assertEqual(set(), exercises - set(self.names))

    def test_every_pattern_that_a_page_shows_matches_a_test(self):
        patterns = {pattern for name in ("CONTRIBUTING.md", "README.md", "tools/test", "tests/CMakeLists.txt")
                    for pattern in re.findall(r" -R '?([^'`\s]+)", (ROOT / name).read_text(encoding="utf-8"))}
        self.assertGreater(len(patterns), 4)
        names = self.listed("-C", "Coverage")  # with the tests that run only where they are named
        self.assertEqual([], [pattern for pattern in patterns if pattern != "PATTERN" and not any(re.search(pattern, name) for name in names)])

    def test_tests_listed_as_slow_exist(self):
        lines = (ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines()
        slow = [line for line in lines if line and not line.startswith("#")]
        self.assertEqual([], [name for name in slow if name not in self.names])
        self.assertEqual(sorted(set(slow)), slow)


class Patience(SandboxTest):
    def test_only_what_takes_long_is_announced_and_its_status_kept(self):
        done = self.shell('patiently "doing one thing" log true; patiently "doing another" log bash -c "sleep 4; echo x; exit 3"'
                          ' || echo "status $?"; cat log')
        self.assertEqual((done.stdout, done.stderr), ("status 3\nx\n", "tools/probe: doing another\n"))


class GeneratedFile(SandboxTest):
    """A file that CMake writes when it configures, as the emulator's kit is one, and that somebody has removed."""

    def test_it_is_made_again(self):
        for command in ("cmake", "ninja"):
            (self.bin / command).symlink_to(shutil.which(command))
        (self.repository / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(own LANGUAGES NONE)\nfile(GENERATE OUTPUT kit CONTENT words)\n"
            "add_custom_command(OUTPUT copy COMMAND ${CMAKE_COMMAND} -E copy kit copy DEPENDS ${PROJECT_BINARY_DIR}/kit)\n"
            "add_custom_target(emulate DEPENDS copy)\n")
        (self.repository / "CMakePresets.json").write_text(json.dumps(
            {"version": 3, "configurePresets": [{"name": "emulator", "generator": "Ninja", "binaryDir": "${sourceDir}/build/emulator"}]}))
        made = self.repository / "build/emulator/copy"
        for _ in range(2):
            done = self.shell("build emulator emulate")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(made.read_text(), "words")
            made.unlink()
            (self.repository / "build/emulator/kit").unlink()


class TextRules(SandboxTest):
    """The plain rules of tools/lint, in a repository of their own."""

    def lint(self, **files):
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        for name, content in files.items():
            (self.repository / name.replace("__", ".")).write_bytes(content)
        return self.run_tool("lint", "--text")

    def test_clean_files_pass(self):
        done = self.lint(a__txt=b"fine\n", b__md=b"a line break  \nhere\n")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_rule_finds_its_mistake(self):
        done = self.lint(a__txt=b"fine\nx \n", b__txt=b"x\r\n", c__txt=b"x", d__txt=b"<<<<<<< HEAD\n", e__md=b"x\ny \n",
                         f__py=b"x = 1\ndef y(:\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines(), [
            "a.txt:2: trailing blank", "b.txt:1: carriage return", "c.txt: no newline at the end",
            "d.txt:1: a conflict marker: <<<<<<< HEAD", "e.md:2: trailing blank", "f.py:2: not Python: invalid syntax"])

    def test_a_script_must_be_executable(self):
        done = self.lint(script=b"#!/usr/bin/env bash\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("script: a script that is not executable", done.stdout)


class Format(SandboxTest):
    def setUp(self):
        super().setUp()
        found = shutil.which("clang-format-14") or shutil.which("clang-format")
        version = found and subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if not version or "version 14." not in version:
            self.skipTest("clang-format 14 is not installed")
        (self.bin / "clang-format-14").symlink_to(found)
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        (self.repository / ".clang-format").write_text("BasedOnStyle: Google\n")
        self.source = self.repository / "a.cpp"
        self.source.write_text("int  x ;\n")

    def test_checking_names_the_file_and_changes_nothing(self):
        done = self.run_tool("format", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a.cpp is not formatted", done.stdout)
        self.assertEqual(self.source.read_text(), "int  x ;\n")

    def test_formatting_makes_the_check_pass(self):
        self.assertEqual(self.run_tool("format").returncode, 0)
        self.assertEqual(self.source.read_text(), "int x;\n")
        self.assertEqual(self.run_tool("format", "--check").returncode, 0)

    def test_another_version_is_not_used(self):
        (self.bin / "clang-format-14").unlink()
        self.fake("clang-format", "echo clang-format version 18.1.3")
        self.assert_refused(self.run_tool("format", "--check"), "clang-format 14 is not installed")


class Tidy(SandboxTest):
    """clang-tidy in tools/lint, over a compilation database of one file."""

    def setUp(self):
        super().setUp()
        tidy, compiler = shutil.which("clang-tidy"), shutil.which("g++")
        if not tidy or not compiler:
            self.skipTest("clang-tidy or g++ is not installed")
        (self.bin / "clang-tidy").symlink_to(tidy)
        for name in ("cmake", "ninja", "c++"):
            self.fake(name, "echo cmake version 3.25.1")
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        for name in (".gitignore", ".clang-tidy"):
            (self.repository / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.repository / name)
        build = self.repository / "build/emulator"
        build.mkdir(parents=True)
        (build / "build.ninja").touch()
        self.source = self.repository / "common/a.cpp"
        self.source.parent.mkdir()
        self.compiler, self.build = compiler, build
        self.compiled(self.source)

    def compiled(self, *sources):
        """The compilation database holds these."""
        (self.build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(self.build), "command": f"ccache {self.compiler} -std=c++20 -I{self.repository}/common -o a.o -c {source}",
             "file": str(source)} for source in sources]))

    def lint(self, text):
        self.source.write_text(text)
        return self.run_tool("lint")

    def test_names_follow_the_style(self):
        good = "constexpr int kWidth = 3;\nint some_name() { return kWidth; }\n"
        self.assertEqual(self.lint(good).returncode, 0)
        done = self.lint("int SomeFunction() { return 3; }\nconstexpr int width = 3;\nstruct some_type {};\n"
                         "template <int height>\nint twice() { return 2 * height; }\n")
        self.assertEqual(done.returncode, 1)
        for name in ("'SomeFunction'", "'width'", "'some_type'", "'height'"):
            self.assertIn(name, done.stdout)

    def test_tests_are_left_out_and_nothing_else(self):
        of_a_test = self.repository / "tests/b.cpp"
        of_a_test.parent.mkdir(exist_ok=True)
        of_a_test.write_text("int OfATest() { return 3; }\n")
        other = self.repository / "common/tests/c.cpp"
        other.parent.mkdir()
        other.write_text("int OfTheLibrary() { return 3; }\n")
        self.compiled(self.source, of_a_test, other)
        done = self.lint("int some_name() { return 3; }\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'OfTheLibrary'", done.stdout)
        self.assertNotIn("'OfATest'", done.stdout)

    def test_what_a_unit_includes_is_looked_at(self):
        unit = self.repository / "build/units/some.cpp"
        unit.parent.mkdir()
        unit.write_text('#include "a.cpp"  // NOLINT(bugprone-suspicious-include)\n')
        self.compiled(unit)
        done = self.lint("int some_function(int* p) { return p == 0; }\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"common/a\.cpp:1:\d+: error: use nullptr")
        self.assertEqual(self.lint("int some_function() { return 3; }\n").returncode, 0)

    def test_of_what_cmake_generates_only_units_are_looked_at(self):
        bad = "int SomeFunction() { return 3; }\n"
        for folder, status in (("generated/programs", 0), ("tests/mutants", 0), ("generated/steps", 0), ("units", 1)):
            generated = self.build / folder / "some.cpp"
            generated.parent.mkdir(parents=True)
            generated.write_text(bad)
            self.compiled(self.source, generated)
            self.assertEqual(self.lint("int some_function() { return 3; }\n").returncode, status, folder)

    def test_a_clean_file_is_looked_at_once(self):
        text = "int some_name() { return 3; }\n"
        self.assertEqual(self.lint(text).returncode, 0)
        self.assertEqual(len(list((self.repository / ".cache/lint").iterdir())), 1)
        (self.bin / "clang-tidy").unlink()
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
        (self.folder / "version").write_text(version)
        self.fake("clang-tidy", f'[ "$1" = --version ] && cat {self.folder}/version || exit 1')
        self.assertEqual(self.lint(text).returncode, 0)
        self.assertEqual(self.lint(text + text.replace("some", "other")).returncode, 1)
