"""Builds by the scripts: their logs, their progress, and what stands in their way."""
import os
import pty
import shutil
import subprocess
import tempfile
import time
import unittest

from sandbox import ROOT, SandboxTest

LIBRARIES = ["catch2", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "libboost-context-dev", "python3-venv"]
NINJA = r"""[1/3] Building CXX object tests/CMakeFiles/a.dir/a.cpp.o
a.cpp:1: a note of another file
[2/3] Building CXX object CMakeFiles/step_01_naive.dir/generated/steps/01_naive.cpp.o
FAILED: CMakeFiles/step_01_naive.dir/generated/steps/01_naive.cpp.o
/usr/bin/c++ -DSOMETHING -o x.o -c x.cpp
kernel.cuh:3: error: no
ninja: build stopped: subcommand failed."""


class BuildTest(SandboxTest):
    def setUp(self):
        super().setUp()
        self.installed(*LIBRARIES)
        for program in ("g++", "c++", "ninja", "ccache", "python3"):
            self.fake(program, "")
        self.bin_folder = self.repository / "build/emulator/bin"

    def fake_cmake(self, build, configure="true"):
        """cmake that configures and builds like this; $* holds the targets."""
        self.fake("cmake", f"""[ "$1" = --version ] && echo cmake version 3.25.1 && exit 0
            if [ "$1" != --build ]; then
              {configure}
              exit
            fi
            folder=$2
            shift 3
            {build}
            mkdir -p $folder/bin
            for target in "$@"; do
              printf '#!/bin/bash\\necho it runs\\n' >$folder/bin/$target
              chmod +x $folder/bin/$target
            done""")


class Failures(BuildTest):
    """What is shown of a build that fails."""

    def test_it_is_what_the_compiler_said_of_the_file_that_failed(self):
        self.fake_cmake(f"cat <<'END'\n{NINJA}\nEND\nexit 1")
        done = self.run_tool("run", "01")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines()[1:-1], ["  kernel.cuh:3: error: no"])
        log = self.repository / "build/emulator/logs/01_naive.log"
        self.assertIn(f"all messages are in {log}", done.stderr)
        self.assertEqual(log.read_text().strip(), NINJA)

    def test_words_of_cmake_come_without_its_call_stack(self):
        said = ("CMake Error at cmake/X.cmake:9 (message):\n  one sentence that\n  was broken in two.\n"
                "Call Stack (most recent call first):\n  CMakeLists.txt:24 (include)\n\n\n"
                "-- Configuring incomplete, errors occurred!\n")
        for build, configure in ((f"echo '[0/1] Re-running CMake...'; printf '%s' '{said}'; exit 1", "true"),
                                 ("true", f"printf '%s' '{said}'; exit 1")):
            self.fake_cmake(build, configure)
            done = self.run_tool("run", "01")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.splitlines()[1:-1], ["  one sentence that was broken in two."])

    def test_a_failure_is_its_own_when_another_build_is_under_way(self):
        begun = self.folder / "begun"
        self.fake_cmake(f"""if [ "$*" = 01_naive ]; then
              echo 'FAILED: x'; echo 'c++ x'; echo 'kernel.cuh:3: error: no'
              touch {begun}
              sleep 2
              exit 1
            fi
            echo all is well""")
        for lock in (True, False):  # flock is not everywhere
            if not lock:
                (self.bin / "flock").unlink()
            begun.unlink(missing_ok=True)
            tool = str(self.repository / "tools/run")
            with subprocess.Popen([tool, "01"], env=self.variables(), stderr=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL) as bad:
                while not begun.exists() and bad.poll() is None:
                    time.sleep(0.02)
                good = self.run_tool("run", "02")
                said = bad.communicate()[1]
            self.assertEqual(good.returncode, 0, good.stderr)
            self.assertIn("it runs", good.stdout.splitlines())
            self.assertEqual(bad.returncode, 2)
            self.assertIn("  kernel.cuh:3: error: no\n", said)
            self.assertEqual("another command builds in build/emulator" in good.stderr, lock)

    def test_a_build_leaves_only_its_log(self):
        self.fake_cmake("true")
        self.assertEqual(self.run_tool("run", "01").returncode, 0)
        self.assertEqual([path.name for path in (self.repository / "build/emulator/logs").iterdir()], ["01_naive.log"])
        self.assertEqual([path.name for path in (self.repository / "build").iterdir() if path.name[:2] == ".p"], [])


