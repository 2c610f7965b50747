#!/usr/bin/env python3
"""Counts with Nsight Compute what kernels read on the way from memory to the SMs, how busy the tensor cores were, and at which
clock, and makes a record of it (docs/results/l2_h200.json), of which tools/tables.py makes tables.

Usage: tools/counters.py STEP:VARIANT ... SHAPE ... --to FILE [--program FILE]
       tools/counters.py PROFILE.csv --shape MxNxK --device NAME --commit HASH --date TIME [--pattern exact] STEP:VARIANT ...

The first form runs each kernel once at each shape under ncu, on the GPU of this machine, with the clocks as they are and emptied
caches. --program names a comparison that is built already (default: builds it). The second form reads the CSV that ncu wrote for
one shape, one launch of each kernel in the order in which they are named, and prints the record:
  ncu --clock-control none --csv --log-file profile.csv --kernel-name-base mangled -k "regex:step_|fitted" --metrics \\
    lts__t_sector_hit_rate.pct,lts__t_sectors_op_read.sum,dram__bytes_read.sum,l1tex__m_xbar2l1tex_read_bytes.sum \\
    build/gpu/bin/compare 14:all 15 8192 --check --pattern exact
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import csv
import datetime
import json
import math
import re
import subprocess
import tempfile

import record_rules
import schema
from program import UserError
from records import ROOT, SCHEMAS, read_text, relative, write_whole

METRICS = {  # field of the record: (metric of the profiler, how much one is)
    "l2_hit_percent": ("lts__t_sector_hit_rate.pct", 1),
    "l2_read_bytes": ("lts__t_sectors_op_read.sum", 32),  # sectors
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "to_sm_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
}
# Optional in a profile:
REQUESTS = {"l2_read_requests": "lts__t_requests_op_read.sum", "l2_write_requests": "lts__t_requests_op_write.sum"}
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
CYCLES, NANOSECONDS = "sm__cycles_elapsed.max", "gpu__time_duration.sum"


def launches(path):
    """The metrics of every launch of the CSV, in order: [{metric: value}]."""
    lines = [line for line in read_text(path, "the profile").splitlines() if line.startswith('"')]
    found = {}
    try:
        for row in csv.DictReader(lines):
            number, metric, text = (row[name] for name in ("ID", "Metric Name", "Metric Value"))
            value = float((text or "nothing").replace(",", ""))
            if not math.isfinite(value) or value < 0:
                raise UserError(f"the profile {relative(path)} has {text} for {metric}; a counter cannot have this value.")
            found.setdefault(int(number), {})[metric] = value
    except KeyError as error:
        raise UserError(f"the profile {relative(path)} has no column {error}; write it with ncu --csv.") from None
    except csv.Error as error:
        raise UserError(f"the profile {relative(path)} is not CSV: {error}.") from None
    except ValueError as error:
        raise UserError(f"the profile {relative(path)} has something else where a number should be: {error}.") from None
    return [found[number] for number in sorted(found)]


def counters(metrics):
    values = {}
    for field, (metric, unit) in METRICS.items():
        if metric not in metrics:
            raise UserError(f"the profile lacks the metric {metric}; name it in --metrics.")
        values[field] = metrics[metric] if unit == 1 and field.endswith("percent") else int(metrics[metric]) * unit
    values |= {field: int(metrics[metric]) for field, metric in REQUESTS.items() if metric in metrics}
    if TENSOR in metrics:
        values["tensor_percent"] = metrics[TENSOR]
    if metrics.get(CYCLES) and metrics.get(NANOSECONDS):
        values["clock_mhz"] = round(1000 * metrics[CYCLES] / metrics[NANOSECONDS], 1)
    return values


def contestants_of(profile, kernels):
    """The contestants of one shape: STEP:VARIANT of each launch, in order, with what its launch counted."""
    profiled = launches(profile)
    if len(profiled) != len(kernels):
        raise UserError(f"the profile has {len(profiled)} launches and {len(kernels)} kernels are named; "
                        "name each once, in the order of the run.")
    return [{"name": kernel.partition(":")[0], "variant": kernel.partition(":")[2], "kind": "step", "counters": counters(metrics)}
            for kernel, metrics in zip(kernels, profiled)]


def sides(text):
    found = re.fullmatch(r"([1-9]\d{0,7})x([1-9]\d{0,7})x([1-9]\d{0,7})", text, re.ASCII)
    if not found:
        raise UserError(f"'{text}' is not a shape; write MxNxK.")
    return dict(zip("mnk", map(int, found.groups())))


def record_of(device, commit, date, pattern, shapes):
    """Refused where tools/tables.py would refuse it."""
    record = {"schema": SCHEMAS[0], "device": {"name": device}, "date": date, "commit": commit, "pattern": pattern,
              "profiler": "Nsight Compute, clocks as they are",
              "metrics": {field: metric if unit == 1 else f"{unit} * {metric}" for field, (metric, unit) in METRICS.items()},
              "shapes": shapes}
    problem = schema.problem(record, "record", "counters") or next(record_rules.counters_problems(record), "")
    if problem:
        raise UserError(f"this would not be a record: {problem}.")
    return record


def output(*command):
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}.") from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"{command[0]} ended with status {error.returncode}: " + "\n".join(error.stdout.splitlines()[-3:])) from None


def measured(kernels, shapes, comparison):
    """The record of these kernels at these shapes, on this machine."""
    device = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()[0]
    names = {step["name"][:2]: step["name"] for step in json.loads(output(comparison, "--describe"))}
    commit = re.search(r"commit ([\w.-]+)", output(comparison, "--version"))[1]
    for kernel in kernels:
        if kernel[:2] not in names:
            raise UserError(f"there is no step {kernel[:2]}; tools/compare all --list names them.")
    full = [names[kernel[:2]] + kernel[2:] for kernel in kernels]
    metrics = ",".join([*(metric for metric, _ in METRICS.values()), *REQUESTS.values(), TENSOR, CYCLES, NANOSECONDS])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            profile = pathlib.Path(folder) / "profile.csv"
            output("ncu", "--clock-control", "none", "--csv", "--log-file", str(profile), "--kernel-name-base", "mangled",
                   "-k", "regex:step_|fitted", "--metrics", metrics, comparison, *kernels, shape, "--check", "--pattern", "exact")
            found.append({**sides(shape), "contestants": contestants_of(profile, full)})
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return record_of(device, commit, date, "exact", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    for option, what in (("--to", "file of the record"), ("--program", "comparison that is built already"), ("--shape", "MxNxK"),
                         ("--device", "name of the GPU"), ("--commit", "of the programs"), ("--date", "of the run, ISO 8601")):
        parser.add_argument(option, help=what)
    parser.add_argument("--pattern", default="exact", help="of the inputs (exact)")
    parser.add_argument("words", nargs="+", metavar="WORD", help="STEP:VARIANT and MxNxK, or a CSV of Nsight Compute and STEP:VARIANT")
    arguments = parser.parse_intermixed_args()
    if arguments.to:
        kernels = [word for word in arguments.words if re.fullmatch(r"\d\d:\w+", word)]
        shapes = [word for word in arguments.words if word not in kernels]
        for shape in shapes:
            sides(shape)
        if not kernels or not shapes:
            raise UserError("name at least one kernel as STEP:VARIANT and one shape as MxNxK, for example 15:128x256_group16 4096x4096x4096.")
        schema.problem({}, "record", "counters")  # what checks the record is installed before anything is counted
        comparison = arguments.program
        if not comparison:
            output(str(ROOT / "tools/compare"), "01", "--list")
            comparison = str(ROOT / "build/gpu/bin/compare")
        write_whole(pathlib.Path(arguments.to), json.dumps(measured(kernels, shapes, comparison), indent=1) + "\n")
        return 0
    for option in ("shape", "device", "commit", "date"):
        if getattr(arguments, option) is None:
            raise UserError(f"--{option} is required to make a record of a profile; --to FILE counts on this machine instead.")
    profile, *kernels = arguments.words
    if not kernels:
        raise UserError("the kernels of the profile are required, as STEP:VARIANT in their order.")
    shape = sides(arguments.shape)
    record = record_of(arguments.device, arguments.commit, arguments.date, arguments.pattern,
                       [{**shape, "contestants": contestants_of(pathlib.Path(profile), kernels)}])
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/counters.py", main))
