#!/usr/bin/env python3
"""Records the reports that the site shows as pages: docs/figures/reports.json.xz, from what the commands below know of them.

Usage: tools/figures/record_reports.py [--check]

--check records them too, but writes nothing, and fails when the committed reports are others.
"""
from drawing import ROOT, write_or_compare
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import packed_json
import program
import report_page
from program import UserError

REPORTS = "docs/figures/reports.json.xz"

# A hang and a race of a ring like step 11's. Where a page types one of these commands, the site links to the page that it writes.
COMMANDS = [f"tools/emulate tests/own_kernel/tma_ring.cu -D {name} --html {page}" for name, page in (("FIRST_PHASE", "hang.html"), ("EARLY_RELEASE", "race.html"))]


def recorded(run=lambda words: words):
    """{command: what its page is made of}. `run` makes the command that runs; tests put their build's program in its place."""
    found = {}
    for command in COMMANDS:
        with tempfile.TemporaryDirectory(prefix="gemm-steps.") as folder:
            path = pathlib.Path(folder) / "data.json"
            _, file, _, name, *_ = command.split()
            words = [*run(command.split()[:-2]), "--html-data", str(path)]
            known = {**os.environ, "EMULATE_FILE": file, "EMULATE_COMMAND": json.dumps(["tools/emulate", file, f"-D{name}"])}
            done = subprocess.run(words, cwd=ROOT, env=known, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if not path.is_file():
                raise UserError(f"'{' '.join(words)}' failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
            found[command] = data = json.loads(path.read_text(encoding="utf-8"))
            data["events"] = "\n".join(map(json.dumps, report_page.condensed(data["events"])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS,
                                     prog="tools/figures/record_reports.py")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    return write_or_compare("tools/figures/record_reports.py", {REPORTS: packed_json.packed(ROOT / REPORTS, recorded())}, arguments.check)


if __name__ == "__main__":
    sys.exit(program.run("tools/figures/record_reports.py", main))
