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
import argparse
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from records import SCHEMA, UserError, relative

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
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the profile {relative(path)} cannot be read: {error}.") from None
    found = {}
    try:
        for row in csv.DictReader(lines):
            found.setdefault(int(row["ID"]), {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    except KeyError as error:
        raise UserError(f"the profile {relative(path)} has no column {error}; write it with ncu --csv.") from None
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
    if CYCLES in metrics and NANOSECONDS in metrics:
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
    try:
        profiled = launches(arguments.profile)
        if len(profiled) != len(arguments.kernels):
            raise UserError(f"the profile has {len(profiled)} launches and {len(arguments.kernels)} kernels are named; "
                            "name each once, in the order of the run.")
        sizes = arguments.shape.split("x")
        if len(sizes) != 3 or not all(size.isdigit() and int(size) > 0 for size in sizes):
            raise UserError(f"'{arguments.shape}' is not a shape; write MxNxK.")
        m, n, k = map(int, sizes)
        contestants = []
        for kernel, metrics in zip(arguments.kernels, profiled):
            name, _, variant = kernel.partition(":")
            contestants.append({"name": name, "variant": variant, "kind": "step", "counters": counters(metrics)})
    except UserError as error:
        print(f"tools/counters.py: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps({
        "schema": SCHEMA, "device": {"name": arguments.device}, "date": arguments.date, "commit": arguments.commit,
        "pattern": arguments.pattern, "profiler": "Nsight Compute, clocks as they are",
        "metrics": {field: metric if unit == 1 else f"{unit} * {metric}" for field, (metric, unit) in METRICS.items()},
        "shapes": [{"m": m, "n": n, "k": k, "contestants": contestants}]}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
