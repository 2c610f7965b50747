#!/usr/bin/env python3
"""Learns the correction of step 22's model (common/gemm/fitted/learned_network.h) from plans that were measured, and from some that were not.

Usage: tools/fit_choice.py [--check | --print FILE | --keep FILE LINES]

docs/results/plans_h200.txt.bz2 and plans_h100.txt.bz2 have the measured plans; their first lines say what each set of them is, and how much it
weighs. plans_h200_predicted.txt.bz2 has plans that nobody measured, with the times that an earlier model predicted. They are there because a
network that learns from measured plans alone flatters plans unlike them, and a choice takes what is flattered. No loss counts them.
steps/22_peak/choice.h predicts each plan by arithmetic, and a network of two hidden layers learns the logarithm of what it is wrong by. It
sees what common/gemm/fitted/plan_features.h names; the file that is written says the names, and the program does not compile with others.
Two losses are added: how far the corrected times are from the measured ones, near the fastest plan, and what a choice by them costs. That
is the expected regret of a choice which takes a plan the more likely the shorter the corrected time is. Doubts stand outside.
--check fits networks of several sizes to three quarters of the measured shapes at a time, and to all predicted plans, and says what the
choice loses on the rest; nothing is written. That loss is a little too low, because the earlier model had learned from the measured plans of
all shapes. It also knows of measured plans only, and a new fit may choose others: race it against the one before.
--print writes the lines of a kept file to standard output, and --keep packs a file of such lines (tools/lib/kept_plans.py).
New plans: cmake --build build/gpu --target time_plans; build/gpu/bin/time_plans --help. It takes a seed that no race reports.
Needs numpy (python3 -m pip install numpy) and a C++ compiler.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import re
import subprocess
import tempfile

import kept_plans
from program import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED = {"h200": ROOT / "docs/results/plans_h200.txt.bz2", "h100": ROOT / "docs/results/plans_h100.txt.bz2"}
PREDICTED = {"h200": ROOT / "docs/results/plans_h200_predicted.txt.bz2"}
LEARNED = ROOT / "common/gemm/fitted/learned_network.h"
HIDDEN = (64, 32)  # (32, 32) loses as little on measured plans, but a third more by the earlier model where K is at most 128
CHECKED = ((16, 8), (32, 16), (32, 32), (64, 32), (96, 48))
EPOCHS, SHAPES_AT_ONCE, RATE = 150, 128, 4e-3
SOFTNESS = 0.02  # plans whose times differ by this much are about equally likely
REGRET, ACCURACY, DECAY = 4.0, 25.0, 1e-5  # weights of what is minimised
WIDEST = 4.0  # inputs are kept within so many standard deviations: nothing is known beyond
DIGITS = 999  # a weight is a whole number up to this, times one number for each layer


def plans_in(text):
    """Yields of every plan its line and the weight of its set."""
    weight = None
    for line in text.splitlines():
        if line.startswith("# set "):
            weight = float(re.match(r"# set \w+ weight ([\d.]+): ", line)[1])
        elif not line.startswith("#"):
            yield line, weight


def predicted(lines, card):
    """The names of the features, and of every plan: time by arithmetic, doubt, features."""
    with tempfile.TemporaryDirectory() as folder:
        asked = pathlib.Path(folder) / "features"
        subprocess.run(["c++", "-std=c++20", "-O1", f"-I{ROOT}/common", f"-I{ROOT}/steps/22_peak",
                        str(ROOT / "tools/fit_program/features.cpp"), "-o", str(asked)], check=True)
        done = subprocess.run([str(asked), card], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    names, *rows = done.stdout.splitlines()
    return names.split()[2:], [[float(word) for word in row.split()] for row in rows]


class Plans:
    """All plans, those of a shape one after the other, and of measured shapes first. Logarithms of times are natural ones."""

    def __init__(self, numpy):
        rows, times, weights, shapes = [], [], [], []
        for card, path in [*MEASURED.items(), *PREDICTED.items()]:
            plans = sorted(plans_in(kept_plans.unpacked(path)), key=lambda plan: plan[0].split()[:3])
            self.names, features = predicted([line for line, _ in plans], card)
            rows += features
            weights += [weight for _, weight in plans]
            times += [float(line.split()[-1]) for line, _ in plans]
            shapes += [(card if path in MEASURED.values() else "predicted", *line.split()[:3]) for line, _ in plans]
        starts = [i for i, shape in enumerate(shapes) if i == 0 or shape != shapes[i - 1]]
        self.cards = numpy.array([shapes[i][0] for i in starts])  # that measured each shape, or "predicted"
        self.starts, self.ends = numpy.array(starts), numpy.array([*starts[1:], len(shapes)])
        rows = numpy.array(rows)
        self.us, self.doubt, self.features = numpy.log(rows[:, 0]), numpy.log(rows[:, 1]), rows[:, 2:].astype(numpy.float32)
        self.wrong_by = numpy.log(times) - self.us
        fastest = numpy.minimum.reduceat(numpy.log(times), self.starts)
        self.behind = numpy.log(times) - numpy.repeat(fastest, self.ends - self.starts)
        self.shape_weight = numpy.maximum.reduceat(numpy.array(weights), self.starts)
        self.weight = numpy.array(weights) * numpy.exp(-4 * numpy.expm1(self.behind))

    def of(self, numpy, shapes):
        """The numbers of these shapes' plans, where each shape's begin among them, and whose each is."""
        counts = self.ends[shapes] - self.starts[shapes]
        begins = numpy.cumsum(counts) - counts
        owner = numpy.repeat(numpy.arange(len(shapes)), counts)
        return numpy.arange(counts.sum()) - begins[owner] + self.starts[shapes][owner], begins, owner


class Network:
    """Two hidden layers whose units are 0 where their sum is negative."""

    def __init__(self, numpy, features, hidden, random):
        self.numpy = numpy
        self.mean, self.scale = features.mean(0, numpy.float64), 1 / (features.std(0, numpy.float64) + 1e-6)
        sizes = [features.shape[1], *hidden, 1]
        self.weights = [random.normal(0, (1 / one)**0.5, (one, next_one)).astype(numpy.float32) for one, next_one in zip(sizes, sizes[1:])]
        self.biases = [numpy.zeros(size, numpy.float32) for size in sizes[1:]]

    def layers(self, features):
        """What each layer's units say, the inputs first."""
        said = [self.numpy.clip((features - self.mean) * self.scale, -WIDEST, WIDEST).astype(self.numpy.float32)]
        for weights, biases in zip(self.weights[:-1], self.biases[:-1]):
            said.append(self.numpy.maximum(said[-1] @ weights + biases, 0))
        return [*said, (said[-1] @ self.weights[-1] + self.biases[-1])[:, 0]]

    def gradients(self, said, wanted):
        """Of weights and biases, from what the sum should be more of, for each plan."""
        wanted, of_weights, of_biases = wanted[:, None].astype(self.numpy.float32), [], []
        for layer in reversed(range(len(self.weights))):
            of_weights.insert(0, said[layer].T @ wanted + DECAY * self.weights[layer])
            of_biases.insert(0, wanted.sum(0))
            wanted = wanted @ self.weights[layer].T * (said[layer] > 0)
        return of_weights + of_biases

    def rounded(self):
        """The same with weights as they are written; also gives the numbers that are written."""
        written = []
        for part in (self.weights, self.biases):
            for i, values in enumerate(part):
                unit = float("%.6g" % (abs(values).max() / DIGITS))
                numbers = self.numpy.rint(values / unit).astype(int)
                written.append((unit, numbers))
                part[i] = numbers * unit
        self.mean = self.numpy.array([float("%.5g" % value) for value in self.mean])
        self.scale = self.numpy.array([float("%.5g" % value) for value in self.scale])
        return written


