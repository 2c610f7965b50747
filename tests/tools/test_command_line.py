"""The command line of the programs and of the scripts that start them: what is refused, what goes where, what a terminal and
a pipe show."""
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

from sandbox import ROOT, SandboxTest

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
ESCAPE = "\x1b"


def on_terminal(command, columns, **options):
    """(status, what it shows) of a command on a terminal of so many columns; escape sequences and all."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, **options)
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:  # nobody writes any more
        pass
    os.close(leader)
    return process.wait(), shown.decode("utf-8").replace("\r\n", "\n")


class ProgramTest(unittest.TestCase):
    """Runs programs of the emulator build in a folder of the test's own."""

    def setUp(self):
        if not (BUILD / "bin/compare").exists():
            self.skipTest(f"{BUILD} holds no programs")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, name, *arguments, **options):
        """The completed process, output as text, without a terminal."""
        return subprocess.run([str(BUILD / "bin" / name), *map(str, arguments)], cwd=self.folder, text=True, check=False,
                              stdin=subprocess.DEVNULL, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})

    def said(self, name, *arguments):
        done = self.run_program(name, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.stderr)
        return done.stdout

    def assert_refused(self, done, *parts):
        self.assertEqual((done.returncode, done.stdout or ""), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Refusals(ProgramTest):
    """What would do nothing, or something else than it says, ends with one sentence and status 2."""

    def check(self, program, *cases):
        for arguments, part in cases:
            with self.subTest(arguments):
                self.assert_refused(self.run_program(program, *arguments), part)

    def test_actions_that_exclude_each_other(self):
        both = "{} does not go with {}: leave one of them out"
        self.check("02_shared_tile", *(([one, other], both.format(one.split("=")[0], other.split("=")[0])) for one, other in (
            ("--list", "--budget"), ("--list", "--check"), ("--list", "--json=x"), ("--list", "--variant=16"),
            ("--list", "--counters"), ("--budget", "--json=x"), ("--budget", "--time"), ("--budget", "--rounds=3"),
            ("--budget", "--sms=8"), ("--budget", "--pattern=exact"), ("--inject-faults", "--rounds=3"),
            ("--trace=x", "--seconds=3"), ("--trace=x", "--budget"), ("--ledger", "--check"), ("--ledger", "--counters"))))
        self.assertEqual([], list(self.folder.iterdir()))

    def test_flags_are_given_or_left_out(self):
        self.check("02_shared_tile", (["--check=0"], "--check takes no value"), (["--list=false"], "--list takes no value"),
                   (["--quick=0", "--check"], "--quick takes no value"), (["--counters=no"], "--counters takes no value"))

    def test_a_statement_to_leave_out_is_one_of_the_kernel(self):
        self.check("09_tma", (["--without", "kernel.cuh:1", "--check"], "--without 'kernel.cuh:1' names no statement"),
                   (["--without", "wgmma_tile.cuh:104 __syncthreads", "--check"], "'wgmma_tile.cuh:104 wgmma_commit_group'"),
                   (["--without", "kernel.cuh:84", "--necessary"], "--necessary does not go with --without"))

    def test_a_schedule_that_breaks_nothing_does_not_end_well(self):
        file = self.folder / "old.schedule"
        file.write_text("schedule of 09_tma 128x128, 128x128x320, exact, seed 1\nfails with deadlock\n", encoding="utf-8")
        done = self.run_program("09_tma", "--replay", file)
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        self.assertIn("after these steps nothing is broken, although the file says deadlock", done.stdout)

    def test_names_are_not_empty(self):
        self.check("02_shared_tile", (["--variant", ""], "--variant: the name is empty"),
                   (["--pattern", ""], "--pattern: the name is empty"), ([""], "'' is not a size"))

    def test_seconds_are_a_number(self):
        for program in ("02_shared_tile", "sweep"):
            self.check(program, *((["--seconds", value], f"'{value}' is not a number of seconds from 0.1 to 3600")
                                  for value in ("nan", "inf", "0", "3601", "ten", "1e400")))

    def test_factors_are_numbers(self):
        self.check("30_source_tile", *(([flag, value], f"'{value}' is not a factor from -65536 to 65536")
                                       for flag in ("--alpha", "--beta") for value in ("nan", "inf", "two", "65537")))

    def test_an_old_spelling_is_answered_with_the_new_one(self):
        self.check("02_shared_tile", (["--mutants"], "--mutants is called --inject-faults now"))
        self.check("compare", (["02", "--mutants"], "--mutants is called --inject-faults now"))

    def test_the_record_of_the_ordinary_build_is_for_a_trace(self):
        self.check("11_mbarrier_ring", (["--trace-untraced", "x"], "--trace-untraced requires --trace"))

    def test_a_gpu_is_assumed_for_a_budget_of_a_step_that_runs_on_it(self):
        self.check("09_tma", (["--gpu", "sm_90"], "--gpu requires --budget"), (["--budget", "--gpu", "sm_75"], "sm_75"),
                   (["4096", "--budget", "--gpu", "sm_86"], "step 09_tma needs a Hopper GPU"))
        done = self.run_program("02_shared_tile", "4096", "--budget", "--gpu", "sm_86")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("on an RTX A6000 (assumed, from its documentation): 84 SMs", done.stdout)

    def test_a_small_cube_is_spelled_out(self):
        self.check("02_shared_tile", (["64"], "so write that cube as 64x64x64"), (["01"], "so write that cube as 1x1x1"))
        self.check("compare", (["01", "64", "--check"], "(a cube of that size is 64x64x64)"))
        self.check("sweep", (["64", "--check"], "so write that cube as 64x64x64"))

    def test_ranges_that_name_nothing(self):
        self.check("compare", (["03-01"], "the range 03-01 goes backwards: write 01-03"),
                   (["97-99"], "there is no step from 97 to 99"), (["01:"], "names no variant after its colon"))

    def test_a_list_of_variants_takes_no_shape(self):
        self.check("02_shared_tile", (["128", "--list"], "leave out 128x128x128"))

    def test_a_folder_is_no_file(self):
        (self.folder / "records").mkdir()
        self.check("02_shared_tile", (["--json", "records"], "cannot write 'records': it is a folder"),
                   (["--json", "none/x.json"], "check that the folder exists"))


class Words(ProgramTest):
    def test_ranges_and_names_are_steps_and_three_digits_a_cube(self):
        said = self.said("compare", "01-02", "register_tile", "100", "--pattern", "exact")
        self.assertEqual(re.findall(r"(?m)^  (\w+) +\S+ +ok", said), ["01_naive", "02_shared_tile", "03_register_tile"])
        self.assertIn("verifying 100x100x100\n", said)

    def test_the_comparison_lists_the_steps_that_are_named(self):
        self.assertEqual(re.findall(r"(?m)^(\w+): ", self.said("compare", "--list", "02-03")),
                         ["02_shared_tile", "03_register_tile"])
        self.assertGreater(len(re.findall(r"(?m)^(\w+): ", self.said("compare", "--list"))), 10)

    def test_every_program_says_where_it_comes_from(self):
        for program in ("02_shared_tile", "compare", "sweep", "play_raster"):
            self.assertRegex(self.said(program, "--version"),
                             r"^[\w/ ]+: commit [\w.-]+, built \d{4}-\d\d-\d\d for the emulator\n$")


class Records(ProgramTest):
    """--json."""

    def test_dev_stdout_in_a_file_keeps_what_is_printed(self):
        printed, _ = self.said("02_shared_tile", "16x16x16", "--json", "x.json").split("the record is in")
        for mode in ("w", "a"):
            with open(self.folder / "out", mode, encoding="utf-8") as out:
                done = self.run_program("02_shared_tile", "16x16x16", "--json", "/dev/stdout", stdout=out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        halves = (self.folder / "out").read_text().split("the record is in /dev/stdout\n")
        self.assertEqual([len(halves), halves[2]], [3, ""])
        for half in halves[:2]:
            self.assertEqual(half[:len(printed)].splitlines()[0], printed.splitlines()[0])
            self.assertEqual(len(json.loads(half[half.index("{"):])["checks"]), 3)

    def record(self, *arguments):
        said = self.said("02_shared_tile", "16x16x16", *arguments, "--json", "x.json")
        self.assertIn("the record is in x.json\n", said)
        return json.loads((self.folder / "x.json").read_text()), said

    def test_every_check_is_in_the_record(self):
        record, _ = self.record()
        self.assertEqual([check["pattern"] for check in record["checks"]], ["exact", "normal", "uniform"])
        self.assertTrue(all("counters" not in check for check in record["checks"]))

    def test_counters_are_in_the_record_as_the_table_has_them(self):
        record, said = self.record("--counters", "--variant", "32,16")
        self.assertEqual([check["variant"] for check in record["checks"]], ["32", "16"])
        rows = []
        for check in record["checks"]:
            for line in check["counters"]:
                self.assertRegex(line["place"], r"^(steps|common)/.*:\d+$")
                rows.append((line["place"], line["instruction"], line["requests"], line["bytes"], line["wavefronts"]))
        number = {"-": 0}
        table = [(words[0], words[1], *(number.get(words[i], 0) or int(words[i]) if words[i] != "-" else 0 for i in (2, 3, 6)))
                 for words in map(str.split, said.splitlines()) if len(words) == 9 and re.search(r":\d+$", words[0])]
        self.assertGreater(len(rows), 10)
        self.assertEqual(rows, table)

    def test_a_symbolic_link_is_written_through(self):
        (self.folder / "kept.json").write_text("before")
        (self.folder / "x.json").symlink_to("kept.json")
        self.record()
        self.assertTrue((self.folder / "x.json").is_symlink())
        self.assertIn("checks", json.loads((self.folder / "kept.json").read_text()))


class Limits(ProgramTest):
    """Output that does not arrive, and memory that is not there."""

    def test_a_full_disk_is_an_error(self):
        for arguments in (["--list"], ["--help"], ["--version"], ["--budget"], ["16x16x16"], ["16x16x16", "--counters"]):
            with self.subTest(arguments), open("/dev/full", "w", encoding="utf-8") as full:
                self.assert_refused(self.run_program("02_shared_tile", *arguments, stdout=full),
                                    "the output could not be written")
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assert_refused(self.run_program("play_raster", stdout=full), "the output could not be written")

    def test_a_closed_output_is_an_error(self):
        done = self.run_program("02_shared_tile", "--list", preexec_fn=lambda: os.close(1))
        self.assert_refused(done, "the output could not be written")

    def test_too_little_memory_is_a_sentence(self):
        for mebibytes in (64, 1170):
            limit = mebibytes << 20
            done = self.run_program("02_shared_tile", "512", "--pattern", "exact",
                                    preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"^error: .*ulimit -v.*\n$")


class Terminals(ProgramTest):
    """Terminals, narrow ones too, and pipes."""

    def shown(self, columns, name, *arguments):
        status, shown = on_terminal([str(BUILD / "bin" / name), *arguments], columns, cwd=self.folder)
        self.assertEqual(status, 0, shown)
        return shown

    def assert_fits(self, text, columns):
        # A slow machine shows how far a check is, and clears that line: a sequence without width.
        lines = re.sub(r"\x1b\[[0-9;]*K", "", text).splitlines()
        self.assertEqual([], [line for line in lines if len(line) > columns])

    def test_a_list_is_aligned_and_fits(self):
        for shown in (self.shown(60, "22_peak", "--list"), self.said("22_peak", "--list")):
            lines = shown[shown.index("\n  auto ") + 1:].splitlines()
            column = max(line.index(line.split()[1], 2 + len(line.split()[0])) for line in lines if line[2] != " ")
            for line in lines:
                self.assertNotEqual(line[column], " ", line)
                self.assertEqual(line[column - 2:column], "  ", line)
        self.assert_fits(self.shown(60, "22_peak", "--list"), 60)

    def test_help_and_budget_fit(self):
        for columns in (60, 100):
            self.assert_fits(self.shown(columns, "11_mbarrier_ring", "--budget"), columns)
            self.assert_fits(self.shown(columns, "11_mbarrier_ring", "--help"), columns)
        self.assert_fits(self.said("11_mbarrier_ring", "--help"), 80)

    def test_what_auto_chose_is_broken_into_lines(self):
        arguments = ["700x304x600", "--pattern", "exact"]
        self.assert_fits(self.shown(60, "22_peak", *arguments), 60)
        said = self.said("22_peak", *arguments)
        self.assert_fits(said, 80)
        for text, lines in ((said, 3), (self.shown(200, "22_peak", *arguments), 2)):
            chosen = re.search(r"(?m)^  22_peak chose .*\n(      .*\n)+", text)
            self.assertGreaterEqual(chosen[0].count("\n"), lines)

    def test_a_choice_can_be_left_to_arithmetic_and_says_how_long_it_took(self):
        arguments = ["3072x3072x4096", "--budget"]
        said = self.said("22_peak", *arguments)
        alone = self.said("22_peak", *arguments, "--by-arithmetic")
        for text in (said, alone):
            self.assertRegex(text, r"(?m)^  choosing took \d+\.\d\d ms of one core, once for this shape$")
        self.assertIn("22_peak chose 192x192: ", alone)  # the chapter's example
        self.assertIn("Predicted 107 us", re.sub(r"\s+", " ", alone))
        self.assertNotIn("22_peak chose 192x192: ", said)
        self.assert_refused(self.run_program("11_mbarrier_ring", "64x64x64", "--budget", "--by-arithmetic"),
                            "--by-arithmetic is for a step that chooses by shape, as 22_peak does, but 11_mbarrier_ring has only one plan")

    def test_a_check_is_one_line_in_a_pipe(self):
        self.assertRegex(self.said("22_peak", "128x128x64", "--pattern", "exact"),
                         r"(?m)^  22_peak  auto  ok     exact: all 16384 elements match bit for bit$")

    def test_a_pipe_gets_no_escape_sequences(self):
        done = self.run_program("02_shared_tile", "200", "--relaunch", "2", "--pattern", "exact")
        self.assertNotIn(ESCAPE, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")

    def test_a_long_check_shows_how_far_it_is(self):
        arguments = ["200", "--pattern", "exact", "--variant", "32,16", "--relaunch"]
        for launches in (2, 4, 8, 16, 32, 64, 128):  # until it takes more than a second here
            shown = self.shown(200, "02_shared_tile", *arguments, str(launches))
            if "checking" in shown:
                break
        self.assertRegex(shown, r"\r\x1b\[Kchecking [12] of 2: 02_shared_tile (32|16), exact, 200x200x200 \(1 s\)\r\x1b\[K")
        # When it is done nothing of it is left.
        left = re.sub(r"(?m)^.*\r\x1b\[K", "", shown)
        self.assertNotIn("checking", left)
        self.assertEqual(re.findall(r"(?m)^  02_shared_tile  (\d+)  ok ", left), ["32", "16"])
        narrow = re.findall(r"\x1b\[K(checking[^\r]*)", self.shown(30, "02_shared_tile", *arguments, str(2 * launches)))
        self.assertTrue(narrow)
        self.assertEqual([], [line for line in narrow if len(line) >= 30])


class ScriptTest(SandboxTest):
    """The scripts with programs that the test makes up."""

    def setUp(self):
        super().setUp()
        self.installed("catch2", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "libboost-context-dev", "python3-venv")
        for program in ("g++", "c++", "ninja", "ccache", "cmake"):
            self.fake(program, "echo cmake version 3.25.1")
        self.fake("nvidia-smi", "exit 9")
        for preset in ("emulator", "gpu"):
            build = self.repository / "build" / preset
            build.mkdir(parents=True)
            (build / "build.ninja").touch()
            (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.repository}\n")

    def program(self, name, body, preset="emulator"):
        path = self.repository / "build" / preset / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{name} got: $*"\n{body}\n')
        path.chmod(0o755)


class RunSteps(ScriptTest):
    """tools/run."""

    def setUp(self):
        super().setUp()
        self.program("01_naive", "exit 0")
        self.program("02_shared_tile", "exit 3")
        self.program("03_register_tile", "exit 1")

    def test_alone_it_lists_the_steps_with_their_titles(self):
        self.describe("01_naive", title="one thread, one output")
        self.describe("02_shared_tile", title="a tile in shared memory, reused by the block")
        self.describe("03_register_tile", title="a micro-tile")
        done = self.run_tool("run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[:3], [
            "01_naive          one thread, one output",
            "02_shared_tile    a tile in shared memory, reused by the block",
            "03_register_tile  a micro-tile"])
        self.assertIn("tools/run 01", done.stdout.splitlines()[-1])

    def test_the_list_fits_a_narrow_terminal(self):
        (self.bin / "stty").symlink_to(shutil.which("stty"))
        self.describe("01_naive", title=" ".join(["one", "thread,", "one", "output"] * 5))
        status, shown = on_terminal([str(self.repository / "tools/run")], 60, env={"PATH": str(self.bin)})
        self.assertEqual(status, 0, shown)
        lines = shown.split("\n\n")[0].splitlines()
        self.assertGreater(len(lines), 4)
        self.assertTrue(all(len(line) <= 60 and line[16:18] == "  " and line[18] != " " for line in lines[:-2]), shown)
        self.assertNotIn(ESCAPE, shown)

    def test_several_steps_run_in_turn_and_the_worst_status_counts(self):
        done = self.run_tool("run", "01", "naive", "03", "02", "128", "--check")
        self.assertEqual((done.returncode, done.stderr), (3, ""), done.stdout)
        self.assertEqual([line for line in done.stdout.splitlines() if " got: " in line],
                         [f"{step} got: 128 --check" for step in ("01_naive", "01_naive", "03_register_tile", "02_shared_tile")])
        self.assertEqual(len(re.findall(r"(?m)^\w+ on the emulator: nvidia-smi finds no usable GPU$", done.stdout)), 4)
        self.assertEqual(done.stdout.splitlines()[-1],
                         "2 of 4 steps failed, with exit status: 03_register_tile (1) 02_shared_tile (3)")

    def test_one_step_ends_with_its_own_status(self):
        for step, status in (("01", 0), ("02", 3), ("03", 1)):
            self.assertEqual(self.run_tool("run", step).returncode, status)

    def test_ranges_and_all_are_built_at_once(self):
        for words, steps in ((["01-02"], "01_naive 02_shared_tile"), (["all"], "01_naive 02_shared_tile 03_register_tile"),
                             (["2-9", "1"], "02_shared_tile 03_register_tile 01_naive")):
            self.log.unlink(missing_ok=True)
            done = self.run_tool("run", *words)
            self.assertEqual(re.findall(r"(?m)^(\w+) got: ", done.stdout), steps.split(), done.stderr)
            self.assertEqual([call.split("--target ")[1] for call in self.calls() if "--target" in call], [steps])

    def test_backend_may_stand_in_front(self):
        done = self.run_tool("run", "--backend", "emulator", "01", "--check")
        self.assertEqual(done.stdout, "01_naive on the emulator: asked for\n01_naive got: --check\n", done.stderr)

    def test_what_a_gpu_does_not_know_is_asked_of_the_emulator(self):
        self.fake("nvidia-smi", "echo NVIDIA H200, 9.0")
        for flags in (["--ledger"], ["--budget", "--gpu", "sm_86"], ["--budget", "--gpu=sm_86"]):
            done = self.run_tool("run", "01", *flags)
            self.assertEqual(done.stdout, f"01_naive on the emulator: asked for\n01_naive got: {' '.join(flags)}\n", done.stderr)

    def test_a_small_number_behind_a_step_is_no_shape(self):
        self.assert_refused(self.run_tool("run", "02", "64"), "there is no step 64", "write that cube as 64x64x64")
        self.assert_refused(self.run_tool("run", "64"), "there is no step '64'")

    def test_what_names_no_steps_is_refused(self):
        self.assert_refused(self.run_tool("run", "03-01"), "goes backwards: write 01-03")
        self.assert_refused(self.run_tool("run", "40-49"), "there is no step from 40 to 49", "03_register_tile")
        self.assert_refused(self.run_tool("run", "4096"), "name a step before '4096'", "03_register_tile")
        self.assert_refused(self.run_tool("run", "--check", "01"), "name a step before '--check'")
        self.assert_refused(self.run_tool("run", "01", "shard_tile"), "did you mean 02_shared_tile")
        self.assertEqual([], [call for call in self.calls() if "--target" in call])

    def test_one_file_is_not_for_several_steps(self):
        for flag in (["--json", "x"], ["--json=x"], ["--trace", "x"], ["--trace=x"]):
            self.assert_refused(self.run_tool("run", "01", "02", *flag), f"{flag[0].split('=')[0]} writes one file", "2 steps")

    def test_version_names_the_sources_and_the_builds(self):
        generated = self.repository / "build/emulator/generated"
        generated.mkdir()
        (generated / "build_info.cpp").write_text(
            'std::string harness::build_description() { return "commit abc, built 2026-11-21 for the emulator"; }\n')
        done = self.run_tool("run", "--version")
        self.assertEqual((done.returncode, done.stdout), (0, "gemm-steps: commit unknown\n"
                                                          "build/emulator: commit abc, built 2026-11-21 for the emulator\n"))


class ProfileSteps(ScriptTest):
    """tools/profile."""

    def setUp(self):
        super().setUp()
        self.fake("nvcc", f"echo '#$ TOP={self.folder}'")
        cache = self.repository / "build/gpu/CMakeCache.txt"
        cache.write_text(cache.read_text() + f"CMAKE_CUDA_COMPILER:FILEPATH={self.bin}/nvcc\n")
        self.program("01_naive", "exit 0", preset="gpu")

    def test_the_command_can_be_seen_anywhere(self):
        done = self.run_tool("profile", "02", "--variant", "16", "--dry")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1))
        self.assertIn("whether 02_shared_tile has a variant '16' is not known before it is built", done.stderr)
        command = done.stdout.splitlines()[0]
        for part in ("ncu --clock-control none ", " --kernel-name-base mangled --kernel-name regex:step_02 ",
                     " --launch-skip 3 --launch-count 1 ", "sm__pipe_tensor_cycles_active", "dram__bytes_read",
                     " build/gpu/bin/02_shared_tile 4096 --check --pattern normal --relaunch 4 --variant 16"):
            self.assertIn(part, command)
        for line in ("sm__pipe_tensor_cycles ", "lts__t_sectors_op_read ", "dram__bytes_read", "long_scoreboard"):
            self.assertRegex(done.stdout, rf"(?m)^ +{line}.*\w")
        self.assertEqual(self.calls(), [])
        nsys = self.run_tool("profile", "naive", "16x16x16", "--tool=nsys", "--dry").stdout.splitlines()[0]
        self.assertRegex(nsys, r"^nsys profile .* build/gpu/bin/01_naive 16x16x16 --check --pattern normal --relaunch 20$")

    def test_the_namespace_of_every_step_is_what_is_looked_for(self):
        for kernel in ROOT.glob("steps/*/kernel.cuh"):
            self.assertRegex(kernel.read_text(encoding="utf-8"), rf"(?m)^namespace gemm::step_{kernel.parent.name[:2]} {{")

    def test_without_a_gpu_or_a_profiler_it_says_so(self):
        self.assert_refused(self.run_tool("profile", "01"), "nvidia-smi finds no usable GPU", "--dry", "tools/run 01 --counters")
        self.fake("nvidia-smi", "echo NVIDIA H200, 9.0")
        self.assert_refused(self.run_tool("profile", "01"), "ncu is not installed", "--dry")
        self.assert_refused(self.run_tool("profile", "01", "--tool", "nsys"), "nsys is not installed")

    def test_arguments_are_looked_at_first(self):
        for arguments, part in ((["01", "--tool", "gdb"], "it must be ncu or nsys"), (["01", "64"], "'64' is not a size"),
                                (["01", "--variant", "all"], "one variant"), (["01", "--variant="], "one variant"),
                                ([], "name a step first"), (["99"], "there is no step '99'"), (["01", "--x"], "'--x'"),
                                (["01", "128", "256"], "'256' is one argument too many"), (["01", "--tool"], "--tool needs a value")):
            self.assert_refused(self.run_tool("profile", *arguments), part)
        self.assertEqual(self.calls(), [])

    def test_what_the_profiler_says_is_followed_by_what_to_look_for(self):
        self.fake("nvidia-smi", "echo NVIDIA H200, 9.0")
        self.fake("ncu", 'echo "a table"')
        done = self.run_tool("profile", "01")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"a table\n\nWhat to look for\n")
        for said, part in (("==ERROR== ERR_NVGPUCTRPERM - The user", "may not read the GPU's counters"),
                           ("==WARNING== No kernels were profiled.", "ncu saw no kernel of 01_naive")):
            self.fake("ncu", f'echo "{said}"')
            done = self.run_tool("profile", "01")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(part, done.stderr)
        self.fake("ncu", "exit 7")
        self.assertIn("ncu ended with status 7", self.run_tool("profile", "01").stderr)
