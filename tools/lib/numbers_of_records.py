"""Numbers inside sentences: <!-- number: RECORD CONTESTANT VALUE [option=value ...] -->0.880<!-- /number -->."""
import re
import statistics

from populations import HISTORY, SUMMARY, WORST, bounds, history, population, summary
from program import UserError
from records import ROOT, default_shape, find_shape, kind_of, load, load_record, nearest, paired, relative, selected

OPTIONS = {"shape", "mode", "digits"}
COUNTERS = {"to_sm_bytes": 2**20, "l2_read_bytes": 2**20, "dram_read_bytes": 2**20, "l2_hit_percent": 1,
            "l2_read_requests": 1e6, "clock_mhz": 1}  # what a counter is divided by
RATIOS = ("times", "faster", "slower")


def significant(value, digits=3):
    """Three significant digits, never an exponent: 0.123, 1.23, 12.3, 123, 1234."""
    if value == 0:
        return "–"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}"


def joules(shape, contestant, record):
    """Energy of one launch in joules. The power is that of the card while all contestants of the shape were timed: it says
    what one of them takes only where each of them runs at the power limit."""
    conditions = shape["conditions"]
    if record["mode"] != "sustained" or "power_cap" not in conditions["throttle_reasons"]:
        raise UserError("the energy of a launch is known only where the power limit decides: in a sustained record that was "
                        "throttled by power_cap.")
    return conditions["power_w_median"] * contestant["median_us"] * 1e-6


def picojoules(shape, contestant, record):
    """Energy of one floating-point operation in picojoules."""
    return joules(shape, contestant, record) / (2.0 * shape["m"] * shape["n"] * shape["k"]) * 1e12


def only(contestants, word, where):
    found = [contestant for contestant in contestants if selected(contestant, [word])]
    if not found:
        raise UserError(f"{word} picks no contestant of {where}.")
    if len({contestant["name"] for contestant in found}) > 1:
        raise UserError(f"{word} picks several contestants of {where}.")
    # A step without a variant is its fastest one; every variant was timed in the same run.
    return min(found, key=lambda contestant: contestant.get("median_us", 0))


def fixed(value, digits, otherwise):
    return otherwise(value) if digits is None else f"{value:.{digits}f}"


def ratio(kind, one, other, digits):
    ratios = paired(one, other)  # as in a table's column "× step before"
    value = statistics.median(ratios) if ratios else other["median_us"] / one["median_us"]  # > 1: `one` is faster
    if kind == "times":
        return fixed(value, digits, lambda v: f"{v:.2f}")
    percent = 100 * (value - 1) if kind == "faster" else 100 * (1 / value - 1)
    if percent < 0:
        raise UserError(f"it is not {kind}: the sentence would say the opposite of the record.")
    return fixed(percent, digits, lambda v: f"{v:.0f}" if v >= 0.95 else f"{v:.1f}") + " %"


def of_contestant(record, shape, contestant, value, digits, where):
    if value in COUNTERS:
        if value not in contestant.get("counters", {}):
            raise UserError(f"{where} has no counter {value}.")
        return fixed(contestant["counters"][value] / COUNTERS[value], digits, lambda v: f"{v:.0f}")
    if "median_us" not in contestant:
        raise UserError(f"there is no value '{value}' in a record of counters; {nearest(value, list(COUNTERS))}")
    simple = {"tflops": lambda: fixed(contestant["tflops"], digits, significant),
              "median": lambda: fixed(contestant["median_us"], digits, lambda v: significant(v, 4)),
              "cublaslt": lambda: fixed(contestant["to_cublaslt"]["median"], digits, lambda v: f"{v:.3f}"),
              "ceiling": lambda: fixed(100 * contestant["ceiling_share"], digits, lambda v: f"{v:.0f}") + " %",
              "clock": lambda: f"{shape['conditions']['sm_clock_mhz_median']:.0f}",
              "power": lambda: f"{shape['conditions']['power_w_median']:.0f}",
              "joule": lambda: fixed(joules(shape, contestant, record), digits, significant),
              "picojoule": lambda: fixed(picojoules(shape, contestant, record), digits, significant)}
    if value in simple:
        return simple[value]()
    kind, _, other = value.partition("=")
    if kind in RATIOS and other:
        return ratio(kind, contestant, only(shape["contestants"], other, where), digits)
    raise UserError(f"there is no value '{value}'; {nearest(value, [*simple, *(f'{kind}=NN' for kind in RATIOS), *COUNTERS])}")


def of_distribution(values, value, digits):
    if value not in values:
        raise UserError(f"there is no value '{value}' of a distribution; {nearest(value, list(values))}")
    return str(values[value]) if value == "count" else fixed(values[value], digits, lambda v: f"{v:.3f}")


def of_history(name, word, value, digits):
    """Of a race over random shapes of which only a line is left."""
    if word not in WORST:
        raise UserError(f"of {name} only {relative(HISTORY)} is left, which has no '{word}'; {nearest(word, list(WORST))}")
    line = history()[name]
    if not line[f"{word}_count"]:
        raise UserError(f"{name} had no such shape.")
    return of_distribution({what: line[f"{word}_{what}"] for what in SUMMARY}, value, digits)


def make_number(specification, old, page):
    """The text of one number. `stated` keeps what is there: a prediction, a limit, a number of a data sheet."""
    words = specification.split()
    if words == ["stated"]:
        return old
    options = {}
    for word in [word for word in words if word.partition("=")[0] in OPTIONS]:
        key, _, text = word.partition("=")
        options[key] = text
        words.remove(word)
    if len(words) != 3:
        raise UserError("a number is RECORD CONTESTANT VALUE, such as part3_h200 11:128x256_stages4 cublaslt, or 'stated'.")
    name, word, value = words
    if "digits" in options and not re.fullmatch(r"\d", options["digits"]):
        raise UserError(f"digits={options['digits']} is not a number of digits from 0 to 9.")
    digits = int(options["digits"]) if "digits" in options else None
    path = ROOT / f"docs/results/{name}.json"
    if not path.exists() and name in history():
        return of_history(name, word, value, digits)
    record = load(path)
    kind = kind_of(record)
    if kind == "suite" and word != "bound" and value in ("geometric_mean", "worst"):
        found = [one for one in record["summary"] if selected({**one, "kind": "step"}, [word])]
        if len(found) != 1:
            raise UserError(f"{word} picks {len(found)} lines of the summary of {relative(path)}; give its variant, too.")
        return fixed(found[0][value]["median"], digits, lambda v: f"{v:.3f}")
    if kind in ("timed", "suite"):
        record = load_record(path, options.get("mode"))
        if word == "bound":
            return of_distribution(summary(bounds(record)), value, digits)
        if word in WORST:
            return of_distribution(summary(population(record)[word], WORST[word]), value, digits)
        if value in ("geometric_mean", "worst") and "shape" not in options:  # over all shapes of the record
            ratios = [only(shape["contestants"], word, relative(path))["to_cublaslt"]["median"] for shape in record["shapes"]]
            return of_distribution(summary(ratios), value, digits)
    elif kind != "counters":
        raise UserError(f"a number in a sentence comes from a timed run, the suite or counters, not from {relative(path)}.")
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    return of_contestant(record, shape, only(shape["contestants"], word, relative(path)), value, digits, relative(path))