def fit(numpy, plans, shapes, hidden, progress):
    """A network that is fitted to these shapes, by Adam (Kingma and Ba, arXiv 1412.6980)."""
    random = numpy.random.default_rng(0)
    network = Network(numpy, plans.features[plans.of(numpy, shapes)[0]], hidden, random)
    parameters = network.weights + network.biases
    means, squares = [[numpy.zeros_like(values) for values in parameters] for _ in range(2)]
    step, steps = 0, EPOCHS * -(-len(shapes) // SHAPES_AT_ONCE)
    for epoch in range(EPOCHS):
        progress(epoch)
        order = random.permutation(shapes)
        for begin in range(0, len(order), SHAPES_AT_ONCE):
            some = order[begin:begin + SHAPES_AT_ONCE]
            chosen, begins, owner = plans.of(numpy, some)
            said = network.layers(plans.features[chosen])
            weight = plans.weight[chosen] / plans.weight[chosen].sum()
            wanted = ACCURACY * 2 * weight * (said[-1] - plans.wrong_by[chosen])
            likely = -(plans.us + plans.doubt)[chosen] - said[-1]
            likely = numpy.exp((likely - numpy.maximum.reduceat(likely, begins)[owner]) / SOFTNESS)
            likely /= numpy.add.reduceat(likely, begins)[owner]
            behind = plans.behind[chosen]
            regret = numpy.add.reduceat(likely * behind, begins)
            weight = (plans.shape_weight[some] / plans.shape_weight[some].sum())[owner]
            wanted -= REGRET * weight * likely * (behind - regret[owner]) / SOFTNESS
            step += 1
            rate = RATE * min(step / 200, 0.5 + 0.5 * numpy.cos(numpy.pi * step / steps))
            for values, gradient, mean, square in zip(parameters, network.gradients(said, wanted), means, squares):
                mean += 0.1 * (gradient - mean)
                square += 0.001 * (gradient**2 - square)
                values -= rate * mean / (1 - 0.9**step) / (numpy.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return network


def loss(numpy, plans, corrections, card):
    """The mean over this card's shapes of how much longer the plan takes that is chosen with these corrections."""
    guesses = plans.us + plans.doubt + corrections
    chosen = [begin + numpy.argmin(guesses[begin:end])
              for begin, end, measured_on in zip(plans.starts, plans.ends, plans.cards) if measured_on == card]
    return numpy.expm1(plans.behind[chosen].mean())


def check(numpy, plans):
    print("hidden units  weights  loss on an H200, on an H100")
    print("%12s %8d %16.2f %% %12.2f %%" %
          ("none", 0, *(100 * loss(numpy, plans, 0, card) for card in MEASURED)))
    part = numpy.full(len(plans.starts), -1)  # what is predicted is never left out
    part[plans.cards != "predicted"] = numpy.random.default_rng(1).permutation((plans.cards != "predicted").sum()) % 4
    for hidden in CHECKED:
        corrections = numpy.zeros(len(plans.us))
        for left_out in range(4):
            network = fit(numpy, plans, numpy.flatnonzero(part != left_out), hidden, show)
            network.rounded()
            those = plans.of(numpy, numpy.flatnonzero(part == left_out))[0]
            corrections[those] = network.layers(plans.features[those])[-1]
        weights = sum(values.size for values in network.weights + network.biases)
        show(None)
        print("%12s %8d %16.2f %% %12.2f %%" %
              ("%d, %d" % hidden, weights, *(100 * loss(numpy, plans, corrections, card) for card in MEASURED)), flush=True)


def show(epoch):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" if epoch is None else f"\rfitting: {100 * epoch // EPOCHS} %")


def lines_of(words, end=""):
    """The words with commas between, in lines of at most 118 characters."""
    lines = ["   "]
    for word in words:
        if len(lines[-1]) + len(word) > 116:
            lines.append("   ")
        lines[-1] += f" {word},"
    return "\n".join(lines) + end


def header(network, names):
    written = network.rounded()
    inputs = [f'{{"{name}", {mean:.5g}, {scale:.5g}}}' for name, mean, scale in zip(names, network.mean, network.scale)]
    text = f"""// Generated by tools/fit_choice.py: what the arithmetic of step 22's model is wrong by, learned from plans.
#pragma once

#include <array>
#include <string_view>

namespace gemm::learned {{

// clang-format off
/// A feature that it was fitted to, with the mean, and one over the standard deviation.
struct Input {{ std::string_view feature; double mean, scale; }};
inline constexpr double kWidest = {WIDEST:g};  // inputs are kept within so many standard deviations

inline constexpr std::array<Input, {len(names)}> kInputs{{{{
{lines_of(inputs)}
}}}};
"""
    count = len(network.weights)
    for layer in range(count):
        for what, (unit, numbers) in (("Weights", written[layer]), ("Biases", written[count + layer])):
            shape = " [input][unit]," if what == "Weights" else ""
            text += f"""
//{shape} in units of
inline constexpr double k{what}Unit{layer + 1} = {unit:g};
inline constexpr std::array<short, {numbers.size}> k{what}{layer + 1}{{
{lines_of(map(str, numbers.ravel()))}
}};
"""
    return text + """// clang-format on

}  // namespace gemm::learned
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fit to three quarters of the measured shapes, say what is lost on the others")
    parser.add_argument("--print", metavar="FILE", type=pathlib.Path, help="print the lines of a file of docs/results that keeps plans")
    parser.add_argument("--keep", metavar=("FILE", "LINES"), nargs=2, type=pathlib.Path, help="replace FILE by the plans of LINES, packed")
    arguments = parser.parse_args()
    if arguments.print:
        sys.stdout.write(kept_plans.unpacked(arguments.print))
        return 0
    if arguments.keep:
        arguments.keep[0].write_bytes(kept_plans.packed(arguments.keep[1].read_text(encoding="utf-8")))
        return 0
    try:
        import numpy
    except ImportError as error:
        raise UserError(f"{error}; python3 -m pip install numpy installs it.") from None
    plans = Plans(numpy)
    if arguments.check:
        check(numpy, plans)
        return 0
    network = fit(numpy, plans, numpy.arange(len(plans.starts)), HIDDEN, show)
    show(None)
    LEARNED.write_text(header(network, plans.names))
    said = network.layers(plans.features)[-1]
    for card in MEASURED:
        print(f"{card}: the choice takes {100 * loss(numpy, plans, said, card):.2f} % longer than the fastest plan, "
              "on the measured shapes that it learned from")
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/fit_choice.py", main))
