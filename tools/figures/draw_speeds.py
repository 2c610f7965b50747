#!/usr/bin/env python3
"""Draws how fast the steps are, for the README: docs/figures/speeds.svg.

Left: TFLOP/s at 4096³ from docs/results/course_h200.json, up to the step that reaches cuBLASLt. Right: speed relative to
cuBLASLt over the suite, for the steps from that one on of which a record of the suite (docs/results/suite*.json, the same
GPU) knows the speed; the newest record counts. A step appears as soon as a record has it.
"""
from drawing import Drawing, figure_program
from palette import BLUE, CUBLASLT, GREEN, GRID, SOFT
from plot_ladder import fastest_of_each_step
from program import UserError
from records import ROOT, find_shape, kind_of, load, load_record, pretty_shape, relative
from steps import steps

FIGURE = "docs/figures/speeds.svg"
LADDER, SHAPE = "docs/results/course_h200.json", "4096"
SPLIT, LAST = "15", "22"  # the last step at the left and the first at the right; the last of all
PARTS = [("01", "03", "CUDA cores"), ("04", "07", "Ampere style"), ("08", "15", "Hopper: wgmma, TMA, roles")]
WIDTH, TOP, HIGH = 760, 112, 236  # HIGH is 1.1 times cuBLASLt's speed, in both panels
LEFT, MIDDLE, BESIDE, RIGHT = 56, 468, 516, 744


def ladder():
    """(the record, its shape, [(number, TFLOP/s)] up to SPLIT, cuBLASLt's TFLOP/s)."""
    record = load_record(ROOT / LADDER)
    shape = find_shape(record, SHAPE)
    best = [one["tflops"] for one in shape["contestants"] if one["name"] == "cublaslt_best"]
    if not best:
        raise UserError(f"{LADDER} has no cuBLASLt in it.")
    rates = [(step["name"][:2], step["tflops"]) for step in fastest_of_each_step(shape) if step["name"][:2] <= SPLIT]
    return record, shape, rates, best[0]


def suites(gpu):
    """The records of the suite on this GPU, the newest first; all of them have the same shapes in burst mode."""
    found = []
    for path in sorted(ROOT.glob("docs/results/suite*.json")):
        record = load(path)
        if kind_of(record) == "suite" and record["burst"]["device"]["name"] == gpu:
            found.append((record["burst"]["date"], path, record))
    found.sort(key=lambda one: one[0], reverse=True)
    shapes = {tuple(pretty_shape(shape) for shape in record["burst"]["shapes"]) for _, _, record in found}
    if len(shapes) > 1:
        raise UserError("the records of the suite have different shapes: " + ", ".join(relative(path) for _, path, _ in found) + ".")
    return [record for _, _, record in found]


def over_the_suite(gpu):
    """([(number, geometric mean, slowest shape, fastest shape)], how many shapes these are) of the steps from SPLIT to LAST."""
    values, count = {}, 0
    for record in suites(gpu):
        seen = {}
        count = len(record["burst"]["shapes"])
        for entry in record["summary"]:
            if entry["name"] not in steps() or not SPLIT <= entry["name"][:2] <= LAST:
                continue
            ratios = [one["to_cublaslt"]["median"] for shape in record["burst"]["shapes"] for one in shape["contestants"]
                      if (one["name"], one["variant"]) == (entry["name"], entry["variant"])]
            speed = entry["geometric_mean"]["median"], min(ratios), max(ratios)
            seen[entry["name"][:2]] = max(speed, seen.get(entry["name"][:2], speed))
        values = {**seen, **values}  # a newer record has been read before
    return [(number, *values[number]) for number in sorted(values)], count


def place(ratio):
    return TOP + HIGH * (1 - ratio / 1.1)


def axis(drawing, left, right, marks):
    """The lines of a panel, (ratio, its text), and cuBLASLt's."""
    for ratio, words in marks:
        drawing.line(left, place(ratio), right, place(ratio), stroke=GRID)
        drawing.text(left - 8, place(ratio) + 4, words, size=12, fill=SOFT, anchor="end")
    drawing.line(left, place(1), right, place(1), stroke=CUBLASLT, width=2, dashes="7 4")


