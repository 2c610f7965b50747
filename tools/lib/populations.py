"""What a race over random shapes (tools/compare --population) adds up to."""
import math

from program import UserError


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def population(record):
    """Numbers of each shape, in the record's order: `speed` of what chose by shape and `best` of the fastest variant, both
    relative to cuBLASLt; `regret`, the time of the choice over that of the fastest variant; `off_sectors`, the speed where K
    or N is an odd multiple of 8."""
    values = {"speed": [], "best": [], "regret": [], "off_sectors": []}
    for shape in record["shapes"]:
        chosen = next((c for c in shape["contestants"] if "choice" in c and c["to_cublaslt"]["median"]), None)
        if chosen is None:
            continue
        fastest = min((c for c in shape["contestants"] if c["name"] == chosen["name"]), key=lambda c: c["median_us"])
        values["speed"].append(chosen["to_cublaslt"]["median"])
        values["best"].append(fastest["to_cublaslt"]["median"])
        values["regret"].append(chosen["median_us"] / fastest["median_us"])
        if shape["k"] % 16 or shape["n"] % 16:
            values["off_sectors"].append(values["speed"][-1])
    if not values["speed"]:
        raise UserError("the record has no step that chose a variant and was compared with cuBLASLt.")
    return values
