#!/usr/bin/env python3
"""Compares the emulator with compute-sanitizer: the broken versions of the kernels in tests/own_kernel and tests/museum under both.

Usage: tools/checkers.py gpu OUT.json         on a machine with a Hopper GPU: nvcc, then compute-sanitizer's four tools
       tools/checkers.py programs FOLDER      nvcc only, into FOLDER, for `gpu OUT.json --programs FOLDER` on another machine
       tools/checkers.py emulator OUT.json    on any machine: tools/emulate, into the same record
       tools/checkers.py page [--check]       writes the tables of docs/emulator/compute-sanitizer.md and docs/museum from
                                              docs/emulator/checkers_h200.json
Options of gpu and emulator: --only NAME (one file, as often as needed), --jobs N, --seconds S (of one run; 20).
Options of gpu: --total S (after so many seconds nothing more is started; 330), --programs FOLDER (what `programs` has built:
nvcc is not needed, and versions without a program are left out), --missing (only what the record does not have yet; also of programs,
with --record), --plain (without compute-sanitizer).

A version is a file and one of the names that its first lines explain (-D NAME), or the file as it is. `gpu` runs each without a
tool, then under memcheck, racecheck, synccheck and initcheck. What does not end is killed, and its row says so. A second call
with the same OUT.json keeps what the first has found and replaces what it runs itself.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import concurrent.futures
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from text_of_rows import text_of_rows
from program import UserError  # and nothing that needs packages: a machine with a GPU may have none

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "tests/own_kernel", ROOT / "tests/museum"]
FILES = {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("**/*.cu"))}
BLACKWELL = {"work_stealing"}  # no Hopper GPU runs these
ARITHMETIC = {"floats", "fp8", "integers", "narrow", "scalar"}  # tests of single instructions, with no broken version
RECORD = ROOT / "docs/emulator/checkers_h200.json"
PAGE = ROOT / "docs/emulator/compute-sanitizer.md"
MUSEUM = ROOT / "docs/museum"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOUND = 86  # compute-sanitizer's exit status when it has reported something
ARGUMENTS = {"split_k": ["--allow", "co-residency"]}  # of tools/emulate
CONDITIONS = re.compile(r"(?m)^#(?:(?:el)?if|ifn?def) .*$")
NAMES = re.compile(r"\b(?:ifn?def |defined\()([A-Z_]+)\b")


def versions(only):
    """[(file's name, defect or "")], the right version of each file first."""
    names = [name for name in sorted(FILES) if name not in BLACKWELL | ARITHMETIC]
    for name in only or []:
        if name not in names:
            raise UserError(f"Neither tests/own_kernel nor tests/museum has {name}.cu.")
    found = []
    for name in names:
        if only and name not in only:
            continue
        text = FILES[name].read_text()
        found += [(name, ""), *((name, defect) for defect in sorted(set(NAMES.findall("\n".join(CONDITIONS.findall(text))))))]
    return found


def explanation(name, defect):
    """What the file's first lines say about a defect, or nothing."""
    head = []
    for line in FILES[name].read_text().split("\n"):
        if not line.startswith("//"):
            break
        head.append(line[2:].strip())
    match = re.search(rf"\b{defect} \(([^()]*(?:\([^()]*\)[^()]*)*)\)", " ".join(head))
    return match[1] if match else ""


def run(command, seconds, folder=None):
    """(exit status or None when it was killed, output, seconds). What cannot be killed is left behind, and not waited for."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        # A session of its own, so that all of it can be killed.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
                                   start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        output.seek(0)
        return status, output.read(), round(time.monotonic() - began, 2)


def find_tools(*names):
    """The paths of programs that must be on the PATH."""
    paths = [shutil.which(name) for name in names]
    for name, path in zip(names, paths):
        if not path:
            raise UserError(f"{name} is not on the PATH.")
    return paths


def program_of(folder, version):
    return folder / "-".join(part for part in version if part)


class GpuCompiler:
    """nvcc for the files of tests/own_kernel; what tools/emulate --backend gpu calls."""

    def __init__(self, scratch):
        self.nvcc = find_tools("nvcc")[0]
        self.scratch, self.support = scratch, scratch / "gpu.o"
        self.rewriter = next((path for preset in ("emulator", "gpu")
                              if (path := ROOT / f"build/{preset}/bin/emulate_rewrite").is_file()), None)
        if not self.rewriter:
            raise UserError("There is no emulate_rewrite in build/emulator/bin; tools/emulate builds it.")
        status, output, _ = self.compile(ROOT / "tools/own_kernel/gpu.cu", self.support, "-c")
        if status:
            raise UserError(f"nvcc: {output.strip()[-400:]}")

    def compile(self, source, target, *more):
        return run([self.nvcc, "-std=c++20", "-O3", "-lineinfo", "--expt-relaxed-constexpr", "-gencode=arch=compute_90a,code=sm_90a",
                    "-I", str(ROOT / "common"), *(f"-I{folder}" for folder in FOLDERS), *more, str(source), "-o", str(target)], 200)

    def build(self, version, folder):
        """The program of a version, or None with what nvcc said."""
        name, defect = version
        source, target = self.scratch / f"{name}-{defect}.cu", program_of(folder, version)
        done = subprocess.run([self.rewriter, FILES[name], str(FILES[name].relative_to(ROOT))], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            return None, done.stderr.strip()
        source.write_text(done.stdout)
        status, output, _ = self.compile(source, target, f"-I{FILES[name].parent}", *([f"-D{defect}"] if defect else []),
                                         str(self.support))
        return (target, "") if status == 0 else (None, (output.strip() or "it took more than 200 s")[-400:])


def wanted(arguments, record):
    """The versions that the arguments pick."""
    known = {(row["file"], row["defect"]) for row in record["rows"] if row.get("run")}
    return [version for version in versions(arguments.only) if not (arguments.missing and version in known)]


def programs(arguments, record):
    """Compiles only."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory(prefix="gemm-steps-checkers.") as scratch:
        compiler = GpuCompiler(pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            todo = wanted(arguments, record)
            for version, (path, says) in zip(todo, pool.map(lambda version: compiler.build(version, arguments.folder), todo)):
                print(*version, "built" if path else f"nvcc: {says[:150]}", flush=True)
                failed += [] if path else [version]
    if failed:
        raise UserError(f"{len(failed)} of {len(todo)} versions do not compile with nvcc.")


def plain_verdict(status, output):
    if status is None:
        return {"verdict": "hang"}
    lines = [line for line in output.splitlines() if line.strip()]
    if status == 0:
        return {"verdict": "right"}
    return {"verdict": "wrong" if status == 1 else "error", "says": lines[-1][:200] if lines else f"exit status {status}"}


def tool_verdict(status, output):
    """What a tool of compute-sanitizer has found: silent, reports, hang, or error (of the tool or the program)."""
    lines = [re.sub(r"^=+ ?", "", line).strip() for line in output.splitlines() if line.startswith("=========")]
    lines = [line for line in lines if line]
    summary = next((line for line in reversed(lines) if "SUMMARY" in line), "")
    counted = re.search(r"SUMMARY: (\d+) (?:errors?|hazards?)", summary)
    says = [line for line in lines if not re.match(
        r"COMPUTE-SANITIZER|.*SUMMARY|Saved host|Host Frame|Device Frame|by thread|at |in |Address |and is |Target application|"
        r"\(identical|\.\.\.", line)]
    verdict = {"says": says[0][:200]} if says else {}
    if status is None:
        return {"verdict": "hang", **verdict}  # it may have said something before
    if counted and int(counted[1]) == 0 and status == 0:
        return {"verdict": "silent"}
    if status == FOUND or (counted and int(counted[1]) > 0):
        return {"verdict": "reports", **verdict, **({"count": int(counted[1])} if counted else {})}
    if counted and int(counted[1]) == 0:
        return {"verdict": "silent"}  # and the program has found its result wrong
    return {"verdict": "error", "says": (lines or output.splitlines() or [f"exit status {status}"])[-1][:200]}


def gpu(arguments, record):
    sanitizer = None if arguments.plain else find_tools("compute-sanitizer")[0]
    deadline = time.monotonic() + arguments.total
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-checkers."))
    try:
        help_text = run([sanitizer, "--help"], 30)[1] if sanitizer else ""
        options = {tool: [] for tool in TOOLS}
        if "--initcheck-address-space" in help_text:
            options["initcheck"] = ["--initcheck-address-space", "all"]
        todo = wanted(arguments, record)
        if arguments.programs:
            todo = [version for version in todo if program_of(arguments.programs, version).is_file()]
            if not todo:
                raise UserError(f"{arguments.programs} has no program of a version that is wanted.")
            built = {version: (program_of(arguments.programs, version).absolute(), "") for version in todo}
        else:
            print(f"compiling {len(todo)} versions", flush=True)
            compiler = GpuCompiler(folder)
            with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
                built = dict(zip(todo, pool.map(lambda version: compiler.build(version, folder), todo)))
            print(f"compiled in {time.monotonic() - deadline + arguments.total:.0f} s", flush=True)
        if shutil.which("nvidia-smi"):
            record["gpu"] = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 30)[1].strip()
        if sanitizer:
            record["compute_sanitizer"] = next((line.strip() for line in run([sanitizer, "--version"], 30)[1].splitlines()
                                                if "ersion" in line), "")
        runnable = []
        for version in todo:
            row = row_of(record, *version)
            row["run"] = None
            row.update({tool: None for tool in TOOLS} if sanitizer else {})
            if built[version][0]:
                runnable.append(version)
            else:
                row["run"] = {"verdict": "error", "says": f"nvcc: {built[version][1][:150]}"}
        if not runnable:
            raise UserError("nothing compiles with nvcc: " + next(iter(built.values()))[1])

        def measure(version, tool):
            if time.monotonic() > deadline:
                return None
            if not tool:
                return plain_verdict(*run([str(built[version][0])], arguments.seconds / 2)[:2])
            status, output, seconds = run([sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "3",
                                           *options[tool], str(built[version][0])], arguments.seconds)
            return {**tool_verdict(status, output), "seconds": seconds}

        def all_of(work, jobs):
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                for (version, tool), verdict in zip(work, pool.map(lambda pair: measure(*pair), work)):
                    row_of(record, *version)[tool or "run"] = verdict
            save(arguments.record, record)

        all_of([(version, "") for version in runnable], min(arguments.jobs, 8))
        for version in runnable:
            found = row_of(record, *version)["run"] or {"verdict": "no time"}
            print(*version, found["verdict"], found.get("says", ""), flush=True)
        if not sanitizer:
            return
        probe = tool_verdict(*run([sanitizer, "--tool", "memcheck", "--error-exitcode", str(FOUND),
                                   str(built[runnable[0]][0])], 60)[:2])
        if "not supported" in probe.get("says", ""):
            raise UserError(f"compute-sanitizer does not work on this machine: {probe['says']}")
        # What hangs holds the GPU's SMs for as long as it is let: last.
        hangs = {version for version in runnable if (row_of(record, *version)["run"] or {}).get("verdict") == "hang"}
        all_of([(version, tool) for version in runnable if version not in hangs for tool in TOOLS], min(arguments.jobs, 8))
        all_of([(version, tool) for version in runnable if version in hangs for tool in TOOLS], arguments.jobs)
        left = sum(row_of(record, *version)[tool] is None for version in runnable for tool in TOOLS)
        print(f"{len(runnable)} versions under {len(TOOLS)} tools in {time.monotonic() - deadline + arguments.total:.0f} s"
              + (f"; no time for {left} runs" if left else ""))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def emulator(arguments, record):
    tool = ROOT / "tools/emulate"

    def verdict(version):
        name, defect = version
        status, output, _ = run([str(tool), str(FILES[name]), *(["-D", defect] if defect else []),
                                *ARGUMENTS.get(name, [])], 600, ROOT)
        report = re.search(r"(?m)^([a-z0-9-]+|wrong result): (.*)$", output)
        if status == 0:
            return {"verdict": "silent"}
        if status in (1, 3) and report:
            stricter = {"stricter": True} if "this rule is stricter than the PTX ISA" in output else {}
            return {"verdict": "reports", "rule": report[1], "says": report[2][:200], **stricter}
        return {"verdict": "error", "says": output.strip()[-200:]}

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        todo = versions(arguments.only)
        for version, found in zip(todo, pool.map(verdict, todo)):
            row_of(record, *version)["emulator"] = found
            print(*version, found["verdict"], found.get("rule", ""), flush=True)


def row_of(record, name, defect):
    for row in record["rows"]:
        if (row["file"], row["defect"]) == (name, defect):
            return row
    record["rows"].append({"file": name, "defect": defect})
    record["rows"].sort(key=lambda row: (row["file"], row["defect"]))
    return row_of(record, name, defect)


def write_whole(path, text):
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


def save(path, record):
    write_whole(path, text_of_rows(record))


def load(path):
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        return {"checkers": 1, "rows": []}
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}.") from None
    if not isinstance(record, dict) or record.get("checkers") != 1:
        raise UserError(f"{path} is not a record of this tool.")
    return record


def cell(verdict, right):
    """One cell: what a tool says about a broken version; `right`: what it says about the right one."""
    if verdict is None:
        return "not run"
    kind = verdict["verdict"]
    if kind in ("silent", "right"):
        return "–" if kind == "silent" else "right"
    if kind == "hang":
        return "hangs"
    if kind == "wrong":
        return "wrong result"
    if kind == "error":
        return "error"
    masked = [re.sub(r"0x[0-9a-f]+|\d+", "N", found.get("says", "")) for found in (verdict, right or {})]
    same = right is not None and right["verdict"] == "reports" and masked[0] == masked[1]
    return "as the right version" if same else "**yes**"


def emulator_cell(row):
    found = row.get("emulator") or {}
    if found.get("verdict") != "reports":
        return "–" if found.get("verdict") == "silent" else "not run"
    return found["rule"] if found["rule"] == "wrong result" else f"`{found['rule']}`{' (stricter)' if found.get('stricter') else ''}"


def is_exhibit(row):
    return FILES[row["file"]].parent.name == "museum"


def table(record):
    """Lines of Markdown: the examples' broken versions."""
    right = {row["file"]: row for row in record["rows"] if not row["defect"]}
    lines = [f"| broken version | the emulator | the GPU alone | {' | '.join(TOOLS)} |", "| --- " * (3 + len(TOOLS)) + "|"]
    for row in record["rows"]:
        if not row["defect"] or is_exhibit(row):
            continue
        name, says = row["file"], explanation(row["file"], row["defect"])
        cells = [cell(row.get(column), right.get(name, {}).get(column)) for column in ("run", *TOOLS)]
        lines.append(f"| [{name}](../../{FILES[name].relative_to(ROOT)}) `{row['defect']}`{': ' + says if says else ''} | {emulator_cell(row)} | "
                     + " | ".join(cells) + " |")
    return lines


def exhibit(record, name):
    """Lines of Markdown: what each version of an exhibit shows."""
    right = next((row for row in record["rows"] if (row["file"], row["defect"]) == (name, "")), {})
    lines = [f"| version | the emulator | an H200 alone | {' | '.join(TOOLS)} |", "| --- " * (3 + len(TOOLS)) + "|"]
    for defect in [version[1] for version in versions([name]) if version[1]]:
        row = row_of(record, name, defect)
        cells = [cell(row.get(column), right.get(column)) for column in ("run", *TOOLS)]
        lines.append(f"| `{defect}`: {explanation(name, defect)} | {emulator_cell(row)} | " + " | ".join(cells) + " |")
    return lines


SECTION = re.compile(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)")
EXHIBIT = re.compile(r"<!-- checkers: exhibit (\w+) -->")


def exhibits(record):
    """Lines of Markdown: every exhibit, where it was reported, and who says something of it."""
    right = {row["file"]: row for row in record["rows"] if not row["defect"]}
    lines = ["| exhibit | reported in | the emulator | an H200 alone | compute-sanitizer |", "| --- | --- | --- | --- | --- |"]
    for path in sorted(MUSEUM.glob("*.md")):
        for title, text in SECTION.findall(path.read_text()):
            if not (found := EXHIBIT.search(text)):
                continue
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            source = re.search(r"\[[^\]]+\]\(https://[^)]+\)", text)
            rows = [row_of(record, *version) for version in versions([found[1]]) if version[1]]
            rules_ = dict.fromkeys(emulator_cell(row) for row in rows)
            alone = dict.fromkeys(cell(row.get("run"), None) for row in rows)
            cells = {tool: {cell(row.get(tool), right.get(row["file"], {}).get(tool)) for row in rows} for tool in TOOLS}
            tools = [tool if "**yes**" in found_ else f"{tool}, also of the right version" for tool, found_ in cells.items()
                     if found_ & {"**yes**", "as the right version"}]
            silent = "not run" if any("not run" in found_ for found_ in cells.values()) else "–"
            lines.append(f"| [{title}]({path.name}#{anchor}) | {source[0] if source else ''} | {', '.join(rules_)} | {', '.join(alone)} | "
                         f"{', '.join(tools) or silent} |")
    return lines


def reported(row, right, column):
    """Whether a tool says something of a broken version that it does not say of the right one; None: not run."""
    if row.get(column) is None:
        return None
    return cell(row[column], right.get(column)) == "**yes**"


def share(verdicts):
    """"3 of 5", of those that were run."""
    ran = [verdict for verdict in verdicts if verdict is not None]
    return f"{sum(ran)} of {len(ran)}" if ran else "not run"


def counts(record):
    """One line for each tool: of how many broken versions it says something that it does not say of the right one."""
    right = {row["file"]: row for row in record["rows"] if not row["defect"]}
    broken = [[row for row in record["rows"] if row["defect"] and is_exhibit(row) == of_museum] for of_museum in (False, True)]
    lines = ["| | reports a broken example | reports a broken exhibit | reports a right version |", "| --- | --- | --- | --- |"]
    for column in ("emulator", *TOOLS):
        alarms = [row[column]["verdict"] == "reports" for row in right.values() if row.get(column)]
        found = [share(reported(row, right.get(row["file"], {}), column) for row in rows) for rows in broken]
        lines.append(f"| {'the emulator' if column == 'emulator' else column} | {' | '.join(found)} | {share(alarms)} |")
    any_tool = [share([any(verdicts) for row in rows
                       if None not in (verdicts := [reported(row, right.get(row["file"], {}), tool) for tool in TOOLS])]) for rows in broken]
    seen = [share([row["run"]["verdict"] != "right" for row in rows if row.get("run")]) for rows in broken]
    return [*lines, f"| any of the four tools | {' | '.join(any_tool)} | |", f"| the result on the GPU, or a hang | {' | '.join(seen)} | |"]


def summary(record):
    """One sentence on the exhibits."""
    right = {row["file"]: row for row in record["rows"] if not row["defect"]}
    rows = [row for row in record["rows"] if row["defect"] and is_exhibit(row)]
    seen = share([row["run"]["verdict"] != "right" for row in rows if row.get("run")])
    found = [share([any(verdicts) for row in rows if None not in (verdicts := [reported(row, right.get(row["file"], {}), tool) for tool in tools])])
             for tools in (["emulator"], TOOLS)]
    return [f"In one run on an H200, {seen} broken versions went wrong. compute-sanitizer's four tools reported {found[1]}. The emulator reports "
            f"{found[0]}."]


def rules(record):
    """One line for each rule of the emulator: how many versions it names so, and how many of these the others notice."""
    right = {row["file"]: row for row in record["rows"] if not row["defect"]}
    by_rule = {}
    for row in record["rows"]:
        found = row.get("emulator") or {}
        if row["defect"] and found.get("verdict") == "reports":
            by_rule.setdefault(found["rule"], []).append(row)
    lines = [f"| the emulator's report | versions | right or wrong on the GPU alone | {' | '.join(TOOLS)} |",
             "| --- " * (3 + len(TOOLS)) + "|"]
    for rule, rows in sorted(by_rule.items(), key=lambda item: (-len(item[1]), item[0])):
        alone = [cell(row.get("run"), None) for row in rows]
        kinds = ", ".join(f"{alone.count(kind)} {kind}" for kind in dict.fromkeys(sorted(alone)))
        cells = " | ".join(share(reported(row, right.get(row["file"], {}), tool) for row in rows) for tool in TOOLS)
        lines.append(f"| {'a wrong result' if rule == 'wrong result' else f'`{rule}`'} | {len(rows)} | {kinds} | {cells} |")
    return lines


def page(check):
    record = load(RECORD)
    if not record["rows"]:
        raise UserError(f"there is no {RECORD.relative_to(ROOT)}; tools/checkers.py gpu and emulator make it.")
    made = {"counts": counts, "rules": rules, "table": table, "exhibits": exhibits, "summary": summary}
    block = re.compile(r"(<!-- checkers: (\w+) ?(\w*) -->\n).*?(<!-- /checkers -->)", re.S)
    for path in [PAGE, *sorted(MUSEUM.glob("*.md"))]:
        before = path.read_text()
        text = block.sub(lambda match: "\n".join([match[1], *(exhibit(record, match[3]) if match[2] == "exhibit" else made[match[2]](record)),
                                                  "", match[4]]), before)
        if text == before:
            continue
        if check:
            raise UserError(f"{path.relative_to(ROOT)} is not what the record says; tools/checkers.py page writes it.")
        write_whole(path, text)
    return 0


def main():
    parser = argparse.ArgumentParser(prog="tools/checkers.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("gpu", "emulator"):
        command = commands.add_parser(name)
        command.add_argument("record", type=pathlib.Path)
        command.add_argument("--only", action="append")
        command.add_argument("--jobs", type=int, default=os.cpu_count())
        command.add_argument("--seconds", type=float, default=20)
        command.add_argument("--total", type=float, default=330)
        if name == "gpu":
            command.add_argument("--programs", type=pathlib.Path)
            command.add_argument("--missing", action="store_true")
            command.add_argument("--plain", action="store_true")
    command = commands.add_parser("programs")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--only", action="append")
    command.add_argument("--jobs", type=int, default=os.cpu_count())
    command.add_argument("--missing", action="store_true")
    command.add_argument("--record", type=pathlib.Path, default=RECORD)
    commands.add_parser("page").add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "page":
        return page(arguments.check)
    if arguments.command == "programs":
        if arguments.jobs < 1:
            raise UserError("--jobs must be above 0.")
        programs(arguments, load(arguments.record))
        return 0
    if arguments.jobs < 1 or arguments.seconds <= 0 or arguments.total <= 0:
        raise UserError("--jobs, --seconds and --total must be above 0.")
    record = load(arguments.record)
    record["date"] = datetime.date.today().isoformat()
    (gpu if arguments.command == "gpu" else emulator)(arguments, record)
    save(arguments.record, record)
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/checkers.py", main))
