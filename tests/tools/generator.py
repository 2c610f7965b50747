"""The generators of tables and figures in an empty repository, with a record that a test makes up."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class GeneratorTest(unittest.TestCase):
    """Each test gets its own folder: self.root with a copy of the tools, self.record to write to."""

    RECORD = "docs/results/run.json"

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        self.record = self.root / self.RECORD
        self.record.parent.mkdir(parents=True)

    def write(self, record):
        self.record.write_text(json.dumps(record))

    def run_tool(self, tool, *arguments, python=sys.executable):
        """Runs tools/TOOL; returns the completed process, output as text."""
        return subprocess.run([python, "-B", f"tools/{tool}", *map(str, arguments)], cwd=self.root, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)

    def python_with_matplotlib(self):
        """The Python of the real repository's environment, which is made on first use; skips the test without one."""
        made = subprocess.run([sys.executable, "-c", "import figures; print(figures.ensure_environment())"],
                              cwd=ROOT / "tools/lib", capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest(f"no matplotlib here: {made.stderr.strip().splitlines()[-1]}")
        return made.stdout.strip()