def draw():
    record, shape, rates, best = ladder()
    speeds, count = over_the_suite(record["device"]["name"])
    drawing = Drawing(WIDTH, 444, "How fast the steps are",
                      "Left, a bar for each step up to 15: TFLOP/s at 4096³ and cuBLASLt's best as a line. Right, for later steps: the geometric mean "
                      "of the speed relative to cuBLASLt over the shapes of the suite, with the slowest and the fastest shape.")
    drawing.caption("The steps against cuBLASLt, at one shape and over many",
                    f"Left: at {pretty_shape(shape)} the steps climb until step {SPLIT} reaches cuBLASLt (dashed). Right: over {count} shapes step {SPLIT} is "
                    f"slower. Each later step helps some of them, and step {LAST} chooses among all.", room=64)
    drawing.text(20, 92, f"TFLOP/s at {pretty_shape(shape)}", size=12, weight="bold")
    axis(drawing, LEFT, MIDDLE, [(rate / best, str(rate)) for rate in range(0, int(1.1 * best), 200)])
    column = (MIDDLE - LEFT) / len(rates)
    for index, (number, rate) in enumerate(rates):
        x, top = LEFT + column * index + 2, place(rate / best)
        drawing.rect(x, top, column - 4, place(0) - top, GREEN if rate > best else BLUE)
        drawing.text(x + column / 2 - 2, top - 5, f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}", size=11, anchor="middle")
        drawing.text(x + column / 2 - 2, place(0) + 17, number, size=12, anchor="middle")
    drawing.text(LEFT + 6, place(1) + 17, f"cuBLASLt best: {best:.0f}", size=12, fill=SOFT)
    numbers = [number for number, _ in rates]
    for first, last, words in PARTS:
        members = [index for index, number in enumerate(numbers) if first <= number <= last]
        if members:
            begin, end = LEFT + column * members[0] + 3, LEFT + column * (members[-1] + 1) - 3
            drawing.line(begin, place(0) + 26, end, place(0) + 26, stroke=SOFT)
            drawing.text((begin + end) / 2, place(0) + 42, words, size=12, fill=SOFT, anchor="middle")

    drawing.text(BESIDE - 40, 92, f"speed / cuBLASLt's, {count} shapes", size=12, weight="bold")
    axis(drawing, BESIDE, RIGHT, [(ratio, f"{ratio:g}") for ratio in (0, 0.25, 0.5, 0.75, 1)])
    column = (RIGHT - BESIDE) / max(1, len(speeds))
    for index, (number, mean, slowest, fastest) in enumerate(speeds):
        x = BESIDE + column * (index + 0.35)
        drawing.line(x, place(slowest), x, place(fastest), stroke=SOFT, width=1.5)
        for ratio in (slowest, fastest):
            drawing.line(x - 4, place(ratio), x + 4, place(ratio), stroke=SOFT, width=1.5)
        drawing.circle(x, place(mean), 5, GREEN if mean > 1 else BLUE)
        if column >= 50:
            drawing.text(x + 8, place(mean) + (15 if abs(mean - 1) < 0.04 else 4), f"{mean:.2f}", size=12, weight="bold")
        else:
            drawing.text(x, place(slowest) + 15, f"{mean:.2f}", size=11, anchor="middle", weight="bold")
        drawing.text(x, place(0) + 17, number, size=12, anchor="middle")
    drawing.text((BESIDE + RIGHT) / 2, place(0) + 42, "dot: geometric mean · line: worst to best", size=11, fill=SOFT, anchor="middle")
    only = ", ".join(number for number, *_ in speeds[:-1]) + " and " + speeds[-1][0] if len(speeds) > 1 else "".join(one[0] for one in speeds)
    drawing.text(20, place(0) + 66, f"{record['device']['name']}, bf16, burst mode. A green step is faster than cuBLASLt's best algorithm.", size=12)
    drawing.text(20, place(0) + 82, f"Right: steps {only}, each from its newest record of the suite.", size=12)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
