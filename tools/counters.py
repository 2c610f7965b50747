#!/usr/bin/env python3
"""Makes the record of a profiler's counters (docs/results/l2_h200.json) from the CSV that Nsight Compute writes.

Usage: tools/counters.py PROFILE.csv --shape 8192x8192x8192 --device NAME --commit HASH --date TIME [--pattern exact]
                        STEP:VARIANT ...

The steps and variants are those that were run, in their order; the CSV has one launch of each:
  ncu --clock-control none --csv --log-file profile.csv --kernel-name-base mangled -k regex:step_ --metrics \\
    lts__t_sector_hit_rate.pct,lts__t_sectors_op_read.sum,dram__bytes_read.sum,l1tex__m_xbar2l1tex_read_bytes.sum \\
    build/gpu/bin/compare 14:all 15 8192 --check --pattern exact
With sm__cycles_elapsed.max,gpu__time_duration.sum as well the record has the clock that the SMs ran at, with
lts__t_requests_op_read.sum the requests that the L2 answered.
Prints the record; tools/tables.py makes tables of it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import csv
import json
import math
import re

import record_rules
import schema
from program import UserError
from records import SCHEMAS, read_text, relative

METRICS = {  # field of the record: (metric of the profiler, how much one is)
    "l2_hit_percent": ("lts__t_sector_hit_rate.pct", 1),
    "l2_read_bytes": ("lts__t_sectors_op_read.sum", 32),  # sectors
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "to_sm_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
}
# Optional:
REQUESTS = "lts__t_requests_op_read.sum"
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
    if REQUESTS in metrics:
        values["l2_read_requests"] = int(metrics[REQUESTS])
    if metrics.get(CYCLES) and metrics.get(NANOSECONDS):
        values["clock_mhz"] = round(1000 * metrics[CYCLES] / metrics[NANOSECONDS], 1)
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    for option, what in (("--shape", "MxNxK"), ("--device", "name of the GPU"), ("--commit", "of the programs"),
                         ("--date", "of the run, ISO 8601")):
        parser.add_argument(option, required=True, help=what)
    parser.add_argument("--pattern", default="exact", help="of the inputs (exact)")
    parser.add_argument("profile", type=pathlib.Path, help="the CSV of Nsight Compute")
    parser.add_argument("kernels", nargs="+", help="STEP:VARIANT of each launch, in order")
    arguments = parser.parse_args()
    profiled = launches(arguments.profile)
    if len(profiled) != len(arguments.kernels):
        raise UserError(f"the profile has {len(profiled)} launches and {len(arguments.kernels)} kernels are named; "
                        "name each once, in the order of the run.")
    shape = re.fullmatch(r"([1-9]\d{0,7})x([1-9]\d{0,7})x([1-9]\d{0,7})", arguments.shape, re.ASCII)
    if not shape:
        raise UserError(f"'{arguments.shape}' is not a shape; write MxNxK.")
    m, n, k = map(int, shape.groups())
    contestants = []
    for kernel, metrics in zip(arguments.kernels, profiled):
        name, _, variant = kernel.partition(":")
        contestants.append({"name": name, "variant": variant, "kind": "step", "counters": counters(metrics)})
    record = {
        "schema": SCHEMAS[0], "device": {"name": arguments.device}, "date": arguments.date, "commit": arguments.commit,
        "pattern": arguments.pattern, "profiler": "Nsight Compute, clocks as they are",
        "metrics": {field: metric if unit == 1 else f"{unit} * {metric}" for field, (metric, unit) in METRICS.items()},
        "shapes": [{"m": m, "n": n, "k": k, "contestants": contestants}]}
    problem = schema.problem(record, "record", "counters") or next(record_rules.counters_problems(record), "")
    if problem:
        raise UserError(f"this would not be a record: {problem}.")
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/counters.py", main))
