#!/usr/bin/env python3
"""Types every command of the pages and help texts that needs a Hopper GPU, as a reader would: each once, in the order of
the pages, after one build of what they need. test_markdown.py types the others.

Usage: tests/tools/pages/walk_gpu.py --out FOLDER [--long] [--only REGEX] [--from N] [--timeout S] [--budget S]
       tests/tools/pages/walk_gpu.py --dry           lists them, on any machine

FOLDER gets walk.log, with what every command said, and in files/ what the commands wrote; the repository is left as it was.
A command that hangs is ended with everything it started. The exit status is 0 when all commands did what the pages promise,
1 when one failed or was not run, 2 when this machine or an argument is of no use.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from commands import PLACEHOLDER, REFUSED, help_commands, instead, page_commands, profiler_commands, repository_files
from sandbox import ROOT

TIMEOUT = 60  # seconds for a command; a long one gets more, the build more still
LONG_FACTOR = 10
BUILD_FACTOR = 30
PATIENCE = 5  # seconds between asking a process to end and ending it
LONG = r"(?!.* --budget)(tools/compare .*--(?:suite|population)|tools/measuring|tools/sweep (?!.*(--tile|--list|--check)))"
NVCC = "needs nvcc and no GPU: --nvcc types it"
# Typed by nobody: (the whole command, why). The first that fits counts.
LEFT = [
    (r"git clone .*", "fetches the repository"),
    (r"nvidia-smi -.*", "changes the settings of the card"),
    (r"compute-sanitizer --tool synccheck", "the beginning of a command that the page spells out"),
    (r"tools/play tensor_map decode .*\.\.\.", "the bytes are not spelled out; test_markdown checks the program's --help"),
    (r"tools/\w+|nvidia-smi|nvcc|cuobjdump|nvdisasm|tools/play NAME", "the name of a program, mentioned"),
    (r"tools/bootstrap .*", "installs; test_scripts.py"),
    (r"tools/(format|lint)\b.*", "checks the sources and has no need of a GPU; test_scripts.py"),
    (r"tools/emulate\b.*", "runs on the emulator; test_emulate.py and tests/own_kernel"),
    (r"tools/clean\b.*", "removes what was built; test_clean.py"),
    (r"tools/test\b.*|\.ci/run", "runs all tests: a walk of its own"),
    (r"tools/new-step\b.*", "makes a step; test_new_step.py"),
    (r"tools/necessary\b.*", "runs on the emulator; tests/command_line and tests/steps"),
    (r"tools/site\b.*", "makes and serves pages; test_site.py"),
    (r"tools/exercise\b.*", "runs on the emulator; test_exercise.py and tests/exercises"),
    (r"tools/(\w+\.py|diff-steps|records|same-code)\b.*", "has no need of a GPU; the other tests beside this file"),
    (r"GEMM_STEPS_UPDATE_PAGES=1 .*", "writes pages anew, on the emulator"),
    (r"cmake (--workflow )?--preset emulator\b.*", "is how every other test was built"),
    (r"cmake --install\b.*|cmake --build build/emulator\b.*", "installs the emulator; test_install.py"),
    (r"tools/rivals\b.*", "needs a checkout of DeepGEMM; test_rivals.py"),
    (r"tools/sass update\b.*", "writes every listing anew; tests/sass checks that they are up to date"),
    (r"tools/sass\b.*", NVCC),
    (r"tools/\w+ .*--(backend emulator|ledger|html)\b.*|tools/play events\b.*", "runs on the emulator; test_markdown types it with a number"),
]
TYPED = "test_markdown types it: no GPU changes what it does"
# What the hardware makes of a command that the emulator refuses; None: it succeeds.
ON_A_GPU = {
    "tools/compare --lab 51:all 4096x1024x4096 2048x2048x8192 4096 64x4096x4096 --check --pattern exact": "are wrong",
    "tools/play mbarrier init 1, arrive 2, test 0": None,  # no hardware looks whether a phase was waited for
    "tools/play mbarrier init 1, arrive_expect 512, complete 1024": None,  # undefined, and an H200 goes on
    "tools/play mbarrier init 2, arrive_expect 512, arrive, arrive": "event 4, 'arrive': ",
    "compute-sanitizer --tool synccheck --show-backtrace no build/gpu/bin/play_mbarrier init 2, arrive_expect 512, "
    "arrive, arrive": "Barrier error detected",
}
PROFILERS = {"compute-sanitizer", "ncu", "nsys"}  # not every CUDA Toolkit has them
STEPS = {path.parent.name[:2]: path.parent.name for path in sorted(ROOT.glob("steps/[0-9][0-9]_*/kernel.cuh"))}
EXAMPLE = "17"  # the step that stands for NN


class UserError(Exception):
    """One sentence for the user."""


@dataclass(frozen=True)
class Command:
    place: str
    text: str
    long: bool = False


# ---- Which commands --------------------------------------------------------------------------------------------------


def in_order():
    """(place, command) of all: the first page, the page of commands, the chapters, the pages of the docs, the others, help texts.
    NN and NAME.json are filled in."""
    def rank(item):
        order = ("README.md", "docs/commands.md", "steps/", "docs/", "")
        return next(i for i, start in enumerate(order) if item[0].startswith(start))
    for place, command in [*sorted(page_commands(), key=rank), *profiler_commands(), *help_commands()]:
        yield place, command.replace("NAME.json", "walk.json").replace("NN", EXAMPLE)


def wants_gpu(command):
    """True if a machine with a Hopper does something else about it than one without."""
    if "--help" in command or "--list" in command:
        return False
    return bool(re.match(r"(\w+=\S+ )*(tools/(run|compare|sweep|measuring|play|profile) |build/gpu|cmake --preset gpu|"
                         r"compute-sanitizer |ncu )", command))


def profiler(command):
    """The profiler that tools/profile would start; "" for other commands."""
    if not command.startswith("tools/profile ") or "--dry" in command:
        return ""
    return "nsys" if re.search(r"--tool[ =]nsys", command) else "ncu"


def why_left(command):
    """Why this walk does not type a command; "" when it does."""
    for pattern, why in LEFT:
        if re.fullmatch(pattern, command):
            return TYPED if instead(command) == ("run", shlex.join(shlex.split(command))) else why
    if wants_gpu(command):
        return "" if not PLACEHOLDER.search(command) else None
    return TYPED if instead(command) == ("run", shlex.join(shlex.split(command))) else None


def sort_out():
    """(commands to type, {command: why it is not typed}); every command of the pages is in one of them."""
    typed, left = {}, {}
    for place, text in in_order():
        why = why_left(text)
        if why is None:
            raise UserError(f"{place}: nobody has said what to do about '{text}': name it in LEFT or wants_gpu.")
        if why:
            left.setdefault(text, (place, why))
        else:
            typed.setdefault(text, Command(place, text, bool(re.match(LONG, text))))
    return list(typed.values()), left


def without_gpu(left):
    """The commands that need nvcc alone."""
    return [Command(place, text) for text, (place, why) in left.items() if why == NVCC]


# ---- Building --------------------------------------------------------------------------------------------------------


def targets(command):
    """{(preset, target)} that a command runs; what is not built would be built while the clock runs."""
    found = {(match[1], match[2]) for match in re.finditer(r"build/([\w-]+)/bin/(\w+)", command)}
    found |= {(match[1], match[2]) for match in re.finditer(r"cmake --build build/(\S+) --target (\w+)", command)}
    words = shlex.split(command)
    tool = words[0].removeprefix("tools/")
    if tool in ("run", "profile"):
        presets = ("gpu", "gpu-trace") if "--trace" in words else ("gpu",)
        found |= {(preset, step) for preset in presets for step in steps_named(words[1:])}
    elif tool == "play":
        found.add(("gpu", f"play_{words[1]}"))
    elif tool in ("compare", "sweep", "measuring"):
        found.add(("gpu", "lab" if "--lab" in words else tool))
    return found


def steps_named(words):
    """The steps in front of a command's first flag or shape: 01, naive, 01-03, all."""
    found = []
    for word in words:
        if word.startswith("-") or re.match(r"\d{3}|\d+[xX]", word):
            break
        ends = re.fullmatch(r"(\d\d?)-(\d\d?)", word)
        if ends or word == "all":
            first, last = map(int, ends.groups()) if ends else (0, 99)
            found += [step for number, step in STEPS.items() if first <= int(number) <= last]
        else:
            found.append(STEPS.get(word.zfill(2), word))
    return found


