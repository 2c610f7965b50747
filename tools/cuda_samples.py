#!/usr/bin/env python3
"""Runs NVIDIA's cuda-samples, unchanged, with tools/emulate, and lists which of them run and why the others do not.

Usage: tools/cuda_samples.py run CHECKOUT [RECORD.json]   every sample; the record is docs/emulator/cuda_samples.json
       tools/cuda_samples.py page [--check]               writes the tables of docs/emulator/cuda-samples.md from the record
       tools/cuda_samples.py reasons [RECORD.json]        the record's reasons, the most frequent first
Options of run: --only NAME (a sample, as often as needed), --jobs N, --seconds S (of CPU time, per sample; 60),
--total S (after so many seconds no other schedule of a sample is started; 20).

A sample is a folder of CHECKOUT/Samples whose CMakeLists.txt has an add_executable. Its files are those that add_executable names.
One that includes a header of a graphics library or of a library beside the CUDA runtime is not run. The others run in their own
folder with their default size, or with the arguments that this program has for them, which the list shows. A second run with the same record replaces only the samples that it runs.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from text_of_rows import text_of_rows
from program import UserError

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs/emulator/cuda_samples.json"
EMULATED = ROOT / "common/emulator/cuda"
PAGE = ROOT / "docs/emulator/cuda-samples.md"
# (what a sample needs that the emulator does not have, headers that tell it)
NEEDS = (
    ("graphics", r"drm_fourcc|graphics_interface|GL/|GLUT/|GLFW/|GLES|helper_gl|EGL/|vulkan|d3d|X11/|rendercheck"),
    ("a library: cuBLAS", r"cublas"),
    ("a library: cuFFT", r"cufft"),
    ("a library: cuRAND", r"curand"),
    ("a library: cuSOLVER or cuSPARSE", r"cusolver|cusparse"),
    ("a library: NPP or nvJPEG", r"npp|nvjpeg|helper_nvjpeg|ImageIO\.h|Exceptions\.h"),
    ("a library: NVRTC or nvJitLink", r"nvrtc|nvJitLink"),
    ("a library: NvSci", r"nvsci|cudla"),
    ("a library: MPI", r"mpi\.h"),
    ("a library: NVVM", r"nvvm\.h"),
    ("a library: Thrust", r"thrust/"),
    ("OpenMP", r"omp\.h"),
    ("the driver API", r"helper_cuda_drvapi\.h|builtin_types\.h|cuda_drvapi_dynlink"),
)
# Outcomes beside "right" and "needs", as the page calls them.
KINDS = {"report": "end with a report", "wrong": "end with another status", "refused": "use what the emulator does not have",
         "slow": "take too long", "untried": "are not tried yet"}
# Arguments for a sample whose default size is a GPU's.
ARGUMENTS = {
    "FDTD3d": ["--dimx=96", "--dimy=96", "--dimz=96", "--timesteps=1"],
    "SobolQRNG": ["1000", "20"],
    "eigenvalues": ["-matrix-size=64", "-iters-timing=1"],
    "globalToShmemAsyncCopy": ["-wA=128", "-hA=128", "-wB=128", "-hB=128"],
    "matrixMul": ["-wA=32", "-hA=32", "-wB=32", "-hB=32"],
    "reduction": ["-n=16384"],
    "reductionMultiBlockCG": ["-n=4096", "-threads=64", "-maxblocks=4"],
    "threadFenceReduction": ["-n=16384"],
    "transpose": ["-dimX=64", "-dimY=64"],
}


def read(path):
    return path.read_text(errors="replace")


def samples(checkout):
    """[(folder, files)] of every sample."""
    root = checkout / "Samples"
    if not root.is_dir():
        raise UserError(f"'{checkout}' has no folder Samples; name a checkout of cuda-samples.")
    found = []
    for path in sorted(root.rglob("CMakeLists.txt")):
        names = re.search(r"add_executable\(\s*\S+((?:\s+[^\s)]+)+)\s*\)", read(path))
        files = [path.parent / name for name in names[1].split()] if names else []
        files = [file for file in files if file.suffix in (".cu", ".cpp", ".c", ".cc") and file.is_file()]
        if files:
            found.append((path.parent, files))
    return found


def need(folder, files):
    """What the sample includes that is not there, or nothing."""
    headers = [path for pattern in ("*.h", "*.cuh", "*.hpp", "inc/*", "*.inl") for path in folder.glob(pattern)]
    included = {name for file in [*files, *headers] if file.is_file()
                for name in re.findall(r'(?m)^\s*#\s*include\s*[<"]([^>"]+)', read(file))}
    emulated = {name for name in included if name.startswith("thrust/") and (EMULATED / name).exists()}
    for what, pattern in NEEDS:
        if any(re.match(pattern, name, re.I) for name in included if name not in emulated):
            return what
    return ""


def run(command, folder, seconds):
    """(exit status or None when it ran past the limit, output, CPU seconds)"""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
                                   start_new_session=True)
        ended = threading.Event()
        used = [0.0]
        begin = time.monotonic()

        def is_over():
            # One that waits for ever uses no CPU time.
            return used[0] > seconds or time.monotonic() - begin > 20 * seconds

        def watch():
            while not ended.wait(0.5):
                used[0] = max(used[0], cpu_seconds(process.pid))
                if is_over():
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        ended.set()
        watcher.join()
        output.seek(0)
        spent = round(max(usage.ru_utime + usage.ru_stime, used[0]), 1)
        if is_over():
            return None, output.read(), spent
        return os.waitstatus_to_exitcode(status), output.read(), spent


def cpu_seconds(session):
    """What the processes of a session, and those of them that have ended, have used."""
    ticks = 0
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def reason(status, output):
    """The sentence of a run that did not succeed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if re.match(r"\S+: (fatal )?error: |.*: (fatal )?error: ", line) and "tools/emulate: error" not in line:
            return re.sub(r"^[^ ]*/", "", line)
    # What the sample has printed may stand before a report, in the same line.
    for pattern in (r"tools/emulate: error: (.*)", r"(error: .*)", r"(wrong result: .*)", r"(?:.*\s)?([a-z0-9]+(?:-[a-z0-9]+)+: [a-z].*)",
                    r"([a-z0-9-]+: [a-z].*)"):
        for line in lines:
            found = re.match(pattern, line)
            if found:
                return found[1]
    return (lines or [f"exit status {status}"])[-1]


