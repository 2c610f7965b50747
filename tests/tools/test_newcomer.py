"""What somebody meets who types the tools for the first time: lists, refusals, widths, what to type next."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from generator import python_with
from sandbox import ROOT, SandboxTest, make_executable
from test_command_line import ESCAPE, on_terminal
from test_scripts import LIBRARIES, PROGRAMS

COLUMNS = 80
SCRIPTS = sorted(path for path in (ROOT / "tools").iterdir()
                 if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash"))


class Widths(unittest.TestCase):
    def test_help_fits_a_terminal(self):
        self.assertGreater(len(SCRIPTS), 15)
        for script in SCRIPTS:
            said = subprocess.run([script, "--help"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
            self.assertEqual([line for line in said.splitlines() if len(line) > COLUMNS], [], script.name)
            comment = re.match(r"#!.*\n((?:#.*\n)+)", script.read_text())[1]
            self.assertEqual(said.split(), re.sub(r"(?m)^#", "", comment).split(), "no word is lost")

    def test_exercises_are_folded_between_words(self):
        for arguments in (["11"], ["11", "released_while_read", "solution"]):
            for columns in (80, 60):
                _, shown = on_terminal([ROOT / "tools/exercise", *arguments], columns)
                prose = [line for line in shown.splitlines() if not line.startswith(("+", "-", " ", "@"))]
                self.assertEqual([line for line in prose if len(line) > columns and " " in line], [])

    def test_the_list_of_steps_fits(self):
        for columns in (80, 60):
            status, shown = on_terminal([ROOT / "tools/run"], columns)
            self.assertEqual((status, [line for line in shown.splitlines() if len(line) > columns]), (0, []))


class Words(SandboxTest):
    """The tools with a build that answers at once."""

    def setUp(self):
        super().setUp()
        self.installed(*LIBRARIES)
        for program in [*PROGRAMS, "c++"]:
            self.fake(program, "echo cmake version 3.25.1")
        self.fake("nvidia-smi", "exit 9")
        for name in ("01_naive", "02_shared_tile", "03_register_tile", "compare"):
            make_executable(self.repository / "build/emulator/bin" / name, f'#!/bin/bash\necho "{name} $*"\n')
        (self.repository / "build/emulator/build.ninja").touch()
        (self.bin / "diff").symlink_to(shutil.which("diff"))

    def builds(self):
        return [call for call in self.calls() if "--build" in call]

    def test_a_list_takes_commas(self):
        done = self.run_tool("run", "01,03", "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"(?m)^(\w+) --check$", done.stdout), ["01_naive", "03_register_tile"])
        done = self.run_tool("run", "1-2,register_tile", "--check")
        self.assertEqual(re.findall(r"(?m)^(\w+) --check$", done.stdout), ["01_naive", "02_shared_tile", "03_register_tile"])
        self.assert_refused(self.run_tool("run", "01,,02"), "'01,,02' names nothing between two commas")
        self.assert_refused(self.run_tool("run", "01,99"), "there is no step '99'")
        done = self.run_tool("compare", "01,02:32", "03", "64x64x64", "--check", "--variant", "a,b")
        self.assertEqual(done.stdout.splitlines()[-1], "compare 01,02:32 03 64x64x64 --check --variant a,b")
        done = self.run_tool("compare", "01,03", "64x64x64", "--check", "--variant", "a,b")
        self.assertEqual(done.stdout.splitlines()[-1], "compare 01 03 64x64x64 --check --variant a,b")

    def test_a_step_without_arguments_ends_with_the_next_command(self):
        last = self.run_tool("run", "01").stdout.splitlines()[-1]
        self.assertEqual(last, "next: steps/01_naive/README.md explains it, tools/run 02 is the next step")
        (self.repository / "steps/03_register_tile/exercises").mkdir()
        (self.repository / "steps/03_register_tile/exercises/ring.md").write_text("# A ring\n")
        last = self.run_tool("run", "03").stdout.splitlines()[-1]
        self.assertEqual(last, "next: steps/03_register_tile/README.md explains it, tools/exercise 03 has exercises")
        self.assertNotIn("next: ", self.run_tool("run", "01", "--check").stdout)
        self.assertEqual(self.run_tool("exercise", "03").stdout.splitlines()[-1], "next: tools/exercise 03 ring")

    def test_what_needs_a_gpu_is_refused_before_anything_is_compiled(self):
        for flag in ("--time", "--autotune"):
            self.assert_refused(self.run_tool("run", "01", flag), f"{flag} needs a GPU (nvidia-smi finds no usable GPU)")
        self.assert_refused(self.run_tool("measuring", "--backend", "emulator"), "leave --backend emulator out")
        done = self.run_tool("sweep", "--check", "--help")
        self.assertTrue(done.stdout.startswith("Usage: tools/sweep"), done.stderr)
        self.assertEqual(self.builds(), [])
        make_executable(self.repository / "build/emulator/bin/sweep", '#!/bin/bash\necho "sweep $*"\n')
        self.assertEqual(self.run_tool("sweep", "--check", "--help").stdout, "sweep --help\n")

    def test_the_log_of_events_compiles_one_step(self):
        make_executable(self.repository / "build/emulator/bin/play_events_02", '#!/bin/bash\necho "events $*"\n')
        done = self.run_tool("play", "events", "shared_tile", "--seed", "3")
        self.assertEqual((done.returncode, done.stdout), (0, "events shared_tile --seed 3\n"), done.stderr)
        self.assertEqual([call.split("--target ")[1] for call in self.builds()], ["play_events_02"])

    def test_a_first_build_says_that_it_takes_a_minute(self):
        self.fake("cmake", "[ $1 = --build ] && sleep 4; echo cmake version 3.25.1")
        (self.repository / "build/emulator/bin/play_raster").unlink(missing_ok=True)
        done = self.run_tool("play", "raster")
        self.assertIn("tools/play: compiling play_raster for the emulator preset (the first time: a minute or two)\n", done.stderr)

    def test_no_colour_where_none_is_wanted(self):
        (self.repository / "steps/02_shared_tile/kernel.cuh").write_text("#pragma once\nint x;\n")
        for environment, coloured in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
            _, shown = on_terminal([self.repository / "tools/diff-steps", "02"], 80, env=self.variables(**environment))
            self.assertEqual(ESCAPE in shown, coloured, environment)
        self.fake("cmake", "[ $1 = --build ] && sleep 4; echo cmake version 3.25.1")
        _, shown = on_terminal([self.repository / "tools/run", "01"], 80, env=self.variables(TERM="dumb"))
        self.assertNotIn(ESCAPE, shown)

    def test_names_that_are_none(self):
        self.assert_refused(self.run_tool("run", ""), "a step's name is empty")
        make_executable(self.repository / "build/emulator/bin/01_naive", '#!/bin/bash\nprintf "01_naive\\n  16x16  a\\n  8x32   b\\n"\n')
        self.assert_refused(self.run_tool("profile", "01", "--variant", "8x23", "--dry"), "has no variant '8x23'; did you mean 8x32?")
        self.assertEqual(self.run_tool("profile", "01", "--variant", "8x32", "--dry").returncode, 0)

    def test_a_broken_nvcc_is_named_once(self):
        false = shutil.which("false")
        (self.bin / "nvcc").symlink_to(false)
        toolkit = self.folder / "toolkit/bin"
        toolkit.mkdir(parents=True)
        (toolkit / "nvcc").symlink_to(false)
        done = self.run_tool("run", "01", CUDA_HOME=str(toolkit.parent))
        self.assertEqual(len([line for line in done.stderr.splitlines() if "does not work" in line]), 1, done.stderr)


class Machines(SandboxTest):
    """Folders that cannot be written, limits, programs that are missing."""

    def test_a_compiler_cache_that_cannot_be_written_is_left_out(self):
        self.fake("ccache", f'echo "{self.folder}/file/ccache"')
        (self.folder / "file").write_text("no folder")
        done = self.shell("check_cache; echo $CCACHE_DISABLE")
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        self.assertIn(f"the compiler cache {self.folder}/file/ccache cannot be written", done.stderr)
        self.fake("ccache", f'echo "{self.folder}/ccache"')
        self.assertEqual(self.shell("check_cache; echo ${CCACHE_DISABLE-unset}").stdout, "unset\n")

    def test_a_build_that_failed_says_why(self):
        log = self.folder / "log"
        log.write_text("-- one\nCMake Error: Generator: build tool execution failed, command was: Permission denied\n"
                       "CMake Error at CMakeLists.txt:3 (message):\n  a sentence that\n  is broken\n\n\n-- Configuring incomplete\n")
        done = self.shell(f"show_failure {log}")
        self.assertEqual(done.stderr.splitlines(), ["  Generator: build tool execution failed, command was: Permission denied",
                                                    "  a sentence that is broken"])

    def test_a_file_that_configuring_makes_is_made_again(self):
        self.installed(*LIBRARIES)
        for program in [*PROGRAMS, "c++"]:
            self.fake(program, "")
        (self.repository / "build/emulator").mkdir(parents=True)
        (self.repository / "build/emulator/build.ninja").touch()
        self.fake("cmake", """case $1 in
            --version) echo cmake version 3.25.1 ;;
            --preset) touch "$HOME/configured" ;;
            --build) [ -e "$HOME/configured" ] || { echo "ninja: error: 'kit', needed by 'x', missing and no known rule to make it"; exit 1; } ;;
            esac""")
        done = self.shell("build emulator x; echo built")
        self.assertEqual((done.returncode, done.stdout), (0, "built\n"), done.stderr)

    def test_a_python_that_a_limit_kills_is_not_told_in_the_shells_words(self):
        self.installed(*set(LIBRARIES) - {"python3-venv", "python3-jsonschema"})
        self.fake("python3", "kill -SEGV $$")
        done = self.shell("find_missing python3-venv python3-jsonschema; echo ${missing[*]}")
        self.assertEqual((done.stdout, done.stderr), ("python3-venv python3-jsonschema\n", ""))

    def test_a_path_without_the_usual_programs_is_told_in_one_sentence(self):
        for script in SCRIPTS:
            done = subprocess.run([shutil.which("bash"), self.repository / "tools" / script.name, "01"], env={"PATH": "/nonexistent"},
                                  capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            self.assert_refused(done, f"tools/{script.name}: error: PATH is '/nonexistent', where there is no ")

    def test_python_says_that_memory_does_not_suffice(self):
        refused = 0
        for tool in ("records", "counters.py"):
            for limit in range(16000, 44000, 2000):
                done = subprocess.run(["bash", "-c", f'ulimit -v {limit}; exec "$@"', "bash", python_with("jsonschema"), "-B",
                                       ROOT / "tools" / tool, "--help"], capture_output=True, text=True, check=False,
                                      stdin=subprocess.DEVNULL)
                if "there is not enough memory" in done.stderr:
                    refused += 1
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertGreater(refused, 0)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_at_any_time(self):
        """With a trap for it, bash 5.2 reports an error of syntax or never ends if it comes within a command substitution."""
        for i in range(16):
            process = subprocess.Popen([ROOT / "tools/exercise"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, start_new_session=True)
            time.sleep(0.05 + 0.02 * i)
            try:
                os.killpg(process.pid, signal.SIGINT)
            except ProcessLookupError:
                pass
            _, complained = process.communicate(timeout=60)
            self.assertIn((process.returncode, complained), {(0, ""), (-signal.SIGINT, "")})
