"""A Python without jsonschema: the tools run under .venv's, which is made where it is missing."""
import os
import subprocess
import sys

from generator import GeneratorTest, contestant, python_with, shape, timed
from sandbox import make_executable


class Environments(GeneratorTest):
    """-S is a Python that has the standard library alone."""

    def setUp(self):
        super().setUp()
        self.write(timed([shape(64, 64, 64, [contestant("01_naive", "step", 2, "16x16")])]))
        self.python = self.root / ".venv/bin/python"

    def check(self, **environment):
        return subprocess.run([sys.executable, "-S", "-B", "tools/records", "check", self.RECORD], cwd=self.root, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, env={**os.environ, **environment})

    def test_the_standard_library_has_no_jsonschema(self):
        done = subprocess.run([sys.executable, "-S", "-c", "import jsonschema"], capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_the_environment_that_is_there_is_used(self):
        make_executable(self.python, f"""#!/bin/bash
echo "$1" >>calls
[ "$1" = -c ] && exit 0
exec {python_with("jsonschema")} -B "$@"
""")
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("a timed run", done.stdout)
        self.assertEqual((self.root / "calls").read_text().split(), ["-c", "tools/records"])

    def test_what_cannot_be_installed_is_named_with_the_package(self):
        done = self.check(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_NO_CACHE_DIR="1", PIP_CONFIG_FILE="/dev/null",
                          PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
        self.assertEqual(done.returncode, 1, done.stderr)
        said = done.stderr.splitlines()
        self.assertEqual(len(said), 2, done.stderr)
        self.assertEqual(said[0], "installing matplotlib and jsonschema into .venv")
        self.assertIn("jsonschema could not be installed (", said[1])
        self.assertIn("install it ('apt-get install python3-jsonschema')", said[1])
        self.assertFalse((self.root / ".venv").exists())
        self.assertEqual([path.name for path in self.root.glob(".venv.part.*")], [])

    def test_an_environment_without_everything_is_made_anew(self):
        make_executable(self.python, "#!/bin/bash\nexit 1\n")
        done = self.check(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_NO_CACHE_DIR="1", PIP_CONFIG_FILE="/dev/null",
                          PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
        self.assertIn("installing matplotlib and jsonschema into .venv", done.stderr)
        self.assertTrue(self.python.exists())  # the old one is there until the new one is complete
