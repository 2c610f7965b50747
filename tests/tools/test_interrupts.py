"""Ctrl-C in a Python tool: status 130, nothing on stderr, nothing half-written."""
import os
import re
import signal
import subprocess
import time

from generator import ROOT, GeneratorTest, python_with

PROGRAMS = sorted(path for path in [*(ROOT / "tools").glob("*"), *(ROOT / "tools/figures").glob("*"), *(ROOT / "tools/lib").glob("*.py")]
                  if path.is_file() and "__main__" in path.read_text(encoding="utf-8"))


class Interrupts(GeneratorTest):
    """Tools that wait for a pipe, so that they are surely at work when the signal comes."""

    def interrupted(self, pipe, command):
        """Runs the tool until it opens the pipe, then ends it as Ctrl-C does."""
        pipe = self.root / pipe
        pipe.parent.mkdir(parents=True, exist_ok=True)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        before = {path for path in self.root.rglob("*")}
        process = subprocess.Popen([python_with("jsonschema"), "-B", f"tools/{command[0]}", *command[1:]], cwd=self.root, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while True:
            try:
                end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:  # the tool has not got to reading it
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(process.poll(), f"{command} ended by itself")
                time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass  # the signal came between opening the pipe and reading it: Python looks at it when the read ends
        os.close(end)
        said, complained = process.communicate(timeout=60)
        self.assertEqual((process.returncode, complained, said), (130, "", ""), command)
        self.assertEqual({path for path in self.root.rglob("*")}, before)

    def test_tools_that_read_a_record(self):
        self.interrupted(self.RECORD, ["figures/plot_ladder.py", self.RECORD])
        self.interrupted(self.RECORD, ["figures/plot_stream_k.py", self.RECORD])
        self.interrupted(self.RECORD, ["figures/draw_sweep.py", self.RECORD])
        for action in ("check", "csv", "migrate"):
            self.interrupted(self.RECORD, ["records", action, self.RECORD])
        self.interrupted(self.RECORD, ["records", "diff", self.RECORD, self.RECORD])

    def test_tools_that_read_what_is_in_its_place(self):
        self.interrupted("docs/results/roofline_h200.json", ["figures/draw_roofline.py"])
        self.interrupted("docs/figures/rasters.json", ["figures/draw_rasters.py"])
        self.interrupted("docs/figures/runs.json.xz", ["figures/draw_mbarrier_events.py"])
        self.interrupted("build/emulator/traces/09.json", ["figures/draw_trace.py", "10"])

    def test_tools_that_read_pages_and_profiles(self):
        for tool in ("tables.py", "excerpts.py", "roofline_table.py"):
            self.interrupted("docs/page.md", [tool, "docs/page.md"])
        self.interrupted("profile.csv", ["counters.py", "profile.csv", "--shape", "64x64x64", "--device", "x", "--commit", "x",
                                         "--date", "2025-01-02", "02:32"])
        self.interrupted("page.md", ["lib/text_rules.py", "page.md"])
        self.interrupted("commands.json", ["lib/preprocess.py", "commands.json", "--list"])

    def test_every_program_is_ready_for_it_before_it_does_anything(self):
        self.assertGreater(len(PROGRAMS), 15)
        for path in PROGRAMS:
            first, source = None, path
            while first != "program":  # a figure script imports another file of its folder first, which does
                imports = re.findall(r"(?m)^(?:import|from) (\w+)", source.read_text(encoding="utf-8"))
                first = next((name for name in imports if name not in ("pathlib", "sys")), "")
                source = path.with_name(f"{first}.py")
                self.assertTrue(first == "program" or source.is_file(), f"{path.name}: imports that take time come after program")
