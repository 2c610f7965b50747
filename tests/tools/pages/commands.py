"""Every command that the pages and the help texts of this repository name."""
import os
import pathlib
import re
import shlex
import subprocess

from markdown import Page
from sandbox import ROOT

PLACEHOLDER = re.compile(r"\bNN(?=\b|_)|_NN\b|\bNAME\b|\bFILE\b|\bSTEP\b|…|\.\.\.")
# Commands that end with an error on purpose, and what they say.
REFUSED = {
    "tools/play descriptor encode --address 0x470": "wrong: the address is 112 bytes into a row",
    "tools/play descriptor encode --address 0x400 --swizzle 128 --stride 512": "wrong: the stride is 512 bytes",
    "tools/play tensor_map encode --extent 100,1000 --box 64,128": "must be a multiple of 16",
    "tools/play tensor_map encode --extent 4096,1000 --box 128,128 --swizzle 128": "longer than the swizzle's span",
    "tools/play mbarrier init 1, arrive 2, test 0": "no wait has seen phase 0 complete",
    "tools/play mbarrier init 1, arrive_expect 512, complete 1024": "512 bytes arrived that were not expected",
    "tools/compare --lab 51:all 4096x1024x4096 2048x2048x8192 4096 64x4096x4096 --check --pattern exact": "proxy-fence-after-read",
    "tools/run 09 --variant 128x256 --without kernel.cuh:84 --check --backend emulator": "load-overwrites",
    "tools/play mbarrier init 2, arrive_expect 512, arrive, arrive": "the count of mbarrier.init is the number of",
    "tools/run 60 64MiB --ctas 4,8,16,32": "too much for the emulator",
    "tools/run 60 64MiB --piece 64KiB,1MiB,16MiB": "too much for the emulator",
    "tools/run 60 1MiB --check --relaunch 1000 --delay 50": "--delay is for GPUs",
    "tools/run 61 4096 --variant copy_engine --piece 1MiB,4MiB,16MiB": "too much for the emulator",
    "tools/run 61 8192 --variant sms --ctas 4,8,16": "too much for the emulator",
    "tools/run 61 4096 --check --relaunch 1000 --delay 50": "--delay is for GPUs",
    "tools/run 62 4096 --variant bf16,flag_at_once": "too much for the emulator",
    "tools/run 62 4096 --check --relaunch 1000 --delay 50": "--delay is for GPUs",
}
# Others change the tree, take long, or need what not every machine has: their --help must know the flags.
TYPED = {"compare", "play", "run", "sweep"}
# Steps whose times are those of several GPUs.
OF_SEVERAL_GPUS = {"60", "61", "62"}
# Arguments with which a program needs no GPU.
ANYWHERE = {"--budget", "--check", "--counters", "--help", "--list", "--inject-faults"}
# What a prediction refuses, because nothing runs: the flag, and how many words belong to it.
NOT_PREDICTED = {"--time": 1, "--check": 1, "--autotune": 1, "--quick": 1, "--no-baselines": 1, "--mode": 2, "--rounds": 2,
                 "--seconds": 2, "--json": 2, "--pattern": 2, "--seed": 2, "--relaunch": 2, "--beta": 2}