def outcome(checkout, folder, files, seconds, total):
    """The row of a sample."""
    row = {"name": folder.name, "folder": str(folder.relative_to(checkout / "Samples").parent), "files": len(files)}
    needed = need(folder, files)
    if needed:
        return {**row, "outcome": "needs", "reason": needed}
    arguments = ARGUMENTS.get(folder.name, [])
    command = [str(ROOT / "tools/emulate"), *(str(file.relative_to(folder)) for file in files), *(["-I", "inc"] if (folder / "inc").is_dir() else []), "-I", str(checkout / "Common")]
    if arguments:
        row["arguments"] = " ".join(arguments)
        arguments = ["--", *arguments]
    status, output, row["seconds"] = run([*command, "--total", str(total), *arguments], folder, seconds)
    schedules = re.search(r"(?m)^(\d+) (?:of \d+ )?schedules?\b", output)
    if schedules:
        row["schedules"] = int(schedules[1])
    if status is None:
        return {**row, "outcome": "slow", "reason": f"compilation and one schedule take more than {seconds:.0f} s of CPU time"}
    if status == 0:
        if "no kernel was launched" in output:
            return {**row, "outcome": "right", "reason": "it launches no kernel"}
        return {**row, "outcome": "right"}
    kind = {1: "wrong", 3: "report"}.get(status, "refused")
    row["reason"] = reason(status, output)
    if re.match("livelock: the kernel is still running|error: the host code has run for more than", row["reason"]):
        kind = "slow"
    return {**row, "outcome": kind}


def load(path):
    if not path.exists():
        return {"cuda_samples": 1, "rows": []}
    record = json.loads(path.read_text())
    if record.get("cuda_samples") != 1:
        raise UserError(f"{path} is no record of tools/cuda_samples.py.")
    return record


def save(path, record):
    record["rows"].sort(key=lambda row: (row["folder"], row["name"]))
    path.write_text(text_of_rows(record))


def run_all(arguments):
    checkout = arguments.checkout.resolve()
    record = load(arguments.record)
    todo = samples(checkout)
    names = {folder.name for folder, _ in todo}
    for name in arguments.only or []:
        if name not in names:
            raise UserError(f"there is no sample '{name}'.")
    todo = [(folder, files) for folder, files in todo if not arguments.only or folder.name in arguments.only]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = [pool.submit(outcome, checkout, folder, files, arguments.seconds, arguments.total) for folder, files in todo]
        for task in concurrent.futures.as_completed(tasks):
            row = task.result()
            record["rows"] = [old for old in record["rows"] if (old["folder"], old["name"]) != (row["folder"], row["name"])] + [row]
            save(arguments.record, record)
            if row["outcome"] != "needs":
                print(f"{row['name']}: {row['outcome']} {row.get('seconds', '')} {row.get('reason', '')[:150]}", flush=True)
    return 0


