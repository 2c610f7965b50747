"""Reading what the programs write for figures: orders of tiles, timelines, logs of events. What is damaged is a UserError."""
import re

import schema
from program import UserError
from records import read_json, read_text, relative

SM_PROCESS = 100000  # pid of SM 0 in a timeline from the model
SPANS = ("issue", "multiply", "epilogue", "store", "wait full", "wait empty", "wait order", "wait store", "wait source", "pass partials", "copy")


def checked(path, what, name, problems, again):
    """What is at `path`, after its schema and after problems(data), which yields sentences."""
    data = read_json(path, what)
    problem = schema.problem(data, name) or next(problems(data), "")
    if problem:
        raise UserError(f"{what} {relative(path)} is damaged: {problem}; {again} writes it anew.")
    return data


def _raster_problems(data):
    rows, columns = data["grid"]
    wanted = [-(-data["shape"][0] // data["tile"][0]), -(-data["shape"][1] // data["tile"][1])]
    if data["grid"] != wanted:
        yield f"grid is {rows} x {columns}, but shape and tile make {wanted[0]} x {wanted[1]}"
    names = [order["order"] for order in data["orders"]]
    for index, order in enumerate(data["orders"]):
        place = f"orders[{index}]"
        if names[index] in names[:index]:
            yield f"{place}: {names[index]} occurs twice"
        if max(order["tiles"]) >= rows * columns:
            yield f"{place}: {names[index]} visits a tile that D does not have"
        first = [divmod(tile, columns) for tile in order["tiles"][:data["sms"]]]
        touched = len({row for row, _ in first}), len({column for _, column in first})
        if touched != (order["rows"], order["columns"]):
            yield f"{place}: the first wave of {names[index]} touches {touched[0]} rows and {touched[1]} columns"
        if tuple(order["waves"][0][1:]) != touched:
            yield f"{place}: waves[0] of {names[index]} has other rows and columns than its tiles"


def load_rasters(path):
    return checked(path, "the orders of tiles in", "rasters", _raster_problems, f"tools/play raster --json {relative(path)}")


def _timeline_problems(trace):
    events = trace["traceEvents"]
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    for index, event in enumerate(events):
        place = f"traceEvents[{index}]"
        if event["ph"] == "X":
            if event["pid"] not in processes or (event["pid"], event["tid"]) not in threads:
                yield f"{place} belongs to a process or thread without a name"
            if event["name"] not in SPANS:
                yield f"{place}.name is '{event['name']}'; the known ones are {', '.join(SPANS)}"
            # An engine says whose work it is; what a consumer multiplies or stores belongs to a tile.
            needed = ("cta",) if event["pid"] >= SM_PROCESS else ("tile",) if event["name"] in ("multiply", "epilogue", "store") else ()
            for name in needed:
                if name not in event["args"]:
                    yield f"{place}.args lacks '{name}'"
        elif event["name"] == "process_name":
            form = r"SM \d+" if event["pid"] >= SM_PROCESS else r"CTA \d+ on SM \d+"
            if not re.fullmatch(form, event["args"]["name"]):
                yield f"{place}: the process is called '{event['args']['name']}'"
    if not any(pid < SM_PROCESS for pid in processes):
        yield "it has no CTA"
    if not any(event["ph"] == "X" and event["args"]["clocks"] for event in events):
        yield "it has no events that take time"


def load_timeline(path):
    return checked(path, "the timeline", "timeline", _timeline_problems, "tools/run NN --trace FILE")


def _event_problems(events):
    for before, event in zip([None, *events], events):
        if before and event["t"] <= before["t"]:
            yield f"the event {event['t']} comes after the event {before['t']}"
        if event.get("last_t", event["t"]) < event["t"]:
            yield f"the event {event['t']} ends before it begins"
    if not any("barrier" in event for event in events):
        yield "it has no events of mbarriers"


def load_events(path):
    """The events of a log, one a line."""
    again = f"tools/play events 11 --json {relative(path)} writes it anew."
    events = []
    for number, line in enumerate(read_text(path, "the event log").splitlines(), 1):
        try:
            event = schema.parse(line)
        except ValueError as error:
            raise UserError(f"line {number} of the event log {relative(path)} is not JSON: {error}; {again}") from None
        problem = schema.problem(event, "events")
        if problem:
            raise UserError(f"line {number} of the event log {relative(path)} is damaged: {problem}; {again}")
        events.append(event)
    problem = next(_event_problems(events), "")
    if problem:
        raise UserError(f"the event log {relative(path)} is damaged: {problem}; {again}")
    return events
