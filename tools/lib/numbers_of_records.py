"""Numbers inside sentences: <!-- number: RECORD CONTESTANT VALUE [option=value ...] -->0.880<!-- /number -->, and numbers
that are derived by arithmetic or have a source beside them."""
import ast
import math
import operator
import re
import statistics

from populations import HISTORY, SUMMARY, WORST, bounds, history, population, summary
from program import UserError
from records import ROOT, default_shape, find_shape, kind_of, load, load_record, nearest, paired, relative, selected

OPTIONS = {"shape", "mode", "digits", "k", "at", "others"}
DIVISIBILITY = {"odd8": lambda k: k % 16 == 8, "64": lambda k: k % 64 == 0}  # shapes of a race over random ones, by K
COUNTERS = {"to_sm_bytes": 2**20, "l2_read_bytes": 2**20, "dram_read_bytes": 2**20, "l2_hit_percent": 1,
            "l2_read_requests": 1e6, "l2_write_requests": 1e6, "tensor_percent": 1, "clock_mhz": 1}  # what a counter is divided by
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


def words_of_shapes(record, word, options):
    """[(shape, contestant's word)]: all shapes, or those of at=MxNxK,MxNxK; with others=OTHER all, and OTHER's word at those that
    at= leaves out, or where the contestant did not run."""
    if "at" in options:
        named = [find_shape(record, one) for one in options["at"].split(",")]
    elif "others" in options:
        named = [shape for shape in record["shapes"] if any(selected(one, [word]) for one in shape["contestants"])]
    else:
        named = record["shapes"]
    at_them = [(shape, word) for shape in record["shapes"] if shape in named]
    return at_them + [(shape, options["others"]) for shape in record["shapes"] if "others" in options and shape not in named]


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
             ast.USub: operator.neg, ast.UAdd: operator.pos}
FUNCTIONS = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "round": round}
UNITS = ("µs", "ms", "ns", "TFLOP/s", "GFLOP/s", "GB/s", "TB/s", "MHz", "GHz", "W", "J", "pJ", "%", "×", "GB", "MB", "KB", "clocks")


def evaluate(expression):
    """The value of plain arithmetic. Nothing but numbers, these operators and these functions is evaluated."""
    def value(node):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Pow) and (abs(right) > 64 or abs(left) > 1e40):
                raise UserError(f"'{expression}' is too large a power.")
            return OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords and node.args:
            return FUNCTIONS[node.func.id](*map(value, node.args))
        raise UserError(f"'{expression}' is not arithmetic: numbers, + - * / **, parentheses, {', '.join(FUNCTIONS)}.")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        if not isinstance(tree, (ast.BinOp, ast.Call)):
            raise UserError(f"'{expression}' derives nothing: show the arithmetic.")
        return value(tree)
    except (SyntaxError, ZeroDivisionError, OverflowError, TypeError, ValueError):
        raise UserError(f"'{expression}' has no value as arithmetic.") from None


def derived(specification, document):
    """EXPRESSION [digits=n] [unit]. In it {RECORD CONTESTANT VALUE ...} is a recorded number, as a sentence would show it."""
    def recorded(found):
        return re.match(r"[\d.]*", make_number(found[1], "", document))[0]

    words = re.sub(r"\{([^{}]*)\}", recorded, specification).split()
    unit = words.pop() if words and words[-1] in UNITS else ""
    digits = [word for word in words if word.startswith("digits=")]
    if len(digits) > 1 or digits and not re.fullmatch(r"digits=\d", digits[0]):
        raise UserError(f"{digits[-1]} is not a number of digits from 0 to 9.")
    result = evaluate(" ".join(word for word in words if word not in digits))
    if digits:
        text = f"{result:.{digits[0][-1]}f}"
    else:
        text = str(result) if isinstance(result, int) or result == int(result) and abs(result) < 1e9 else significant(result)
        text = text.removesuffix(".0")
    return f"{text} {unit}".strip()


def make_number(specification, old, document):
    """The text of one number. `source` keeps what is there: a test looks for the link beside it."""
    words = specification.split()
    if words == ["source"]:
        return old
    if words == ["stated"]:
        raise UserError("'stated' says nothing about where a number comes from: name a record, write 'derived' and the "
                        "arithmetic, or 'source' and link the source beside it.")
    if words[:1] == ["derived"]:
        return derived(specification.split(None, 1)[1] if len(words) > 1 else "", document)
    options = {}
    for word in [word for word in words if word.partition("=")[0] in OPTIONS]:
        key, _, text = word.partition("=")
        options[key] = text
        words.remove(word)
    if len(words) != 3:
        raise UserError("a number is RECORD CONTESTANT VALUE, such as part3_h200 11:128x256_stages4 cublaslt, or 'derived' and arithmetic, or 'source'.")
    name, word, value = words
    if "digits" in options and not re.fullmatch(r"\d", options["digits"]):
        raise UserError(f"digits={options['digits']} is not a number of digits from 0 to 9.")
    digits = int(options["digits"]) if "digits" in options else None
    path = ROOT / f"docs/results/{name}.json"
    if not path.exists() and name in history():
        return of_history(name, word, value, digits)
    record = load(path)
    if "k" in options:
        if options["k"] not in DIVISIBILITY:
            raise UserError(f"k={options['k']} picks no shapes; {nearest(options['k'], list(DIVISIBILITY))}")
        record = {**record, "shapes": [shape for shape in record["shapes"] if DIVISIBILITY[options["k"]](shape["k"])]}
        return of_distribution(summary(population(record)[word], WORST[word]), value, digits)
    if {"at", "others"} & set(options) and value not in ("geometric_mean", "worst"):
        raise UserError("at= and others= go with geometric_mean and worst.")
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
            ratios = [only(shape["contestants"], one, relative(path))["to_cublaslt"]["median"] for shape, one in words_of_shapes(record, word, options)]
            return of_distribution(summary(ratios), value, digits)
        kind, _, other = value.partition("=")
        if kind == "mean_times" and other:  # geometric mean over all shapes
            found = [[only(shape["contestants"], one, relative(path)) for one in (word, other)] for shape in record["shapes"]]
            return of_distribution(summary([b["median_us"] / a["median_us"] for a, b in found]), "geometric_mean", digits or 2)
    elif kind != "counters":
        raise UserError(f"a number in a sentence comes from a timed run, the suite or counters, not from {relative(path)}.")
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    return of_contestant(record, shape, only(shape["contestants"], word, relative(path)), value, digits, relative(path))
