"""What no schema can say of a record: its medians are those of its samples as far as it has them, its ratios those of its medians."""
import math
import statistics

REFERENCE = "cublaslt_best"
RIVAL = "deepgemm"  # kDeepGemm of tools/rivals_program/deepgemm.h
LEAST_ROUNDS = 6  # kMinRounds of common/harness/record/record.h


def quantile(samples, p):
    """Between the order statistics around 1 + p (n - 1), as common/harness/record computes it."""
    samples = sorted(samples)
    place = p * (len(samples) - 1)
    below = int(place)
    above = min(below + 1, len(samples) - 1)
    return samples[below] + (place - below) * (samples[above] - samples[below])


def median_interval(samples):
    """Median of the samples and its 95 % interval from order statistics, as common/harness/record computes it."""
    samples = sorted(samples)
    n = len(samples)
    low, high, tail = samples[0], samples[-1], 0
    for r in range(1, n // 2 + 1):
        tail += math.comb(n, r - 1)  # of 2^n: how often the median is below the r-th sample
        if 1 - 2 * tail / 2**n < 0.95:
            break
        low, high = samples[r - 1], samples[n - r]
    return {"median": statistics.median(samples), "low": low, "high": high}


def geometric_mean(ratios):
    """Of ratios with intervals, as common/harness/record/suite.cpp computes it."""
    logs = [math.log(ratio["median"]) for ratio in ratios]
    below = math.sqrt(sum(math.log(ratio["median"] / ratio["low"]) ** 2 for ratio in ratios))
    above = math.sqrt(sum(math.log(ratio["high"] / ratio["median"]) ** 2 for ratio in ratios))
    mean, count = sum(logs) / len(logs), len(logs)
    return {"median": math.exp(mean), "low": math.exp(mean - below / count), "high": math.exp(mean + above / count)}


def verdict(ratio, rounds):
    if rounds < LEAST_ROUNDS or ratio["low"] <= 1 <= ratio["high"]:
        return "AMBIGUOUS"
    return "FASTER" if ratio["low"] > 1 else "SLOWER"


def identity(contestant):
    """The algorithm of cuBLASLt that won is not part of its identity; a rival races with several kernels."""
    return contestant["name"], contestant["variant"] if contestant["kind"] == "step" or contestant["name"] == RIVAL else ""


def rounds_of(entry):
    """How many samples a contestant or a measurement had: compact records say so, the others have them."""
    return entry["rounds"] if "rounds" in entry else len(entry["samples_us" if "samples_us" in entry else "samples"])


def tflops(shape, microseconds):
    return 2 * shape["m"] * shape["n"] * shape["k"] / microseconds * 1e-6


def close(a, b, tolerance=1e-6):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)


# Each yields sentences about what is wrong, without the record's name and a full stop.


def _ratio_problems(place, ratio, expected=None):
    if not ratio["low"] <= ratio["median"] <= ratio["high"]:
        yield f"{place}: the median {ratio['median']:g} is outside its interval"
    elif expected and not all(close(ratio[key], expected[key]) for key in expected):
        yield (f"{place} is {ratio['median']:g} [{ratio['low']:g}, {ratio['high']:g}], but by the samples it is "
               f"{expected['median']:g} [{expected['low']:g}, {expected['high']:g}]")


def condition_problems(place, conditions):
    low, median, high = (conditions[f"sm_clock_mhz_{key}"] for key in ("min", "median", "max"))
    if not low <= median <= high:
        yield f"{place}: the median clock {median:g} is not between the lowest and the highest"
    if conditions["power_w_median"] > conditions["power_w_max"]:
        yield f"{place}: the median power is more than the highest"
    seen = [conditions[key] for key in conditions if key != "throttle_reasons" and isinstance(conditions[key], (int, float))]
    if not high and (any(seen) or conditions["throttle_reasons"]):
        yield f"{place}: the clock is 0, which means that NVML was not found, and there are other values"
    if high and not low:
        yield f"{place}: the lowest clock is 0"


