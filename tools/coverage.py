#!/usr/bin/env python3
"""Which lines and branches of a step's device code its check does not reach.

Usage: tools/coverage.py STEP... [-- ARGUMENTS]

Compiles the step with clang, which counts how often each piece of its source is executed, links it with the emulator that is built
already, and runs its check on the emulator: a bare --check, or with the ARGUMENTS. It prints each line of steps/NN_name and
common/gemm that is in a device function of the step and that no thread reaches in any variant, and each condition that is always true
or always false there.

What may stay unreached is in tests/coverage.txt with its reason. The exit status is 1 if something else is unreached, or if an entry of
the file is reached after all.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import collections
import fcntl
import json
import re
import shlex
import shutil
import subprocess

from program import UserError
from steps import ROOT, steps

BUILD = ROOT / "build/emulator"
EXCUSES = ROOT / "tests/coverage.txt"
CODE = 0  # the kind of such regions in what llvm-cov exports
COUNT = ["-fprofile-instr-generate", "-fcoverage-mapping"]
# Another process would keep its counts to itself, and two threads that count at once lose some.
ONE_THREAD = "#include <thread>\nunsigned std::thread::hardware_concurrency() noexcept { return 1; }\n"


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise UserError(f"{shlex.join(map(str, command[:3]))} ... failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def compile_command(step):
    """The build's command for the step's source, for clang, and with counters."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        if entry["file"].endswith(f"generated/steps/{step}.cpp"):
            words = shlex.split(entry["command"])[1:]
            break
    else:
        raise UserError(f"build/emulator does not know step {step}; `cmake --preset emulator` configures it.")
    kept = []
    while words:
        word = words.pop(0)
        if word in ("-include", "-o"):  # g++'s precompiled header, and its object
            words.pop(0)
        elif not word.startswith(("--param", "-Winvalid-pch", "-Werror")):
            kept.append(word)
    return [*(["ccache"] if shutil.which("ccache") else []), "clang++", *kept, "-w", "-O0", *COUNT]  # optimised it takes three times as long


def build(step, folder):
    """(the program, the names of the functions that it has counters for)"""
    link = shlex.split(run(["ninja", "-C", str(BUILD), "-t", "commands", step]).strip().split("\n")[-1])
    link = link[link.index("&&") + 1:len(link) - 2]
    own = f"CMakeFiles/step_{step}.dir/generated/steps/{step}.cpp.o"
    with open(folder.parent / "lock", "w", encoding="utf-8") as lock:  # another step may be measured beside this one
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(["cmake", "--build", str(BUILD), "--target", *(word for word in link if re.search(r"\w\.[ao]$", word) and word != own)])
    objects, one_thread = folder / "step.o", folder / "one_thread.cpp"
    run([*compile_command(step), "-o", str(objects)], cwd=BUILD)
    one_thread.write_text(ONE_THREAD, encoding="utf-8")
    swap = {own: str(objects), f"bin/{step}": str(folder / "program")}
    link = [swap.get(word, "clang++" if re.search(r"(^|/)(c|g|clang)\+\+(-\d+)?$", word) else word) for word in link]
    run([*link, str(one_thread), "-fprofile-instr-generate"], cwd=BUILD)
    counted = set(re.findall(r"\b__profc_(\S+)", run(["nm", str(objects)])))
    return folder / "program", counted


def device_lines(text):
    """{number of a line: whether it is in a function that only the device has}, for functions with __device__ or __global__ before
    them, and for those with constexpr alone, which the host has, too."""
    found = {}
    for match in re.finditer(r"\b__(?:device|global)__\b|(?<!if )\bconstexpr\b", text):
        depth, body, end = 0, False, match.end()
        while end < len(text) and not (depth == 0 and text[end] in ";}"):
            depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(text[end], 0)
            body = body or (depth == 1 and text[end] == "{" and text[end - 1] == " ")  # not that of a member's initial value
            end += 1
            if body and depth == 0:
                for line in range(text.count("\n", 0, match.start()) + 1, text.count("\n", 0, end) + 2):
                    found[line] = found.get(line, False) or match[0] != "constexpr"
                break
    return found


def is_discarded(line, begin, end):
    """Whether these columns are a constant's value, or of an `if constexpr`: in its condition, or what clang leaves of a branch that an
    instantiation does not have, which is the branch's first token."""
    condition = re.search(r"if constexpr (\(.*)", line[:begin - 1])
    if condition and condition[1].count("(") > condition[1].count(")") or re.search(r"\bconstexpr \w[^;{=]*= ", line[:begin - 1]):
        return True
    token, rest = line[begin - 1:end - 1], line[end - 1:]
    return token == "{" or (re.fullmatch(r"\w+|[*&]|::", token) and re.match(r"\s*(\w|[(.\[<]|->|::|[-+*/&|^]?=(?!=))", rest)) is not None


def follows_return(lines, begin, column):
    """Whether what begins here is behind `if constexpr (...) return ...;`, and so only in instantiations that have not returned there. In
    those clang counts it with what is before."""
    return not lines[begin - 1][:column - 1].strip() and re.match(r"\s*if constexpr \(.*\) return\b.*;$", lines[begin - 2]) is not None


