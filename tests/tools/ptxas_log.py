#!/usr/bin/env python3
"""What ptxas said about a step's kernels must be free of spills and of the notes that it gave up on something.

Usage: ptxas_log.py LOG...    names each kernel and target with a spill or a C75xx note, and fails if there is any, or no
                              kernel in all the logs together
"""
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
NOTE = re.compile(r"\((C75\d\d)\)\s*(.*)")


def findings(text):
    """Yields one line for each fault."""
    kernel = "?"
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            kernel = f"{entry[1]} for {entry[2]}"
        if (spills := SPILLS.search(line)) and (int(spills[1]) or int(spills[2])):
            yield f"{kernel}: spills {spills[1]} bytes in stores, {spills[2]} in loads"
        if note := NOTE.search(line):
            yield f"{kernel}: {note[1]}: {note[2]}"


def main():
    status = kernels = 0
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            found = [str(error)]
        else:
            kernels += len(ENTRY.findall(text))
            found = list(findings(text))
        for line in found:
            print(f"{path}: {line}")
            status = 1
    if not kernels:  # of a step whose tiles are compiled apart, one log has none
        print("ptxas reported no kernel; was the step compiled with -Xptxas -v?")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
