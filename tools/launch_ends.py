#!/usr/bin/env python3
"""Makes the record of docs/lab/launch-ends.md: of a record of tools/roofline what a launch takes, and of a timeline of step 22 on a GPU
when its CTAs do what comes before the first product and after the last.

Usage: tools/launch_ends.py RECORD.json TRACE.json --to FILE

  build/gpu/bin/roofline --json roofline.json
  tools/run 22 1024 --trace trace.json --trace-ctas 64
  tools/launch_ends.py roofline.json trace.json --to docs/results/launch_ends_h200.json
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import json

from figure_data import load_timeline
from program import UserError
from record_rules import quantile
from records import load, relative, write_whole

EVENTS = {  # name: (a CTA's first or last, of which ends, of spans of this name, of this role)
    "producer": (min, 0, "wait empty", "producer"),
    "first_copy": (min, 0, "issue", "producer"),
    "first_k_tile": (min, 1, "wait full", "consumer"),
    "last_product": (max, 1, "multiply", "consumer"),
    "stored": (max, 1, "wait store", "consumer"),
}


def figures_of(trace, path):
    """A figure for each event: clocks since the first instruction of a CTA, a sample for each CTA that has a tile."""
    events = trace["traceEvents"]
    starts = {event["pid"]: event["args"].get("start") for event in events if event["name"] == "process_name"}
    roles = {(event["pid"], event["tid"]): event["args"]["name"].split()[0] for event in events if event["name"] == "thread_name"}
    spans = {}
    for event in events:
        if event["ph"] == "X":
            clock, place = event["args"]["clock"], (event["pid"], event["tid"])
            spans.setdefault(event["pid"], {}).setdefault((event["name"], roles[place]), []).append((clock, clock + event["args"]["clocks"]))
    needed = {event[2:] for event in EVENTS.values()}
    with_tile = {pid: of_cta for pid, of_cta in spans.items() if needed <= set(of_cta)}
    if None in starts.values() or not with_tile:
        raise UserError(f"the timeline {relative(path)} does not say when its CTAs started, or none has a producer and a tile: record step 22 "
                        "on a GPU.")
    about, figures = trace["otherData"], []
    for name, (pick, end, *which) in EVENTS.items():
        clocks = [pick(span[end] for span in of_cta[tuple(which)]) - starts[pid] for pid, of_cta in with_tile.items()]
        figures.append({"name": f"ends.{name}", "unit": "clocks", "what": "since a CTA's first instruction", "impossible": False,
                        "parameters": {key: about[key] for key in ("step", "variant", "shape")}, "samples": clocks,
                        **{field: quantile(clocks, p) for field, p in
                           (("lowest", 0), ("q1", 0.25), ("median", 0.5), ("q3", 0.75), ("highest", 1))}})
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("record", type=pathlib.Path, metavar="RECORD.json", help="record of tools/roofline")
    parser.add_argument("trace", type=pathlib.Path, metavar="TRACE.json", help="timeline from a GPU")
    parser.add_argument("--to", required=True, type=pathlib.Path, metavar="FILE", help="file of the new record")
    arguments = parser.parse_args()
    record = dict(load(arguments.record, "roofline"))
    kept = [figure for figure in record["figures"] if figure["name"] in ("launch.between_events", "fma.clock")]
    record["figures"] = kept + figures_of(load_timeline(arguments.trace), arguments.trace)
    write_whole(arguments.to, json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/launch_ends.py", main))
