"""The walk on a GPU machine: what it would type, and how it types."""
import contextlib
import io
import re
import time
import unittest
import unittest.mock

import walk_gpu
from commands import distinct_commands
from sandbox import SandboxTest
from walk_gpu import Command, UserError, Walk


class WalkedCommands(unittest.TestCase):
    def setUp(self):
        self.commands, self.left = walk_gpu.sort_out()
        self.texts = [command.text for command in self.commands]

    def test_every_command_of_the_pages_is_typed_or_left_for_a_reason(self):
        filled = {text.replace("NAME.json", "walk.json").replace("NN", walk_gpu.EXAMPLE) for text in distinct_commands()}
        self.assertEqual(filled, set(self.texts) | set(self.left))
        self.assertFalse(set(self.texts) & set(self.left))
        self.assertEqual([], [text for text, (_, why) in self.left.items() if len(why) < 10])

    def test_what_needs_a_gpu_is_there_once_and_in_order(self):
        wanted = ["tools/run 01", "tools/run 03 4096 --time --variant all", "tools/run 22 3000x5000x7000 --autotune",
                  "tools/run 11 --trace out.json", "tools/run 17 --time", "tools/run 22 4096 --variant all --time",
                  "build/gpu-debug/bin/11_mbarrier_ring 512 --check --relaunch 1000",
                  "tools/compare 14 15 16 8192 --mode both", "build/gpu/bin/roofline",
                  "tools/sweep --tile 128x128x64 8192"]
        self.assertEqual([text for text in self.texts if text in wanted], wanted)
        self.assertEqual(len(self.texts), len(set(self.texts)))
        self.assertTrue(self.texts[-1].startswith("tools/"))
        self.assertTrue([text for text in self.texts if re.fullmatch(r"ncu .* build/gpu/bin/compare 14:all 15 8192 .*", text)])

    def test_nothing_is_typed_that_changes_the_card_or_has_a_gap(self):
        for text in self.texts:
            self.assertNotRegex(text, r"nvidia-smi|NN|NAME|FILE|\.\.\.|--backend emulator|bootstrap")

    def test_what_takes_minutes_is_long(self):
        long = {command.text for command in self.commands if command.long}
        self.assertLessEqual({"tools/compare --suite", "tools/measuring --json measuring.json",
                              "tools/sweep 8192 --json sweep.json"}, long)
        self.assertFalse({text for text in long if not re.search("--suite|--population|sweep|measuring", text)})
        for text in ("tools/compare --suite --budget", "tools/sweep 4096 --tile 256x128x64"):
            self.assertFalse(re.match(walk_gpu.LONG, text))

    def test_what_nobody_thought_of_is_an_error(self):
        for text in ("tools/run FILE", "git frobnicate"):
            self.assertIsNone(walk_gpu.why_left(text))

    def test_what_they_run_is_built_first(self):
        self.assertEqual(walk_gpu.targets("tools/run 11 --trace x"), {("gpu", "11_mbarrier_ring"), ("gpu-trace", "11_mbarrier_ring")})
        self.assertEqual(walk_gpu.targets("tools/run 01-02 naive 16x16x16 --check"),
                         {("gpu", "01_naive"), ("gpu", "02_shared_tile"), ("gpu", "naive")})
        self.assertEqual(walk_gpu.targets("tools/profile 04 2048 --variant plain"), {("gpu", "04_mma_sync")})
        self.assertEqual(walk_gpu.targets("tools/run --version"), set())
        self.assertEqual(walk_gpu.targets("X=1 build/gpu-debug/bin/03_x --check"), {("gpu-debug", "03_x")})
        self.assertEqual(walk_gpu.targets("tools/play mbarrier init 1"), {("gpu", "play_mbarrier")})
        script = walk_gpu.build_script(self.commands)
        self.assertRegex(script, r"(?m)^build gpu 01_naive .*\bcompare lab measuring .*roofline sweep$")
        self.assertRegex(script, r"(?m)^build gpu-debug 11_mbarrier_ring$")
        self.assertEqual(walk_gpu.build_script([Command("x:1", "true")]), "")

    def test_without_a_gpu_the_machine_code_is_what_is_left(self):
        texts = [command.text for command in walk_gpu.without_gpu(self.left)]
        self.assertIn("tools/sass diff 02 03", texts)
        self.assertTrue(all(text.startswith("tools/sass ") for text in texts))

    def test_a_refusal_must_come_with_its_words(self):
        refused = "tools/play mbarrier init 2, arrive_expect 512, arrive, arrive"
        self.assertEqual(walk_gpu.verdict(refused, 1, "event 4, 'arrive': launch failure"), "ok")
        self.assertIn("is to say", walk_gpu.verdict(refused, 1, "segmentation fault"))
        self.assertIn("is to be refused", walk_gpu.verdict(refused, 0, "event 4, 'arrive': launch failure"))
        self.assertEqual(walk_gpu.verdict("tools/play mbarrier init 1, arrive_expect 512, complete 1024", 0, ""), "ok")
        self.assertEqual(walk_gpu.verdict("tools/run 01", 2, ""), "FAILED, status 2")