def _sample_problems(place, entry, version, samples, quantiles, tolerance=1e-6):
    """Of a contestant or a measurement: its samples are there, its quantiles are theirs, or at least in order."""
    needed = "rounds" if version > 1 else samples
    if needed not in entry:
        yield f"{place} lacks the field '{needed}'"
        return
    values = [entry[name] for name in quantiles]
    if values != sorted(values):
        yield f"{place}: its quartiles are not in order"
    if samples not in entry:
        return
    if rounds_of(entry) != len(entry[samples]):
        yield f"{place}.rounds is {entry['rounds']}, but there are {len(entry[samples])} samples"
    for name, p in quantiles.items():
        expected = quantile(entry[samples], p)
        if not close(entry[name], expected, tolerance):
            yield f"{place}.{name} is {entry[name]:g}, but by the samples it is {expected:g}"


def _contestant_problems(place, contestant, shape, reference, ceiling):
    rate = tflops(shape, contestant["median_us"])
    if not close(contestant["tflops"], rate):
        yield f"{place}.tflops is {contestant['tflops']:g}, but by the median it is {rate:g}"
    ratio = contestant["to_cublaslt"]
    expected = {"median": 0, "low": 0, "high": 0} if reference is None else None
    if reference and "samples_us" in contestant and "samples_us" in reference:
        expected = ratio = median_interval(
            [theirs / own for theirs, own in zip(reference["samples_us"], contestant["samples_us"])])
    yield from _ratio_problems(f"{place}.to_cublaslt", contestant["to_cublaslt"], expected)
    expected = "AMBIGUOUS" if reference is None else verdict(ratio, rounds_of(contestant))
    if contestant["verdict"] != expected:
        yield f"{place}.verdict is {contestant['verdict']}, but by the interval it is {expected}"
    share = contestant["tflops"] / ceiling["tflops"] if ceiling else 0
    if not close(contestant["ceiling_share"], share):
        yield f"{place}.ceiling_share is {contestant['ceiling_share']:g}, but by the rates it is {share:g}"