def build_script(commands):
    """The shell script that builds what they need, with the tools' own functions; "" when there is nothing to build."""
    wanted = sorted(set().union(*(targets(command.text) for command in commands)))
    lines = [f"build {preset} {' '.join(target for of, target in wanted if of == preset)}"
             for preset in sorted({preset for preset, _ in wanted})]
    if any(command.text.startswith("tools/sass") for command in commands):
        lines.append("tools/sass 01 >/dev/null")
    return "\n".join([". tools/lib/common.sh", "find_cuda", "check_compilers", *lines]) if lines else ""


# ---- Typing ----------------------------------------------------------------------------------------------------------


def end(process):
    """Ends what a command started and did not end in time: first asked, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + PATIENCE
        try:
            os.killpg(process.pid, number)
            while time.monotonic() < deadline:
                process.poll()  # else the first of the group stays in it
                os.killpg(process.pid, 0)
                time.sleep(0.05)
        except ProcessLookupError:
            return  # nobody is left
    # What the driver holds on to cannot be ended; then nobody waits for it.


def type_command(text, root, log, seconds, variables):
    """Types it in a shell, with its output at the end of log. Returns the exit status, None when it did not end in time."""
    process = subprocess.Popen(["bash", "-c", text], cwd=root, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **variables})
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            end(process)
        else:  # what it left in the background
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Keeper:
    """The repository as it was: what a command wrote into it is moved away, what it changed is put back."""

    def __init__(self, root, names, out):
        self.root, self.names, self.out = root, names, out
        self.copy = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-walk."))
        self.before = self.state()
        for name in self.before:
            (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, self.copy / name, follow_symlinks=False)

    def state(self):
        """{name: when it was written, how long it is} of everything but what was built and what the walk itself writes."""
        found = {}
        for name in self.names():
            path = self.root / name
            if self.out not in path.parents:
                status = path.lstat()
                found[name] = (status.st_mtime_ns, status.st_size)
        return found

    def restore(self, prefix):
        after = self.state()
        for name in sorted(set(after) | set(self.before)):
            if after.get(name) == self.before.get(name):
                continue
            if name in after:
                (self.out / "files").mkdir(exist_ok=True)
                shutil.move(self.root / name, self.out / "files" / f"{prefix}_{pathlib.PurePath(name).name}")
            if name in self.before:
                shutil.copy2(self.copy / name, self.root / name, follow_symlinks=False)

    def close(self):
        shutil.rmtree(self.copy)


def verdict(command, status, said):
    """"ok" or what is wrong with how it ended."""
    if status is None:
        return "DID NOT END"
    refused = ON_A_GPU.get(command, REFUSED.get(command))
    if refused is None:
        return "ok" if status == 0 else f"FAILED, status {status}"
    if refused not in said:
        return "FAILED, is to say: " + refused
    return "ok" if status != 0 or command.startswith("compute-sanitizer") else "FAILED, is to be refused"


class Walk:
    """Types commands in root, one line and one part of the log for each."""

    def __init__(self, root, names, out, path=os.environ["PATH"]):
        self.root, self.names, self.out, self.path = root, names, out, path

    def run(self, commands, script, timeout, until):
        """Builds with the script, then types the commands, all until a point in time. Returns [(command, what became of it)],
        the build first."""
        jobs = [(Command("(the build)", script), BUILD_FACTOR * timeout)] if script else []
        jobs += [(command, timeout * (LONG_FACTOR if command.long else 1)) for command in commands]
        results = []
        keeper = Keeper(self.root, self.names, self.out)
        try:
            with open(self.out / "walk.log", "ab+") as log:
                for command, seconds in jobs:
                    what, took = self.type(command, log, seconds, until)
                    keeper.restore(re.sub(r"[^\w.-]+", "_", command.place))
                    results.append((command, what))
                    if what != "not run":
                        print(f"{command.place:<38} {what:<8} {took:6.1f} s  {command.text.splitlines()[-1]}", flush=True)
                    if command.text == script and what != "ok":
                        results += [(command, "not run") for command, _ in jobs[1:]]
                        break
        finally:
            keeper.restore("interrupted")
            keeper.close()
        return results

    def type(self, command, log, seconds, until):
        """(what became of it, seconds it took)."""
        left = until - time.monotonic()
        if left <= 0:
            return "not run", 0
        program = profiler(command.text) or command.text.split(" ")[0]
        if program in PROFILERS and not shutil.which(program, path=self.path):
            return f"left out, {program} is not installed", 0
        log.write(f"\n==== {command.place}: {command.text}\n".encode())
        log.flush()
        begin, started = log.tell(), time.monotonic()
        variables = {"GEMM_STEPS_AUTOTUNE": str(self.out / "autotune.json"), "PATH": self.path}
        status = type_command(command.text, self.root, log, min(seconds, left), variables)
        took = time.monotonic() - started
        log.seek(begin)
        what = verdict(command.text, status, log.read().decode("utf-8", "replace"))
        if status is None and left < seconds:
            what = "not run"
        log.write(f"==== {what}, {took:.1f} s\n".encode())
        log.flush()
        return what, took


def print_summary(results, out):
    """Returns the exit status."""
    bad = [(command, what) for command, what in results if what != "ok" and not what.startswith("left out")]
    missed = [command for command, what in bad if what == "not run"]
    print()
    for command, what in bad:
        print(f"{what}: {command.place}: {command.text.splitlines()[-1]}")
    count = sum(what == "ok" for _, what in results)
    print(f"{count} did what they should, {len(bad) - len(missed)} failed, {len(missed)} not run, "
          f"{len(results) - count - len(bad)} left out; {out / 'walk.log'} has what they said")
    return 1 if bad else 0


def print_list(commands, left, chosen):
    for number, command in enumerate(commands, 1):
        if command in chosen:
            print(f"{number:4} {command.place:<38} {'long' if command.long else '    '}  {command.text}")
    print("\nNot typed here:")
    for text, (place, why) in left.items():
        print(f"     {place:<38} {text}   # {why}")


def toolkit_path(with_gpu):
    """The PATH with the CUDA Toolkit's programs at its end. Without nvcc, or a Hopper if one is wanted, an error."""
    done = subprocess.run(
        ["bash", "-c", """. tools/lib/common.sh
            find_cuda
            [ -n "$nvcc" ] || die "nvcc is not here: install the CUDA Toolkit or run tools/bootstrap --cuda."
            if [ "$1" = gpu ]; then
              find_gpu || die "$gpu_problem; --dry lists the commands on any machine, test_markdown.py types what needs no GPU."
              [ "${gpu_capability:-90}" = 90 ] || die "$gpu_name is not a Hopper (compute capability 9.0)."
            fi
            printf %s "$PATH" """, "walk_gpu.py", "gpu" if with_gpu else ""],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(done.stderr.strip().split("error: ")[-1])
    return done.stdout


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true", help="list the commands, and why the others are not among them")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for the log and what the commands write")
    parser.add_argument("--long", action="store_true", help="also those that take minutes")
    parser.add_argument("--nvcc", action="store_true", help="instead those that need nvcc and no GPU: tools/sass")
    parser.add_argument("--only", type=regex, default="", help="those whose place or text has this regular expression")
    parser.add_argument("--from", type=positive, default=1, dest="first", metavar="N", help="begin at this number of --dry")
    parser.add_argument("--timeout", type=positive, default=TIMEOUT,
                        help=f"seconds for a command ({TIMEOUT}); a long one has {LONG_FACTOR} times as many, the build "
                        f"{BUILD_FACTOR} times")
    parser.add_argument("--budget", type=positive, default=24 * 3600, help="seconds for everything; the rest is not run")
    return parser.parse_args(arguments)


def positive(text):
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 to 999999")
    return int(text)


def regex(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a regular expression: {error}") from None
    return text


def walk(arguments):
    until = time.monotonic() + arguments.budget
    commands, left = sort_out()
    if arguments.nvcc:
        commands = without_gpu(left)
    chosen = [command for number, command in enumerate(commands, 1)
              if number >= arguments.first and (arguments.long or arguments.dry or not command.long)
              and re.search(arguments.only, f"{command.place}: {command.text}")]
    if not chosen:
        raise UserError("no command is left; --dry lists them all.")
    if arguments.dry:
        print_list(commands, left, chosen)
        return 0
    if arguments.out is None:
        raise UserError("name a folder for the log: --out FOLDER; or list the commands with --dry.")
    path = toolkit_path(not arguments.nvcc)
    out = arguments.out.resolve()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{arguments.out} cannot be made a folder: {error.strerror}.") from None
    results = Walk(ROOT, repository_files, out, path).run(chosen, build_script(chosen), arguments.timeout, until)
    return print_summary(results, out)


def main(arguments=None):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # so that what runs is ended and the repository put back
    try:
        return walk(parse(arguments))
    except UserError as error:
        print(f"tests/tools/pages/walk_gpu.py: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
