"""The translation units of a compile_commands.json: --list names them, a name preprocesses that one to stdout, and --write puts
them into a folder without g++'s precompiled headers, which clang does not read, and without its parameters, which clang does not know.

Usage: preprocess.py COMPILE_COMMANDS (--list | --write FOLDER | SOURCE)
"""
import program  # first, for Ctrl-C
import json
import os
import pathlib
import re
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
    for entry in entries.values():
        entry["command"] = re.sub(r" -Winvalid-pch -include \S+/cmake_pch\.hxx| --param=\S+", "", entry["command"])
    if what == "--write":
        folder = pathlib.Path(sys.argv[3])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "compile_commands.json").write_text(json.dumps([*entries.values()], indent=1), encoding="utf-8")
        return 0
    if what == "--list":
        # Generated mains and tables hold nothing to look at, and steps are in units. Tests misuse things on purpose, and Catch2's macros
        # expand to what the checks complain about.
        build = os.path.dirname(os.path.abspath(commands))
        root = pathlib.Path(build).parents[1]
        tests = (f"{root}/tests/", f"{root}/build/units/tests/")
        wanted = [name for name in entries
                  if not name.startswith(tests) and (os.path.commonpath([name, build]) != build or "/units/" in name)]
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
