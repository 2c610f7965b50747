"""A copy of the scripts in an empty folder, run with a PATH that holds only what a test put there."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lib"))
import steps  # noqa: E402 (the path comes first)

COMMANDS = """awk basename bash cat chmod cmp comm cut date dirname du env false flock git grep head ln ls mkdir mktemp mv nproc
paste printf python3 realpath rm rmdir sed sh sha256sum sleep sort stat tail tee touch tr true uname wc xargs""".split()
NOBODY = 65534


class SandboxTest(unittest.TestCase):
    """Each test gets its own folder: self.repository with the tools, self.bin on the PATH."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.repository = self.folder / "repository"
        self.bin = self.folder / "bin"
        self.log = self.folder / "calls"
        self.bin.mkdir()
        self.described = {}
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "tools", self.repository / "tools", ignore=ignore)
        for step in ("01_naive", "02_shared_tile", "03_register_tile"):
            folder = self.repository / "steps" / step
            folder.mkdir(parents=True)
            (folder / "kernel.cuh").write_text("#pragma once\n")
            self.describe(step)
        for command in COMMANDS:
            found = shutil.which(command)
            if found:
                (self.bin / command).symlink_to(found)

    def describe(self, step, **fields):
        """What steps/steps.json says of a step."""
        known = self.described.get(step, {"title": "", "builds_on": "", "architecture": "80"})
        self.described[step] = {"name": step, **known, **fields}
        text = steps.text_of_descriptions(self.described[name] for name in sorted(self.described))
        (self.repository / "steps/steps.json").write_text(text, encoding="utf-8")

    def fake(self, name, body):
        """Puts a command on the PATH. Its calls are logged to self.log."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self.log}"\n{body}\n')
        path.chmod(0o755)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def variables(self, **environment):
        return {"PATH": str(self.bin), "HOME": str(self.folder), "TMPDIR": str(self.folder),
                "GEMM_STEPS_SYSTEM_CUDA": "/nowhere", **environment}

    def run_tool(self, *arguments, **environment):
        """Runs tools/<arguments> without a terminal; returns the completed process, output as text."""
        tool, *rest = map(str, arguments)
        return subprocess.run([str(self.repository / "tools" / tool), *rest], env=self.variables(**environment),
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def run_restrained(self, *arguments, limits="true"):
        """The same as somebody whom permissions bind, which they do not bind root; limits is a call of ulimit."""
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        temporary.chmod(0o777)
        self.folder.chmod(0o755)
        self.log.touch()
        self.log.chmod(0o666)
        somebody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        command = [str(self.repository / "tools" / arguments[0]), *arguments[1:]]
        return subprocess.run(["bash", "-c", f'{limits}; exec "$@"', "bash", *command], cwd=temporary, text=True,
                              env=self.variables(TMPDIR=str(temporary)), stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, **somebody)

    def shell(self, script, **environment):
        """Runs a piece of bash with the shared libraries loaded."""
        (self.repository / "tools" / "probe").write_text(
            f'#!/usr/bin/env bash\n. "$(dirname "$0")/lib/common.sh"\n'
            f'. "$(dirname "$0")/lib/install.sh"\n{script}\n')
        (self.repository / "tools" / "probe").chmod(0o755)
        return self.run_tool("probe", **environment)

    def assert_refused(self, done, *parts, status=2):
        """Exit status and one sentence on stderr that holds all the parts; no stack trace, nothing on stdout."""
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def installed(self, *packages):
        """dpkg-query answers that just these packages are installed."""
        answers = " ".join(f"installed:{package}" for package in packages)
        self.fake("dpkg-query", f'printf "%s " {answers}' if answers else "exit 1")


def emulate_folder(file, *definitions, arch="sm_90a"):
    """Where tools/emulate keeps what it makes of a file."""
    key = hashlib.sha256(f"{file.resolve()} {' '.join(definitions)} {arch}\n".encode()).hexdigest()[:8]
    return ROOT / f"build/emulator/emulate/{file.stem}-{key}"


def make_executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path

