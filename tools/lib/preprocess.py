"""The translation units of a compile_commands.json: --list names them, a name preprocesses that one to stdout.

Usage: preprocess.py COMPILE_COMMANDS (--list | SOURCE)
"""
import program  # first, for Ctrl-C
import json
import os
import shlex
import subprocess
import sys


def size(name):
    """Bytes of a source; roughly, of a unit, which includes the sources that it lists."""
    return os.path.getsize(name) * (100 if "/units/" in name else 1)


def main():
    commands, what = sys.argv[1:3]
    with open(commands, encoding="utf-8") as file:
        entries = {entry["file"]: entry for entry in json.load(file)}
    if what == "--list":
        # Generated mains and tables hold nothing to look at, and steps are in units.
        build = os.path.dirname(os.path.abspath(commands))
        wanted = [name for name in entries if os.path.commonpath([name, build]) != build or "/units/" in name]
        print("\n".join(sorted(wanted, key=size, reverse=True)))
        return 0
    entry = entries[what]
    arguments = shlex.split(entry["command"])
    if os.path.basename(arguments[0]) == "ccache":
        arguments = arguments[1:]
    output = arguments.index("-o")
    arguments[output:output + 2] = ["-o", "-"]
    arguments[arguments.index("-c")] = "-E"
    return subprocess.run(arguments, cwd=entry["directory"], check=False).returncode


if __name__ == "__main__":
    sys.exit(program.run("tools/lint", main))
