"""Where the output cannot be written: a full disk, a closed descriptor. A tool says so, does nothing else, and its status is 2."""
import re
import shutil
import subprocess
import unittest

from generator import python_with
from sandbox import ROOT, SandboxTest

UNWRITABLE = (">/dev/full", ">&-")


class UnwritableOutput(SandboxTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "docs/schemas", self.repository / "docs/schemas")
        shutil.copytree(ROOT / ".ci", self.repository / ".ci")
        (self.repository / "tools/own_kernel/wrong.cpp").write_text("int  not_formatted ;\n")
        (self.repository / "build/emulator/bin").mkdir(parents=True)
        (self.repository / "build/emulator/bin/program").write_text("built\n")
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        for name in ("clang-format-14", "clang-tidy", "apt-get", "cmake", "ninja", "g++", "ctest"):
            self.fake(name, 'echo "clang-format version 14.0.6; version 3.25.1"')

    def tree(self):
        return {path: path.read_bytes() for path in self.repository.rglob("*") if path.is_file() and ".git" not in path.parts}

    def redirected(self, command, where):
        """Runs it with its output there; standard error is kept."""
        return subprocess.run(["bash", "-c", f'"$@" {where}', "bash", *map(str, command)], env=self.variables(), cwd=self.repository,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def assert_stopped(self, command):
        before = self.tree()
        name = command[-2].relative_to(self.repository)
        for where in UNWRITABLE:
            self.assert_refused(self.redirected(command, where), f"{name}: error: ", "cannot be written")
        self.redirected(command, "| true")
        self.assertEqual(self.tree(), before, command)
        self.assertEqual(self.calls(), [], command)

    def test_a_script_does_nothing_beside_its_help(self):
        scripts = [path for path in sorted([*(self.repository / "tools").iterdir(), self.repository / ".ci/run",
                                            self.repository / "tools/own_kernel/emulate-cc"])
                   if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")]
        self.assertGreater(len(scripts), 16)
        for script in scripts:
            with self.subTest(script=script.name):
                if script.name == "emulate-cc":
                    self.assert_refused(self.redirected([script, "--help"], ">/dev/full"), "cannot be written")
                else:
                    self.assert_stopped([script, "--help"])

    def test_a_python_tool_does_nothing_beside_its_help(self):
        tools = [path for path in sorted([*(self.repository / "tools").iterdir(), *(self.repository / "tools/figures").iterdir()])
                 if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3") and
                 re.search(r"(?m)^    sys.exit\(", path.read_text(encoding="utf-8"))]
        self.assertGreater(len(tools), 12)
        for tool in tools:
            with self.subTest(tool=tool.name):
                self.assert_stopped([python_with("jsonschema"), "-B", tool, "--help"])


if __name__ == "__main__":
    unittest.main()
