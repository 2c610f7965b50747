#!/usr/bin/env python3
"""What ptxas said about a step's kernels must be free of spills and of the notes that it gave up on something.

Usage: ptxas_log.py LOG...    names each kernel and target with a spill or a C75xx note, and fails if there is any
"""
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
NOTE = re.compile(r"\((C75\d\d)\)\s*(.*)")


def findings(text):
    """Yields one line for each fault; raises ValueError when the log holds no kernel at all."""
    kernel, kernels = "?", 0
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            kernel, kernels = f"{entry[1]} for {entry[2]}", kernels + 1
        if (spills := SPILLS.search(line)) and (int(spills[1]) or int(spills[2])):
            yield f"{kernel}: spills {spills[1]} bytes in stores, {spills[2]} in loads"
        if note := NOTE.search(line):
            yield f"{kernel}: {note[1]}: {note[2]}"
    if not kernels:
        raise ValueError("ptxas reported no kernel; was the step compiled with -Xptxas -v?")


def main():
    status = 0
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                found = list(findings(file.read()))
        except (OSError, ValueError) as error:
            found = [str(error)]
        for line in found:
            print(f"{path}: {line}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
