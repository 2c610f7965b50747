"""One file of HTML about a report of the emulator: tools/run NN --html FILE, tools/emulate FILE.cu --html FILE.

Usage: python3 tools/lib/report_page.py DATA PAGE [NAME=PATH]...

DATA is what the program writes with --html-data (common/harness/cli/page_data.h). NAME=PATH says where the source is that reports call
NAME; what else they name is looked for in the repository and beside these. The page needs no other file and no net; where JavaScript
runs, its timeline is the one of the site's figures.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/lib"), str(ROOT / "tools/figures")]
import program  # first, for Ctrl-C
import base64
import html
import json
import re

from program import UserError

SETTINGS = ROOT / "tools/site_pages"
AROUND = 6        # lines of the source before and behind those that are named
EVENTS = 250      # rows of the table
PLACE = re.compile(r"([^\s:()]+\.[^\s:()]+):(\d+)")
WORDS = {"phase": "the phase is complete", "complete_tx": "bytes have come"}
STYLE = (SETTINGS / "report.css").read_text(encoding="utf-8")
SCRIPT = (SETTINGS / "report.js").read_text(encoding="utf-8")


def escaped(text):
    return html.escape(str(text), quote=True)


class Sources:
    """The lines that a report names, with some around each."""

    def __init__(self, places, given):
        self.given = dict(given)
        self.roles = {}  # file -> line -> [(role, is it inside a call)]
        self.files = []
        for place in places:
            for inner, one in [(False, place), *((True, other) for other in place.get("inside", []))]:
                if one["file"] not in self.files:
                    self.files.append(one["file"])
                self.roles.setdefault(one["file"], {}).setdefault(one["line"], []).append((place["role"], inner))

    def text(self, file):
        """The lines of a file, or None."""
        folders = [ROOT, *(pathlib.Path(path).parent for path in self.given.values())]
        for path in [pathlib.Path(self.given[file])] if file in self.given else [folder / file for folder in folders]:
            if path.is_file():
                return path.read_text(encoding="utf-8", errors="replace").split("\n")
        return None

    def anchor(self, file, line):
        return f"f{self.files.index(file)}-{line}" if file in self.files and line in self.roles[file] else None

    def linked(self, text):
        """Escaped text whose places lead to their lines."""
        parts, end = [], 0
        for found in PLACE.finditer(text):
            if anchor := self.anchor(found[1], int(found[2])):
                parts += [escaped(text[end:found.start()]), f'<a href="#{anchor}">{escaped(found[0])}</a>']
                end = found.end()
        return "".join([*parts, escaped(text[end:])])

    def excerpts(self):
        return "".join(self.excerpt(file, roles) for file, roles in ((file, self.roles[file]) for file in self.files))

    def excerpt(self, file, roles):
        lines = self.text(file)
        if lines is None:
            return f"<h3>{escaped(file)}</h3><p>This file is not here, so its lines cannot be shown.</p>"
        shown = sorted({number for line in roles for number in range(line - AROUND, line + AROUND + 1) if 0 < number <= len(lines)})
        parts, before = [], None
        for number in shown:
            if before is not None and number != before + 1:
                parts.append('<div class="line"><span>⋯</span></div>')
            before = number
            said = list(dict.fromkeys(roles.get(number, [])))
            names = ", ".join(f"{role}, inside the call" if inner else role for role, inner in said)
            kind = f' class="line named{" inner" if all(inner for _, inner in said) else ""}" id="{self.anchor(file, number)}"' if said else ' class="line"'
            parts.append(f"<div{kind}><span>{number}</span>{escaped(lines[number - 1])}{f' <b>{escaped(names)}</b>' if said else ''}</div>")
        return f'<h3>{escaped(file)}</h3><div class="box" tabindex="0" role="region" aria-label="Lines of {escaped(file)}">{"".join(parts)}</div>'


def condensed(text):
    """The events of a log; threads that pass a wait at one place for one phase are one."""
    events, waits = [], {}
    for line in text.splitlines():
        event = json.loads(line)
        if "wait" in event["event"] and "phase" in event:
            key = tuple(event.get(name) for name in ("cta", "event", "barrier", "phase", "where"))
            if key in waits:
                waits[key]["threads"] += event.get("threads", 1)
                continue
            waits[key] = event
        event.setdefault("threads", 1)
        if "barrier" in event:
            event["barrier"] = re.sub(r"^mbarrier (\S+\[\d+\]|\S+) \(.*", r"\1", event["barrier"]).removeprefix("mbarrier ")
        events.append(event)
    return events


def table_of(data, sources):
    events = condensed(data["events"])
    if not events:
        return "<p>The kernel used no mbarrier, no copy of TMA and no wgmma, and these are the events that the emulator logs.</p>"
    left_out = max(0, len(events) - EVENTS)
    several = len({event["cta"] for event in events}) > 1
    heads = ["", *(["CTA"] if several else []), "who", "event", "barrier", "phase", "arrivals missing", "bytes missing", "where"]
    rows = []
    for event in events[left_out:]:
        who = "an engine"
        if event["threads"] > 1:
            who = f"{event['threads']} threads"
        elif "thread" in event:
            who = f"thread {event['thread']} (warp {event['warp']})"
        named = (found := PLACE.match(event["where"])) and sources.anchor(found[1], int(found[2]))
        cells = [("number", event["t"]), *([("", event["cta"])] if several else []), ("", who), ("", WORDS.get(event["event"], event["event"])),
                 ("", event.get("barrier", "")), ("number", event.get("phase", "")), ("number", event.get("pending", "")), ("number", event.get("tx", ""))]
        rows.append(f'<tr{" class=named" if named else ""} data-barrier="{escaped(event.get("barrier", ""))}">'
                    + "".join(f'<td{f" class={kind}" if kind else ""}>{escaped(cell)}</td>' for kind, cell in cells)
                    + f"<td>{sources.linked(event['where'])}</td></tr>")
    rows.append(f'<tr class="end"><td></td><td colspan="{len(heads) - 1}">Here the run ended: {escaped(data["report"]["rule"])}</td></tr>')
    before = f" {left_out + data['earlier']:,} earlier rows are left out." if left_out + data["earlier"] else ""
    return (f"<p>Threads that pass a wait at one place are one row. Phase and missing arrivals are those after the event.{before} Rows at a line that the report "
            f'names are marked.</p><div class="box events" tabindex="0" role="region" aria-label="Observed order of events"><table><thead><tr>'
            + "".join(f'<th scope="col">{head}</th>' for head in heads) + f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>")


def timeline_of(data):
    """(the figure with its still picture, the script of its data)."""
    import draw_trace
    raw = json.loads(data["timeline"])
    raw["otherData"] = {"stages": 1, "clock_mhz": 1980, "backend": "model", "sms": 1, **raw["otherData"]}
    trace = draw_trace.with_end(raw)
    rows = [row for row in draw_trace.rows(trace) if row[1]]  # SMs without a CTA have none
    end = trace["end"]
    title = "The roles up to where the run was ended"
    drawing = draw_trace.Drawing(draw_trace.LEFT + draw_trace.WIDTH + 24, 0, title, "A bar is what a role did, a pale one a wait.")
    draw_trace.legend(drawing, [trace], 24)
    top = 40
    for row in rows:
        top += draw_trace.draw_row(drawing, trace, row, top, draw_trace.WIDTH / end)
    for clocks in range(0, end + 1, max(1, round(end / 8 / 10 ** (len(str(end // 8)) - 1)) * 10 ** (len(str(end // 8)) - 1))):
        drawing.text(draw_trace.LEFT + draw_trace.WIDTH * clocks / end, top + 14, f"{clocks:,}", size=10, fill=draw_trace.SOFT, anchor="middle")
    drawing.height = top + 30
    picture = base64.b64encode(drawing.svg().encode()).decode()
    head = [f"{end:,} clocks until the run was ended", ""]
    shown = draw_trace.compact(trace, rows, draw_trace.tracks(trace), head) | {"title": "The run"}
    living = {"title": title, "sentence": "The last clocks before the end are shown first; Whole shows all of them.", "clock": end - 1,
              "from": max(0, end - max(3000, end // 3)), "traces": [shown],
              "source": "Times are those of a model and not measured. Which waits had passed is what the emulator observed."}
    figure = (f'<figure data-figure="timeline" data-name="report"><img alt="Timeline: what each role did until the run was ended" '
              f'src="data:image/svg+xml;base64,{picture}"></figure>')
    return figure, f"figures.data.report = {json.dumps(living)};"


def in_script(text):
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


def page(data, given):
    report = data["report"]
    sources = Sources(report["places"], given)
    facts = "".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in data["about"].items() if value)
    repeat = f"<p>To repeat it: <code>{escaped(' '.join(report['repeat']))}</code></p>" if "repeat" in report else ""
    if "without_that_rule" in report:
        repeat += f'<p>Without that rule, another one is broken:</p><pre class="box" tabindex="0">{escaped(report["without_that_rule"])}</pre>'
    others = ""
    if data["recorded"] != report["rule"] and report["rule"] != "wrong-result":
        others = (f"<p>The events and the timeline are those of a second run, which ended otherwise ({escaped(data['recorded'] or 'no rule was broken')}): "
                  "the order of CTAs was another one.</p>")
    styles, scripts, figure = [STYLE], [], "<p>No role of this run did anything that a timeline shows: waits at barriers, copies, multiplications.</p>"
    if "timeline" in data:
        figure, content = timeline_of(data)
        styles.append((SETTINGS / "figures/figure.css").read_text(encoding="utf-8"))
        read = {name: (SETTINGS / f"figures/{name}.js").read_text(encoding="utf-8") for name in ("figure", "timeline")}
        scripts = [read["figure"], read["timeline"], content]
    sections = [("report", "Report", f'<pre class="box" tabindex="0">{sources.linked(report["text"])}</pre>{repeat}'),
                ("source", "Lines in the source", sources.excerpts() or "<p>The report names no line.</p>"),
                ("timeline", "Timeline up to the end", figure), ("events", "Observed order of events", others + table_of(data, sources))]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    text = "".join(f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{content}</section>' for name, title, content in sections)
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{escaped(report["rule"])}: {escaped(report["summary"])}</title><link rel="icon" href="data:,"><style>{"".join(styles)}</style></head>\n<body class="md-typeset">'
            f'<header><h1>{escaped(report["rule"])}</h1><p class="summary">{escaped(report["summary"])}</p><p class="facts">{facts}</p></header>'
            f'<nav aria-label="Parts of this page">{links}</nav><main>{text}</main>\n'
            + "".join(f"<script>{in_script(one)}</script>\n" for one in (*scripts, SCRIPT)) + "</body></html>\n")


def main():
    data, target = map(pathlib.Path, sys.argv[1:3])
    given = [one.split("=", 1) for one in sys.argv[3:]]
    text = page(json.loads(data.read_text(encoding="utf-8")), given)
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"'{target}' cannot be written: {error.strerror}.") from None
    print(f"{target} shows the report; open it in a browser.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(program.run("report_page", main))