class WalkTyping(SandboxTest):
    """Commands of the test's own, typed in a folder."""

    def setUp(self):
        super().setUp()
        self.root, self.out = self.folder / "tree", self.folder / "out"
        self.root.mkdir()
        self.out.mkdir()
        (self.root / "page").write_text("as it was\n")

    def walk(self, *texts, script="", timeout=20, budget=60):
        walk = Walk(self.root, lambda: [path.name for path in self.root.iterdir()], self.out, str(self.bin))
        commands = [Command(f"page:{number}", text) for number, text in enumerate(texts, 1)]
        self.said = io.StringIO()
        with contextlib.redirect_stdout(self.said):
            results = walk.run(commands, script, timeout, time.monotonic() + budget)
            self.status = walk_gpu.print_summary(results, self.out)
        return [what for _, what in results]

    def written(self):
        return (self.out / "walk.log").read_text()

    def test_each_has_a_line_and_its_output_in_the_log(self):
        self.assertEqual(self.walk("echo one", "echo two >&2; exit 3"), ["ok", "FAILED, status 3"])
        self.assertEqual(self.status, 1)
        self.assertRegex(self.said.getvalue(), r"(?m)^page:1 +ok +\d+\.\d s  echo one$")
        self.assertRegex(self.said.getvalue(), r"(?m)^FAILED, status 3: page:2: echo two >&2; exit 3$")
        self.assertIn("1 did what they should, 1 failed, 0 not run, 0 left out", self.said.getvalue())
        self.assertRegex(self.written(), r"==== page:1: echo one\none\n==== ok, \S+ s\n\n==== page:2: .*\ntwo\n==== FAILED, status 3")

    def test_all_well_is_status_0(self):
        self.walk("true")
        self.assertEqual(self.status, 0)

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        started = time.monotonic()
        marker = self.folder / "marker"
        self.assertEqual(self.walk(f"(sleep 3; touch {marker}) & sleep 100 | cat", "echo next", timeout=0.3), ["DID NOT END", "ok"])
        self.assertLess(time.monotonic() - started, 3)
        time.sleep(3)
        self.assertFalse(marker.exists())

    def test_what_will_not_end_when_asked_is_made_to(self):
        self.assertEqual(self.walk("trap '' TERM; while :; do sleep 1; done", timeout=1), ["DID NOT END"])

    def test_what_is_left_in_the_background_is_ended(self):
        marker = self.folder / "marker"
        self.assertEqual(self.walk(f"(sleep 2; touch {marker}) &", "true"), ["ok", "ok"])
        time.sleep(2.5)
        self.assertFalse(marker.exists())

    def test_behind_the_budget_nothing_is_run(self):
        self.assertEqual(self.walk("true", "sleep 50", "echo never", budget=1), ["ok", "not run", "not run"])
        self.assertEqual(self.status, 1)
        self.assertIn("0 failed, 2 not run", self.said.getvalue())
        self.assertNotIn("never", self.written())

    def test_without_a_build_nothing_is_run(self):
        self.assertEqual(self.walk("echo never", script="echo why\nfalse"), ["FAILED, status 1", "not run"])
        self.assertIn("why", self.written())
        self.assertNotIn("never\n====", self.written())

    def test_the_tree_is_left_as_it_was_and_what_was_written_is_kept(self):
        before = (self.root / "page").stat().st_mtime_ns
        self.walk("echo other >page; echo new >record", "cat page; ls", "rm page")
        self.assertRegex(self.written(), r"ls\nas it was\npage\n====")
        self.assertEqual(((self.root / "page").read_text(), (self.root / "page").stat().st_mtime_ns), ("as it was\n", before))
        self.assertEqual((self.out / "files/page_1_page").read_text(), "other\n")
        self.assertEqual((self.out / "files/page_1_record").read_text(), "new\n")
        self.assertEqual([path.name for path in self.root.iterdir()], ["page"])

    def test_a_program_that_is_not_installed_is_left_out(self):
        self.assertEqual(self.walk("ncu x", "no/such/tool"), ["left out, ncu is not installed", "FAILED, status 127"])
        self.assertEqual(self.walk("tools/profile 11", "tools/profile 11 --tool nsys", "tools/profile 11 --dry"),
                         ["left out, ncu is not installed", "left out, nsys is not installed", "FAILED, status 127"])


class WalkArguments(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                status = walk_gpu.main(list(arguments))
            except SystemExit as end:
                status = end.code
        self.assertEqual(status, 2)
        return said.getvalue()

    def test_the_dry_list_has_numbers_marks_and_reasons(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(walk_gpu.main(["--dry", "--only", "suite|tools/run 01$"]), 0)
        self.assertRegex(said.getvalue(), r"(?m)^ +1 README.md:\d+ +tools/run 01$")
        self.assertRegex(said.getvalue(), r"(?m)^ +\d+ docs/commands.md:\d+ +long +tools/compare --suite$")
        self.assertRegex(said.getvalue(), r"nvidia-smi -pl   # changes the settings of the card")
        self.assertNotIn("autotune", said.getvalue().split("Not typed here")[0])

    def test_bad_arguments_are_named(self):
        for arguments, part in ((["--only", "("], "'(' is not a regular expression"), (["--timeout", "0"], "'0' is not a whole"),
                                (["--budget", "soon"], "'soon' is not a whole number"), ([], "--out FOLDER"),
                                (["--only", "nothing like it", "--out", "x"], "no command is left"),
                                (["--dyr"], "--dyr")):
            self.assertIn(part, self.refused(*arguments))

    def test_a_command_that_nobody_sorted_is_refused(self):
        with unittest.mock.patch.object(walk_gpu, "page_commands", lambda: [("docs/x.md:1", "git frobnicate")]):
            with self.assertRaisesRegex(UserError, "docs/x.md:1: nobody has said what to do about 'git frobnicate'"):
                walk_gpu.sort_out()