# What a reader would want to know of a sample that does not run, beside what the run said.
EXPLANATIONS = {
    "NV12toBGRandResize": "a true defect: the CTAs of all images write the first one, because nothing adds `blockIdx.z` images to the address (nv12_resize.cu:53)",
    "cdpAdvancedQuicksort": "a true defect: it takes for granted that `coalesced_threads()` returns all lanes of the warp, which CUDA does not promise (cdpAdvancedQuicksort.cu:176)",
    "eigenvalues": "a true race: threads of several warps store the same flag with plain stores (bisect_kernel_small.cuh:136)",
    "globalToShmemAsyncCopy": "a true defect: [five stages in four buffers](../museum/reuse.md#five-copies-in-four-stages)",
    "newdelete": "a true race: a thread loads `m_top` (container.hpp:92) while others change it with atomics, and the load is neither atomic nor volatile",
    "simpleAttributes": "two causes: the exchange that clears `hit` also reads it, which is reported because nothing has written it; and threads then load `hit` without an atomic while others raise it, a true race",
    "threadFenceReduction": "a true race by the PTX ISA: the last CTA loads the partial sums without a fence after the counter, and neither atomically nor through volatile",
    "p2pBandwidthLatencyTest": "a kernel waits for the host, which goes on only when the kernel has ended",
    "UnifiedMemoryPerf": "a kernel waits for the host, which goes on only when the kernel has ended",
    "dxtc": "a true race: two lanes of a warp read and write the same element between two barriers (CudaMath.h:63)",
    "simpleAssert": "its assertion fails on purpose",
    "streamOrderedAllocationP2P": "it needs two devices, and ends where there is one",
    "conjugateGradientMultiDeviceCG": "it needs two devices, and ends where there is one",
    "simpleP2P": "it needs two devices, and ends where there is one",
}


def text_of(row):
    return EXPLANATIONS.get(row["name"]) or re.sub(r"[‘’]", '"', row.get("reason", "")).replace("|", "\\|")


def tables(record):
    """{name of a block: its lines}"""
    rows = record["rows"]
    right = [row for row in rows if row["outcome"] == "right" and not row.get("reason")]
    idle = [row for row in rows if row["outcome"] == "right" and row.get("reason")]
    needs = [row for row in rows if row["outcome"] == "needs"]
    others = [row for row in rows if row["outcome"] not in ("right", "needs")]
    counts = ["| | samples |", "| --- | --- |", f"| right | {len(right)} |", f"| right, and launch no kernel | {len(idle)} |",
              *(f"| {what} | {count} |" for kind, what in KINDS.items() if (count := sum(row["outcome"] == kind for row in others))),
              f"| need graphics, a library or the driver API, and are not tried | {len(needs)} |"]
    lines = ["| sample | files | arguments | schedules | CPU time |", "| --- | --- | --- | --- | --- |"]
    for row in right:
        arguments = f"`{row['arguments']}`" if "arguments" in row else ""
        lines.append(f"| {row['name']} | {row['files']} | {arguments} | {row.get('schedules', 1)} | {row['seconds']:.0f} s |")
    missing = ["| sample | outcome | reason |", "| --- | --- | --- |",
               *(f"| {row['name']} | {row['outcome']} | {text_of(row)} |" for row in others)]
    groups = collections.defaultdict(list)
    for row in needs:
        groups[row["reason"]].append(row["name"])
    needed = ["| what they need | samples |", "| --- | --- |",
              *(f"| {what} | {', '.join(names)} |" for what, names in sorted(groups.items(), key=lambda item: -len(item[1])))]
    return {"counts": counts, "right": lines, "others": missing, "needs": needed}


def page(check):
    record = load(RECORD)
    text = PAGE.read_text()
    for name, lines in tables(record).items():
        block = re.compile(rf"(<!-- cuda samples: {name} -->\n).*?(<!-- /cuda samples -->)", re.S)
        if len(block.findall(text)) != 1:
            raise UserError(f"{PAGE.relative_to(ROOT)} has no one place '<!-- cuda samples: {name} -->'.")
        text = block.sub(lambda match, lines=lines: match[1] + "\n" + "\n".join(lines) + "\n\n" + match[2], text)
    if text == PAGE.read_text():
        return 0
    if check:
        raise UserError(f"{PAGE.relative_to(ROOT)} is not what the record says; tools/cuda_samples.py page writes it.")
    PAGE.write_text(text)
    return 0


def reasons(record):
    groups = collections.defaultdict(list)
    for row in record["rows"]:
        if row["outcome"] != "right":
            groups[row["outcome"], row["reason"]].append(row["name"])
    for (kind, text), names in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):3d} {kind}: {text[:140]}: {' '.join(names)}")
    counts = collections.Counter(row["outcome"] for row in record["rows"])
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0


def main():
    parser = argparse.ArgumentParser(prog="tools/cuda_samples.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("checkout", type=pathlib.Path)
    command.add_argument("record", type=pathlib.Path, nargs="?", default=RECORD)
    command.add_argument("--only", action="append")
    command.add_argument("--jobs", type=int, default=os.cpu_count())
    command.add_argument("--seconds", type=float, default=60)
    command.add_argument("--total", type=float, default=20)
    command = commands.add_parser("reasons")
    command.add_argument("record", type=pathlib.Path, nargs="?", default=RECORD)
    commands.add_parser("page").add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "run":
        return run_all(arguments)
    if arguments.command == "reasons":
        return reasons(load(arguments.record))
    return page(arguments.check)


if __name__ == "__main__":
    sys.exit(program.run("tools/cuda_samples.py", main))