def _shape_problems(place, shape, version):
    contestants = shape["contestants"]
    names = [identity(contestant) for contestant in contestants]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{place}.contestants[{index}]: {' '.join(name).strip()} occurs twice"
    for index, contestant in enumerate(contestants):
        yield from _sample_problems(f"{place}.contestants[{index}]", contestant, version, "samples_us",
                                    {"q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75})
    counts = sorted({rounds_of(contestant) for contestant in contestants})
    if len(counts) > 1:
        yield f"{place}: the contestants have {' and '.join(map(str, counts))} samples; a round gives each of them one"
        return
    reference = next((one for one in contestants if one["name"] == REFERENCE), None)
    ceiling = next((one for one in contestants if one["kind"] == "ceiling"), None)
    for index, contestant in enumerate(contestants):
        yield from _contestant_problems(f"{place}.contestants[{index}]", contestant, shape, reference, ceiling)
    yield from condition_problems(f"{place}.conditions", shape["conditions"])


def check_problems(checks, place="checks"):
    for index, check in enumerate(checks):
        if not check["ok"]:
            yield f"{place}[{index}]: the result was wrong, and no time is shown for a wrong result"


def timed_problems(record, place=""):
    if (record["mode"] == "burst") != (record["idle_ms"] > 0):
        yield f"{place}idle_ms is {record['idle_ms']:g} in {record['mode']} mode"
    sizes = [(shape["m"], shape["n"], shape["k"]) for shape in record["shapes"]]
    for index, shape in enumerate(record["shapes"]):
        if sizes[index] in sizes[:index]:
            yield f"{place}shapes[{index}] occurs twice"
        yield from _shape_problems(f"{place}shapes[{index}]", shape, record["schema"])
    # Usually the most that a shape had; of records that were cut or put together, about as many.
    counts = [rounds_of(shape["contestants"][0]) for shape in record["shapes"]]
    if not min(counts) / 2 <= record["rounds"] <= 2 * max(counts):
        yield f"{place}rounds is {record['rounds']}, but the shapes have {min(counts)} to {max(counts)} samples"
    yield from check_problems(record.get("checks", []), f"{place}checks")


def sweep_problems(record):
    yield from timed_problems(record)
    places = [(cell["m"], cell["n"], cell["k"]) for cell in record["cells"]]
    for index, cell in enumerate(record["cells"]):
        if places[index] in places[:index]:
            yield f"cells[{index}] occurs twice"
        if cell["most_stages"] < 2 and not cell["limits"]:
            yield f"cells[{index}] has most_stages {cell['most_stages']}, two are needed, and no limit says why"
        if cell["k"] != 16 * cell["instructions"]:
            yield f"cells[{index}] has k = {cell['k']} and {cell['instructions']} instructions of 16"


def suite_problems(record):
    for mode in ("burst", "sustained"):
        if record[mode]["mode"] != mode:
            yield f"{mode}.mode is {record[mode]['mode']}"
        yield from timed_problems(record[mode], f"{mode}.")
    yield from check_problems(record.get("checks", []))
    for index, summary in enumerate(record["summary"]):
        name = (summary["name"], summary["variant"])
        found = [(one["to_cublaslt"], mode, shape) for mode in ("burst", "sustained") for shape in record[mode]["shapes"]
                 for one in shape["contestants"] if identity(one) == name and one["to_cublaslt"]["median"]]
        if not found:
            yield f"summary[{index}]: {' '.join(name).strip()} was not timed"
            continue
        burst = [ratio for ratio, mode, _ in found if mode == "burst"]
        if summary["burst_shapes"] != len(burst):
            yield f"summary[{index}].burst_shapes is {summary['burst_shapes']}, but it was timed at {len(burst)}"
        yield from _ratio_problems(f"summary[{index}].geometric_mean", summary["geometric_mean"],
                                   geometric_mean(burst) if burst else None)
        worst, mode, shape = min(found, key=lambda entry: entry[0]["median"])
        yield from _ratio_problems(f"summary[{index}].worst", summary["worst"], worst)
        at = summary["worst_at"]
        if (at["mode"], at["m"], at["n"], at["k"]) != (mode, shape["m"], shape["n"], shape["k"]):
            yield f"summary[{index}].worst_at is not where the ratio is lowest"


def measuring_problems(record):
    for index, race in enumerate(record["races"]):
        yield from timed_problems(race, f"races[{index}].")
        names = [contestant["name"] for contestant in race["shapes"][0]["contestants"]]
        for name in (record["kernel"], REFERENCE):
            if name not in names:
                yield f"races[{index}]: {name} did not run in it"
    keys = [claim["key"] for claim in record["claims"]]
    for index, claim in enumerate(record["claims"]):
        place = f"claims[{index}]"
        if claim["key"] in keys[:index]:
            yield f"{place}: {claim['key']} occurs twice"
        if claim["against"] >= len(record["races"]):
            yield f"{place}.against is {claim['against']}, but there are {len(record['races'])} races"
        for name in ("kernel", "yardstick"):
            rate = tflops(claim, claim[f"{name}_us"])
            if not close(claim[f"{name}_tflops"], rate):
                yield f"{place}.{name}_tflops is {claim[f'{name}_tflops']:g}, but by its time it is {rate:g}"
        ratio = claim["yardstick_us"] / claim["kernel_us"]
        if not close(claim["ratio"], ratio):
            yield f"{place}.ratio is {claim['ratio']:g}, but by the times it is {ratio:g}"
        yield from condition_problems(f"{place}.conditions", claim["conditions"])


def counters_problems(record):
    for index, shape in enumerate(record["shapes"]):
        names = [(one["name"], one["variant"]) for one in shape["contestants"]]
        for at, one in enumerate(shape["contestants"]):
            place = f"shapes[{index}].contestants[{at}]"
            if names[at] in names[:at]:
                yield f"{place}: {' '.join(names[at]).strip()} occurs twice"
            for field in record["metrics"]:
                if field not in one["counters"]:
                    yield f"{place}.counters lacks the field '{field}'"


# The parameters that tables and figures read, by the name of the measurement.
PARAMETERS = {"l2.read": ["working_set_mib"], "latency.l2": ["working_set_mib"], "shared.read": ["pattern", "bytes_per_lane",
              "expected_wavefronts"], "ldmatrix": ["layout", "row_bytes", "expected_wavefronts"], "barrier": ["threads"],
              "fma.rate": ["warps"], "mma_sync.rate": ["warps"], "wgmma.rate": ["warpgroups"],
              "latency.l2_line.near": ["sms", "sms_that_see_the_opposite", "variance_between_groups"]}


def roofline_problems(record):
    known = []
    for index, figure in enumerate(record["figures"]):
        parameters = figure["parameters"]
        if (figure["name"], parameters) in known:
            yield f"figures[{index}]: {figure['name']} with these parameters occurs twice"
        known.append((figure["name"], parameters))
        wanted = [*PARAMETERS.get(figure["name"], []), *(["conflict_ways"] if parameters.get("pattern") == "stride" else [])]
        for name in wanted:
            if name not in parameters:
                yield f"figures[{index}].parameters: {figure['name']} lacks '{name}'"
        if not figure["median"] and not figure["impossible"]:
            yield f"figures[{index}]: {figure['name']} is 0, which is impossible"
        # The program rounds samples to five digits.
        yield from _sample_problems(f"figures[{index}]", figure, record["schema"], "samples",
                                    {"lowest": 0, "q1": 0.25, "median": 0.5, "q3": 0.75, "highest": 1}, 2e-4)


def copied_problems(record):
    for index, copy in enumerate(record["copies"]):
        engine = next((one for one in copy["contestants"] if one["ctas"] == 0), None)
        for at, one in enumerate(copy["contestants"]):
            place = f"copies[{index}].contestants[{at}]"
            rate = copy["bytes"] / one["median_us"] * 1e-3
            if not close(one["gigabytes_per_second"], rate):
                yield f"{place}.gigabytes_per_second is {one['gigabytes_per_second']:g}, but by the median it is {rate:g}"
            yield from _sample_problems(place, one, record["schema"], "samples_us",
                                        {"q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75}, 1e-4)
            if engine and all("samples_us" in each for each in (one, engine)):
                ratios = [b / a for a, b in zip(one["samples_us"], engine["samples_us"])]
                yield from _ratio_problems(f"{place}.to_copy_engine", one["to_copy_engine"], median_interval(ratios))


def gathered_problems(record):
    for index, gather in enumerate(record["gathers"]):
        by_variant = {one["variant"]: one["median_us"] for one in gather["contestants"]}
        product, copies = by_variant.get("cublaslt_alone"), by_variant.get("copies_alone")
        if product and copies and not close(gather["limit"], (product + copies) / max(product, copies)):
            yield f"gathers[{index}].limit is {gather['limit']:g}, but by the medians it is {(product + copies) / max(product, copies):g}"
        for at, one in enumerate(gather["contestants"]):
            place = f"gathers[{index}].contestants[{at}]"
            rate = 2 * gather["m"] * gather["n"] * gather["k"] / one["median_us"] * 1e-6
            if "tflops" in one and not close(one["tflops"], rate):
                yield f"{place}.tflops is {one['tflops']:g}, but by the median it is {rate:g}"
            yield from _sample_problems(place, one, record["schema"], "samples_us",
                                        {"q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75}, 1e-4)


PROBLEMS = {"timed": timed_problems, "sweep": sweep_problems, "suite": suite_problems, "measuring": measuring_problems,
            "counters": counters_problems, "roofline": roofline_problems, "copied": copied_problems, "gathered": gathered_problems,
            "checks": lambda _: iter(())}  # wrong results are what it is there to say