def repository_files():
    """Paths of everything that is committed or could be; in a copy without .git, of everything that was not built."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.split("\n")
    else:
        names = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = sorted(set(folders) - {"build", ".toolchain", ".venv", ".cache", ".git", "__pycache__"} -
                                ({"exercises"} if folder == str(ROOT) else set()))
            names += [str(pathlib.Path(folder, file).relative_to(ROOT)) for file in sorted(files)]
    return [name for name in names if name and (ROOT / name).is_file()]


FILES = repository_files()


def is_page(name):
    return name in ("README.md", "CONTRIBUTING.md") or (
        name.endswith(".md") and name.split("/")[0] in ("docs", "steps", "common"))


PAGES = {name: Page((ROOT / name).read_text(encoding="utf-8")) for name in FILES if is_page(name)}


def help_commands():
    """(place, command) of the examples in the scripts' first comments and in the programs' --help."""
    for name in FILES:
        if re.fullmatch(r"tools/\w+|(common/harness|tools)/.*\.cpp", name):
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").split("\n"), 1):
                if example := re.fullmatch(r"(?:#  )? {1,2}(tools/\w+ .*)", line):
                    yield f"{name}:{number}", re.split(r" {2,}|\)\"", example[1])[0]


def page_commands():
    """(place, command) of the pages."""
    for name, page in PAGES.items():
        for number, command in page.commands():
            yield f"{name}:{number}", command


def profiler_commands():
    """(place, command) of the calls of Nsight Compute in the help of tools/*.py, continued lines joined."""
    for name in FILES:
        if re.fullmatch(r"tools/\w+\.py", name):
            text = (ROOT / name).read_text(encoding="utf-8")
            for found in re.finditer(r"(?m)^  (ncu (?:.*\\\\\n)*.*)$", text):
                yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}", " ".join(found[1].replace("\\\\", "").split())


def distinct_commands():
    """{command: the first place that names it}: help texts, then pages."""
    found = {}
    for place, command in [*help_commands(), *profiler_commands(), *page_commands()]:
        found.setdefault(command, place)
    return found


def as_prediction(words):
    """(the same with --budget, the words that do not go with it)."""
    kept, rest = [], []
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while words:
        count = NOT_PREDICTED.get(words[0], 0)
        if count:
            rest += words[:count]
        else:
            kept.append(words[0])
        words = words[max(count, 1):]
    return kept + ["--budget"], rest


def instead(command):
    """What a machine without a GPU can do about a command: ("run", the command, or one that only checks its arguments),
    ("predict", (the command as a prediction, the words that do not go with one)), ("help", its --help must know the flags), ("build", a call of cmake), ("exists", path), ("elsewhere", "")."""
    words = shlex.split(command)
    while re.match(r"[A-Z_0-9]+=", words[0]):
        words = words[1:]
    if words[0] == "cmake":
        return "build", shlex.join(words)
    if words[0] == ".ci/run":
        return "exists", words[0]
    if match := re.fullmatch(r"build/gpu(?:-debug)?/bin/(\w+)", words[0]):
        if match[1] == "roofline":
            return "exists", "tools/roofline"
        play = match[1].removeprefix("play_")
        if play != match[1]:
            words = ["tools/play", play] + words[1:]
        else:
            words = ["tools/run", match[1]] + words[1:]
            if not {"--budget", "--help", "--list"} & set(words):
                return "predict", tuple(map(shlex.join, as_prediction(words)))
    if words[0].startswith("build/"):
        return "exists", "tests/" + words[0].split("/")[-1].removeprefix("tests_")
    if not words[0].startswith("tools/"):
        return "elsewhere", ""
    tool = words[0].removeprefix("tools/")
    if tool.endswith(".py") and len(words) == 1:
        return "exists", words[0]
    if tool == "profile" and "--dry" in words:
        return "run", shlex.join(words)
    if len(words) == 1 or tool not in TYPED:
        return "help", shlex.join(words)
    if PLACEHOLDER.search(command):
        return "help", shlex.join([words[0], "--help"])
    if "--time" in words and ("--groups" in words or words[1] in OF_SEVERAL_GPUS):
        return "help", shlex.join(words)  # a prediction knows no groups, and no second GPU
    if tool == "compare" and not ANYWHERE & set(words) or {"--time", "--autotune"} & set(words):
        if "--budget" not in words:
            return "predict", tuple(map(shlex.join, as_prediction(words)))
    # The tests of the steps check all of them, under all schedules.
    if tool == "compare" and {"all", "--check"} <= set(words):
        words[words.index("all")] = "01-09"
        words.append("--quick")
    if words[1] in OF_SEVERAL_GPUS and words[2:3] == ["--check"] and "--relaunch" not in words:
        words.append("--quick")
    if tool == "sweep" and not ANYWHERE & set(words):
        words.append("--list")
    return "run", shlex.join(words)
