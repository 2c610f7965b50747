"""tools/completion.bash: what Tab offers, asked of the function that bash calls."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from sandbox import ROOT, SandboxTest, make_executable

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
PROBE = """
set -u
source "$1/tools/completion.bash"
shift
for COMP_LINE in "$@"; do
  COMP_POINT=${#COMP_LINE} COMPREPLY=()
  _gemm_steps
  echo "${COMPREPLY[*]-}"
done
"""


def offered(root, *lines):
    done = subprocess.run(["bash", "-c", PROBE, "bash", str(root), *lines], capture_output=True, text=True, check=False, cwd="/")
    if done.returncode != 0 or done.stderr:
        raise AssertionError(done.stderr)
    return [line.split() for line in done.stdout.splitlines()]


class Completion(SandboxTest):
    def setUp(self):
        super().setUp()
        for folder in ("common/harness", "tools/playground"):
            shutil.rmtree(self.repository / folder, ignore_errors=True)
            shutil.copytree(ROOT / folder, self.repository / folder)
        (self.repository / "steps/02_shared_tile/exercises").mkdir()
        for name in ("barrier", "tile"):
            (self.repository / f"steps/02_shared_tile/exercises/{name}.md").touch()
        make_executable(self.repository / "build/emulator/bin/02_shared_tile",
                        '#!/bin/bash\n[ "$1" = --list ] && printf "02_shared_tile: a title\\n  32    a tile (default)\\n'
                        '  32_pad4   padded\\n  16   small\\n"\n')

    def assert_offered(self, line, *words):
        self.assertEqual(sorted(offered(self.repository, line)[0]), sorted(words), line)

    def test_steps(self):
        steps = ["01_naive", "02_shared_tile", "03_register_tile"]
        for line in ("tools/run ", "./tools/run 0", "tools/diff-steps ", "tools/sass diff ", "tools/sass check 01_naive ",
                     "tools/play events ", f"{self.repository}/tools/run "):
            self.assert_offered(line, *steps)
        self.assert_offered("tools/run 02", "02_shared_tile")
        self.assert_offered("tools/run sh", "shared_tile")
        self.assert_offered("tools/run 9")
        self.assert_offered("tools/compare 01 ", *steps, "all")
        self.assert_offered("tools/rivals ~/DeepGEMM ", *steps)
        self.assert_offered("tools/rivals ")  # any folder: bash's own completion
        self.assert_offered("tools/sass ", *steps, "diff", "check", "update")
        self.assert_offered("tools/diff-steps 01 02 ")
        self.assert_offered("tools/profile ", *steps)

    def test_variants_of_a_program_that_was_built(self):
        for step in ("02", "2", "shared_tile", "02_shared_tile", "steps/02_shared_tile"):
            self.assert_offered(f"tools/run {step} --variant ", "32", "32_pad4", "16", "all")
        self.assert_offered("tools/run 02 --variant 32_", "32_pad4")
        self.assert_offered("tools/run 02 --variant 16,32_", "16,32_pad4")
        self.assert_offered("tools/run 01 --variant ", "all")
        # bash takes these apart at ':' and '=' and wants the last part only.
        self.assert_offered("tools/compare 01 02:3", "32", "32_pad4")
        self.assert_offered("tools/sass 02:1", "16")
        self.assert_offered("tools/run 02 --variant=1", "16")

    def test_flags_are_those_of_the_sources(self):
        run, compare = (set(words) for words in offered(self.repository, "tools/run 01 --", "tools/compare 01 --"))
        self.assertLessEqual({"--backend", "--check", "--counters", "--help", "--json", "--trace", "--trace-ctas", "--variant"}, run)
        self.assertEqual(compare - run, {"--lab", "--population", "--suite"})
        self.assert_offered("tools/clean --", "--all", "--dry", "--help")
        self.assert_offered("tools/test --a", "--all")
        self.assert_offered("tools/tables.py --", "--check", "--help", "--list")
        self.assert_offered("tools/sass 02 --f", "--full")
        self.assert_offered("tools/sweep --t", "--tile")
        self.assert_offered("tools/rivals ~/DeepGEMM --s", "--seconds", "--seed", "--sms")
        self.assert_offered("tools/emulate x.cu --se", "--seed", "--seeds", "--seconds")
        self.assert_offered("tools/emulate x.cu --st", "--strict")
        self.assert_offered("tools/play tma_swizzle --r", "--rows", "--row-bytes")

    def test_values(self):
        self.assert_offered("tools/run 01 --backend ", "gpu", "emulator")
        self.assert_offered("tools/run 01 --check --backend e", "emulator")
        self.assert_offered("tools/run 05 4096 --budget --gpu sm_8", "sm_80", "sm_86", "sm_89")
        self.assert_offered("tools/run 01 --json ")  # any file: bash's own completion
        self.assert_offered("tools/run 01 --json x.json 03", "03_register_tile")
        self.assert_offered("tools/test e", "emulator")
        self.assert_offered("tools/records ", "check", "diff", "csv", "migrate", "compact", "history")
        self.assert_offered("tools/records diff --", "--by", "--check", "--help", "--only", "--output")

    def test_exercises_and_programs_to_play_with(self):
        self.assert_offered("tools/exercise ", "02_shared_tile")
        self.assert_offered("tools/exercise 02 ", "barrier", "tile")
        self.assert_offered("tools/exercise shared_tile tile ", "start", "check", "run", "hint", "solution")
        self.assert_offered("tools/exercise 02 tile --", "--help", "--list", "--restart")
        self.assert_offered("tools/exercise 02 tile run --counte", "--counters")
        self.assert_offered("tools/play ", *(path.stem[5:] for path in ROOT.glob("tools/playground/play_*.cpp")))
        self.assert_offered("tools/play tensor_map ", "encode", "decode")

    def test_other_commands_of_the_same_names_are_left_alone(self):
        done = subprocess.run(["bash", "-c", f"source {self.repository}/tools/completion.bash; complete -p; complete -p test"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        names = {line.split()[-1] for line in done.stdout.splitlines()}
        tools = {path.name for path in (ROOT / "tools").iterdir() if path.is_file() and os.access(path, os.X_OK)}
        self.assertLessEqual({f"tools/{tool}" for tool in tools} | {f"./tools/{tool}" for tool in tools}, names)
        self.assertEqual([name for name in names if "tools/" not in name], [])


class CompletedFlags(unittest.TestCase):
    """What completion.bash has to spell out is what the programs know."""

    def test_every_flag_with_a_value_is_known_as_one(self):
        text = (ROOT / "tools/completion.bash").read_text(encoding="utf-8").split("_gemm_steps_takes_value() {")[1].split("\n}")[0]
        known = set(re.findall(r"--[\w-]+", text))
        for pattern in ("common/harness/cli/*.cpp", "tools/playground/*.cpp", "tools/s*/main.cpp", "tools/measuring_program/*.cpp"):
            for path in ROOT.glob(pattern):
                source = path.read_text(encoding="utf-8")
                flags = set(re.findall(r'add_option\(\s*"(--[\w-]+)"', source)) - {"--root", "--object", "--linked"}
                self.assertEqual(flags - known, set(), path)
                self.assertEqual(set(re.findall(r'add_flag\(\s*"(--[\w-]+)"', source)) & known, set(), path)

    def test_offered_values_and_flags_are_understood(self):
        programs = [BUILD / "bin/01_naive", BUILD / "bin/60_peer_copy"]  # one with a product, one about several GPUs
        if not all(program.exists() for program in programs):
            self.skipTest(f"{BUILD} holds no programs")
        said, of_ranks = (subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout for program in programs)
        for flag in ("--mode", "--completion", "--pattern", "--gpu"):
            entry = re.search(rf"(?m)^ +{flag} .*(?:\n {{20,}}.*)*", said)[0]  # with the lines that go on
            for value in offered(ROOT, f"tools/run 01 {flag} ")[0]:
                self.assertRegex(entry, rf"\b{value}\b")
        flags = set(offered(ROOT, "tools/run 01 --")[0]) - {"--backend", "--html"}  # those of the script
        self.assertEqual(flags, set(re.findall(r"(?m)^ +(?:-h,)?(--[a-z-]+)", said + of_ranks)) - {"--trace-untraced"})