class Progress(BuildTest):
    BUILD = "; ".join(f"echo '[{n}/9] Building CXX object tests/CMakeFiles/t.dir/sub/f{n}.cpp.o'; sleep 1"
                      for n in range(1, 10))

    def probe(self):
        (self.repository / "tools/probe").write_text(
            '#!/usr/bin/env bash\n. "$(dirname "$0")/lib/common.sh"\nprogress_seconds=2\nbuild emulator a b\n')
        (self.repository / "tools/probe").chmod(0o755)
        self.fake_cmake(self.BUILD)

    def test_a_quick_build_says_nothing(self):
        self.probe()
        self.fake_cmake("echo '[1/1] Building CXX object a.cpp.o'")
        self.assertEqual(self.run_tool("probe").stderr.splitlines()[1:], [])

    def test_a_pipe_gets_a_line_now_and_then(self):
        self.probe()
        lines = self.run_tool("probe").stderr.splitlines()[1:]
        self.assertEqual(lines[0], "tools/probe: compiling a b for the emulator preset")
        self.assertTrue(2 <= len(lines) <= 5, lines)
        for line in lines[1:]:
            self.assertRegex(line, r"^tools/probe: \[[3-9]/9\] sub/f[3-9]\.cpp$")
        self.assertEqual(len(set(lines)), len(lines))

    def test_steps_of_a_build_are_named_by_their_files(self):
        (self.folder / "log").write_text("")
        for line, said in (("[3/9] Building CXX object tests/CMakeFiles/t.dir/sub/f.cpp.o", "[3/9] sub/f.cpp"),
                           ("[3/9] Building CUDA object CMakeFiles/t.dir/a.cu.o", "[3/9] a.cu"),
                           ("[3/9] Building CXX object tools/CMakeFiles/t.dir/__/__/generated/f.cpp.o", "[3/9] generated/f.cpp"),
                           (f"[3/9] Building CXX object CMakeFiles/t.dir{self.repository}/common/f.cpp.o", "[3/9] common/f.cpp"),
                           ("[9/9] Linking CXX executable bin/x", "[9/9] linking bin/x"),
                           ("[8/9] Linking CXX static library lib/libx.a", "[8/9] linking lib/libx.a"),
                           ("[1/9] cd /x/build && /usr/bin/cmake -DOUTPUT=/x", "[1/9] preparing"),
                           ("[0/2] Re-checking globbed directories...", "[0/2] Re-checking globbed directories..."),
                           ("a.cpp:1: a warning", "")):
            (self.folder / "log").write_text(f"{line}\n")
            self.assertEqual(self.shell(f"last_progress {self.folder}/log").stdout.strip(), said)

    def test_a_terminal_gets_one_line_that_changes(self):
        self.probe()
        controller, terminal = pty.openpty()
        with subprocess.Popen([str(self.repository / "tools/probe")], env=self.variables(TERM="xterm"), stderr=terminal,
                              stdout=terminal, stdin=terminal) as running:
            os.close(terminal)
            said = b""
            try:
                while piece := os.read(controller, 4096):
                    said += piece
            except OSError:  # the end of a terminal
                pass
            running.wait()
        os.close(controller)
        first, _, rest = said.decode().partition("compiling a b for the emulator preset\r\n")
        self.assertNotIn("/9]", first)
        self.assertNotIn("\n", rest)
        self.assertGreaterEqual(rest.count("\r["), 2, rest)
        self.assertTrue(rest.endswith("\r\033[K"), rest)


