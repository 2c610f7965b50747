"""Shapes for the steps outside the core that nobody looked at while they were tuned: drawn by a seed."""
import random

COUNT = 6

# Per step: the contestants that are raced, and how a shape is drawn: plain, few_rows, one_row, chain, grouped, masked.
ELECTIVES = {
    "19": (["19:128x192_ping_pong", "19:128x128_ping_pong", "19:128x256"], "plain"),
    "20": (["20:192x256_lockstep", "20:128x256_lockstep", "20:128x192_ping_pong_lockstep"], "plain"),
    "21": (["21:128x176_ping_pong", "21:256x96", "21:96x256"], "plain"),
    "30": (["30"], "plain"),
    "31": (["31:bias_gelu"], "plain"),
    "32": (["32:gelu_aux"], "plain"),
    "33": (["33:drelu_bgrad"], "plain"),
    "40": (["40:nt"], "plain"),
    "41": (["41:rs_nt"], "plain"),
    "42": (["42:e4m3"], "plain"),
    "43": (["43:128x256"], "plain"),
    "44": (["44:128x256", "44:128x192", "44:128x128", "44:64x64", "44:64x56"], "plain"),
    "45": (["45:int4_16_cluster", "45:int4_64_cluster", "45:int4_128", "45:int4_256"], "few_rows"),
    "46": (["46"], "plain"),
    "50": (["50:2_rows", "50:1_row", "50:split_k"], "one_row"),
    "51": (["51:pdl_prefetch", "51:graph"], "chain"),
    "52": (["52:speculation"], "grouped"),
    "53": (["53:halves"], "masked"),
    "54": (["54:three_maps"], "grouped"),
    "57": (["57:queue", "57:two_ctas", "51:pdl_prefetch"], "chain"),
}


def _log_uniform(draw, least, most, unit):
    """A multiple of `unit` from `least` to `most`, as likely to be in each octave."""
    return max(least, min(most, round(least * (most / least) ** draw.random() / unit) * unit))


def _plain(draw):
    return (_log_uniform(draw, 512, 8192, 8), _log_uniform(draw, 512, 16384, 64), _log_uniform(draw, 512, 16384, 128)), ""


def _few_rows(draw):
    return (_log_uniform(draw, 1, 256, 1), _log_uniform(draw, 2048, 32768, 64), _log_uniform(draw, 2048, 16384, 128)), ""


def _one_row(draw):
    return (1, _log_uniform(draw, 1024, 131072, 8), _log_uniform(draw, 1024, 32768, 8)), ""


def _chain(draw):
    width = _log_uniform(draw, 512, 8192, 64)  # of each of the 16 layers
    return (_log_uniform(draw, 1, 16, 1), 16 * width, width), ""


def _grouped(draw):
    groups = 2 ** draw.randint(2, 7)
    rows = _log_uniform(draw, 4096, 65536, 64)
    sizes = draw.choice(["equal", "uniform", "zipf"])
    return (rows, _log_uniform(draw, 512, 8192, 64), _log_uniform(draw, 512, 8192, 64)), f"{groups}:{sizes}:{draw.randint(1, 99)}"


def _masked(draw):
    groups = 2 ** draw.randint(2, 7)
    capacity = _log_uniform(draw, 64, 512, 64)
    rows = groups * capacity
    return ((rows, _log_uniform(draw, 512, 8192, 64), _log_uniform(draw, 512, 8192, 64)),
            f"{groups}:uniform:{draw.randint(1, 99)}:{rows // 2}/{capacity}")


_FORMS = {"plain": _plain, "few_rows": _few_rows, "one_row": _one_row, "chain": _chain, "grouped": _grouped, "masked": _masked}


def drawn(step, seed):
    """[(shape, its groups or ""), ...] for a step's number; the same ones for the same seed on every machine."""
    draw = random.Random(f"{seed} {step}")
    return [_FORMS[ELECTIVES[step][1]](draw) for _ in range(COUNT)]