def unreached(functions, counted, lines_of, text_of):
    """({(file, line): what}, how many pieces of device code there are), of an export's functions. What several instantiations of a
    template have in common counts for all of them, and what none of them has does not count."""
    regions, conditions, entered = collections.Counter(), collections.defaultdict(lambda: [0, 0]), collections.Counter()
    there = [function for function in functions if function["name"].split(":")[-1] in counted]  # the others are included, and not used

    def beginning(function):
        return (function["filenames"][0], *function["regions"][0][:2])

    for function in there:
        entered[beginning(function)] += function["regions"][0][4]
    for function in there:
        file, line, _ = beginning(function)
        if not entered[beginning(function)] and not lines_of(file).get(line, True):  # the step may have no use for it
            continue
        for begin, column, end, last, count, number, *_ in (region for region in function["regions"] if region[7] == CODE):
            file = function["filenames"][number]
            if begin not in lines_of(file) or (begin == end and is_discarded(text_of(file)[begin - 1], column, last)):
                continue
            if follows_return(text_of(file), begin, column):
                continue
            regions[file, begin, column] += count
        for begin, column, end, last, taken, not_taken, file, *_ in function.get("branches", []):
            both = conditions[function["filenames"][file], begin, column, end, last]
            both[0] += taken
            both[1] += not_taken
    found = {}
    for (file, line, column), count in sorted(regions.items()):
        if count == 0:
            begins = not text_of(file)[line - 1][:column - 1].strip()
            found.setdefault((file, line), "is never executed" + ("" if begins else f" from column {column} on"))
    for (file, line, column, _, last), (taken, not_taken) in conditions.items():
        if (taken == 0) != (not_taken == 0) and line in lines_of(file) and not is_discarded(text_of(file)[line - 1], column, column):
            found.setdefault((file, line), f"is always {'false' if taken == 0 else 'true'} in columns {column} to {last - 1}")
    return found, len(regions)


def excuses(text):
    """[(steps, file, line without spaces around it or * for any, reason)]"""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ", 2)]
        parts[2:] = [part.strip() for part in parts[-1].rsplit(" | ", 1)]  # the source may have a | of its own
        if len(parts) != 4 or not re.fullmatch(r"\d\d( \d\d)*", parts[0]):
            raise UserError(f"tests/coverage.txt:{number} is not `STEPS | FILE | the line of source | the reason`.")
        found.append((parts[0].split(), *parts[1:]))
    return found


def judge(number, found, text_of):
    """The lines to print: what is unreached and not excused, and excuses that are not needed."""
    known = [one for one in excuses(EXCUSES.read_text(encoding="utf-8")) if number in one[0]]
    used, told = set(), []
    for (file, line), what in sorted(found.items()):
        source = text_of(file)[line - 1].strip()
        match = next((i for i, one in enumerate(known) if one[1] == file and one[2] in (source, "*")), None)
        if match is None:
            told.append(f"{file}:{line} {what}: {source}")
        used.add(match)
    told += [f"tests/coverage.txt: step {number} does reach {one[1]}: {one[2]}" for i, one in enumerate(known) if i not in used]
    return told


def main(arguments):
    if arguments[:1] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    end = arguments.index("--") if "--" in arguments else len(arguments)
    wanted, options = arguments[:end], arguments[end + 1:] or ["--check"]
    chosen = [next((step for step in steps() if step[:2] == one or step == one), None) for one in wanted]
    if not chosen or None in chosen:
        raise UserError("name steps, as in tools/coverage.py 11.")
    missing = [tool for tool in ("clang++", "llvm-cov", "llvm-profdata", "ninja", "nm") if shutil.which(tool) is None]
    if missing:
        raise UserError(f"coverage needs {missing[0]}; `apt-get install clang llvm ninja-build` installs it.")
    told = []
    for step in chosen:
        folder = ROOT / "build/coverage" / step
        folder.mkdir(parents=True, exist_ok=True)
        binary, counted = build(step, folder)
        run([str(binary), *options], env={"PATH": "/usr/bin:/bin", "LLVM_PROFILE_FILE": str(folder / "raw")}, cwd=ROOT)
        run(["llvm-profdata", "merge", str(folder / "raw"), "-o", str(folder / "data")])
        export = json.loads(run(["llvm-cov", "export", str(binary), f"-instr-profile={folder / 'data'}"]))
        texts, lines = {}, {}

        def text_of(file):
            return texts.setdefault(file, (ROOT / file).read_text(encoding="utf-8").split("\n"))

        def lines_of(file):
            if file not in lines:
                lines[file] = device_lines("\n".join(text_of(file))) if file.startswith(("steps/", "common/gemm/")) else {}
            return lines[file]

        functions = export["data"][0]["functions"]
        for function in functions:
            function["filenames"] = [str(pathlib.Path(file).resolve()).removeprefix(f"{ROOT}/") for file in function["filenames"]]
        found, pieces = unreached(functions, counted, lines_of, text_of)
        told += [f"{step}: {line}" for line in judge(step[:2], found, text_of)]
        print(f"{step}: {pieces} pieces of device code, {len(found)} lines that are not reached or decide nothing", file=sys.stderr)
    print("\n".join(told) or "everything is reached, or stands in tests/coverage.txt with its reason")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(program.run("tools/coverage.py", lambda: main(sys.argv[1:])))