class Obstacles(BuildTest):
    """A machine on which nothing can be written is no wrong result (status 1) and gets one sentence."""

    def setUp(self):
        super().setUp()
        step = self.repository / "steps/02_shared_tile"
        (step / "exercises").mkdir()
        (step / "exercises/x.md").write_text("# X\n\n<!--\n-->\n\nTask.\n\n## Hint 1\n\nThink.\n\n## Explanation\n\nSo.\n")
        (step / "exercises/x.todo").write_text("--- old\n#pragma once\n--- new\n--- end\n")
        shutil.copytree(ROOT / "cmake", self.repository / "cmake")
        self.fake_cmake("true", configure=f'{shutil.which("cmake")} "$@"')
        (self.bin / "diff").symlink_to(shutil.which("diff"))

    def both(self, *parts, **how):
        """One tool that builds and one that hands out."""
        for arguments in (("run", "01", "--backend", "emulator"), ("exercise", "02", "x"), ("exercise", "02", "x", "hint")):
            self.assert_refused(self.run_restrained(*arguments, **how), *parts)

    def test_a_checkout_of_somebody_else(self):
        self.repository.chmod(0o555)
        self.both("cannot write in", "Permission denied", "belongs to")

    def test_a_checkout_of_somebody_else_can_be_read(self):
        self.repository.chmod(0o555)
        for arguments in (("exercise",), ("exercise", "02", "x", "solution"), ("run", "--help"), ("clean", "--dry")):
            done = self.run_restrained(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_a_build_folder_of_somebody_else(self):
        (self.repository / "build/emulator").mkdir(parents=True)
        (self.repository / "build").chmod(0o777)
        (self.repository / "build/emulator").chmod(0o555)
        self.assert_refused(self.run_restrained("run", "01"), "cannot write in", "build/emulator", "Permission denied")

    def test_a_read_only_disk(self):
        self.fake("mkdir", "echo \"mkdir: cannot create directory 'x': Read-only file system\" >&2; exit 1")
        self.both("Read-only file system; work in a copy")

    def test_a_full_disk(self):
        self.repository.chmod(0o777)
        self.fake("head", f'[ "$1" = -c ] || exec {shutil.which("head")} "$@"\n'
                  "echo \"head: error writing 'standard output': No space left on device\" >&2; exit 1")
        self.both("No space left on device; tools/clean --dry")

    def test_a_disk_that_is_full_in_the_middle_of_a_build(self):
        self.fake_cmake("echo 'FAILED: x'; echo c++; echo 'x.s: fatal error: No space left on device'; exit 1",
                        configure="true")
        done = self.run_tool("run", "01")
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: the disk is full; tools/clean --dry", done.stderr)

    def test_a_limit_on_files(self):
        self.repository.chmod(0o777)
        self.both("cannot write in", "ulimit -f", limits="ulimit -f 8")

    def test_a_full_standard_output(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([str(self.repository / "tools/exercise")], env=self.variables(), stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "tools/exercise: error: standard output cannot be written.\n"))

    def test_a_command_that_fails_unseen_is_named(self):
        self.assert_refused(self.shell("sleep nothing 2>/dev/null; echo no"), "failed with status 1", "sleep nothing")
        self.assert_refused(self.shell("x=$(sleep nothing 2>/dev/null); echo no"), "failed with status 1", "sleep nothing")

    def test_a_machine_that_starts_no_more_processes(self):
        self.assert_refused(self.shell("exit 254"), "starts no more processes (ulimit -u)")  # bash's status when it cannot fork

    def test_the_status_of_a_program_is_passed_on(self):
        for status in (0, 1, 3, 4):
            self.fake_cmake("true")
            self.bin_folder.mkdir(parents=True, exist_ok=True)
            program = self.bin_folder / "01_naive"
            self.fake_cmake(f"printf '#!/bin/bash\\nexit {status}\\n' >{program}; chmod +x {program}; exit 0")
            done = self.run_tool("run", "01")
            self.assertEqual((done.returncode, "error" in done.stderr), (status, False), done.stderr)


class Steps(BuildTest):
    """A folder in steps/ that is no step stops every build; nobody has to read CMake's call stack for it."""

    def add(self, name):
        (self.repository / "steps" / name).mkdir()
        (self.repository / "steps" / name / "kernel.cuh").write_text("")

    def test_a_bad_name_is_named(self):
        self.fake_cmake("true")
        self.add("4_Bad")
        self.assert_refused(self.run_tool("run", "01"), "steps/4_Bad is not named like a step")

    def test_two_steps_of_one_number_are_named(self):
        self.fake_cmake("true")
        self.add("01_other")
        self.assert_refused(self.run_tool("run", "02"), "steps/01_naive and steps/01_other have the same number")


class Kernels(unittest.TestCase):
    """What a kernel.cuh must say about its step, in the project itself: only the step's object is compiled."""

    def compile(self, kernel):
        folder = tempfile.mkdtemp(prefix="gemm-steps-test.")
        self.addCleanup(shutil.rmtree, folder)
        for part in ("cmake", "common", "tools"):
            shutil.copytree(ROOT / part, f"{folder}/{part}", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        os.makedirs(f"{folder}/steps/41_first")
        with open(f"{folder}/steps/41_first/kernel.cuh", "w", encoding="utf-8") as file:
            file.write(kernel)
        configured = subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", "-G", "Ninja", "-DGEMM_STEPS_TESTS=OFF"],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(configured.returncode, 0, configured.stderr)
        self.folder = folder
        return subprocess.run(["cmake", "--build", f"{folder}/build", "--target", "step_41_first"], capture_output=True,
                              text=True, check=False)

    def test_a_kernel_without_a_step_is_named_once(self):
        for kernel in ("", '#include "gemm/problem/step.h"\nnamespace gemm::step_01 { inline const Step kStep{.name = "01_naive"}; }\n'):
            done = self.compile(kernel)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout.count("error:"), 1, done.stdout)
            self.assertIn("steps/41_first/kernel.cuh must define `inline const gemm::Step kStep` in namespace gemm::step_41",
                          done.stdout)

    def test_a_step_has_the_name_of_its_folder(self):
        for name, says in (("41_first", "41_first\n"), ("01_naive", "steps/41_first/kernel.cuh says that its name is "
                           "'01_naive'; the name in kStep must be the folder's, '41_first'\n")):
            done = self.compile(f'#include "gemm/problem/step.h"\nnamespace gemm::step_41 {{ inline const Step kStep{{.name = "{name}"}}; }}\n')
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(f"{self.folder}/main.cpp", "w", encoding="utf-8") as file:
                file.write('#include <cstdio>\n#include <exception>\n#include "emulator/report/kernel_source.h"\n'
                           '#include "gemm/problem/step.h"\n'
                           "emulator::KernelSource::KernelSource(const char*, const char*, const char*) {}  // not linked here\n"
                           "const gemm::Step& step_41_first();\nint main() try { std::puts(step_41_first().name.c_str()); }\n"
                           "catch (const std::exception& error) { std::puts(error.what()); }\n")
            subprocess.run(["c++", "-std=c++20", f"-I{self.folder}/common", f"-I{self.folder}/common/emulator/include",
                            f"{self.folder}/main.cpp", "-o", f"{self.folder}/program",
                            f"{self.folder}/build/CMakeFiles/step_41_first.dir/generated/steps/41_first.cpp.o"], check=True)
            self.assertEqual(subprocess.run([f"{self.folder}/program"], capture_output=True, text=True, check=True).stdout, says)

    def test_two_folders_of_one_number_are_refused(self):
        folder = tempfile.mkdtemp(prefix="gemm-steps-test.")
        self.addCleanup(shutil.rmtree, folder)
        for part in ("cmake", "common", "tools"):
            shutil.copytree(ROOT / part, f"{folder}/{part}", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        for step in ("41_first", "41_second"):
            os.makedirs(f"{folder}/steps/{step}")
            with open(f"{folder}/steps/{step}/kernel.cuh", "w", encoding="utf-8") as file:
                file.write("")
        done = subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", "-G", "Ninja"], capture_output=True, text=True,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("steps/41_first and steps/41_second have the same number", " ".join(done.stderr.split()))
