"""A timeline in few bytes, for the site's figure that moves (tools/site_pages/figures/timeline.js reads it).

A row of the figure is one string. Its words are:
  #3                from here on the spans are those of CTA 3
  e23, m40+768      a span: its letter, the clocks since the end of the one before (where there are any), and how long it is
  @0, @0.3, @0.3.1  after a span: its tile; tile and k-tile; tile, k-tile and stage. Without it they follow from the span of the same
                    letter before: the same tile, and the next k-tile in the next stage.
  ~32768            after a span: the bytes of a copy or store, where they are not those of the one before
"""
LETTERS = {"issue": "i", "multiply": "m", "epilogue": "p", "store": "s", "wait full": "f", "wait empty": "e", "wait order": "o",
           "wait store": "w", "wait source": "c", "pass partials": "x", "copy": "y"}
DRAIN = "d"  # a multiply that waits for what is still in flight


def _place(event):
    """(tile, k-tile, stage) of an event, as many as are known."""
    known = [event["args"].get(name) for name in ("tile", "k_tile", "stage")]
    return tuple(known[:known.index(None)] if None in known else known)


def _next(place, stages):
    """What follows a place where nothing is said."""
    if len(place) < 2:
        return place
    return (place[0], place[1] + 1, *((stage + 1) % stages for stage in place[2:]))


def _words(events, stages, ctas):
    """The words of a row; ctas: (the CTA of an event)."""
    end, cta, size, last = 0, None, None, {}
    for event in sorted(events, key=lambda event: event["args"]["clock"]):
        begin, clocks = event["args"]["clock"], event["args"]["clocks"]
        if ctas(event) != cta:
            cta = ctas(event)
            yield f"#{cta}"
        letter = DRAIN if event["args"].get("drain") else LETTERS[event["name"]]
        word = letter + (f"{begin - end}+" if begin != end else "") + str(clocks)
        place = _place(event)
        if place != _next(last.get(letter, ()), stages):
            word += "@" + ".".join(map(str, place))
        last[letter] = place
        if "bytes" in event["args"] and event["args"]["bytes"] != size:
            size = event["args"]["bytes"]
            word += f"~{size}"
        yield word
        end = begin + clocks


def _say_k_tiles(all_tracks):
    """Gives what engines do the k-tile of the role that asked for it, where each has as many: both come in the order of the k-tiles."""
    asked, done = {}, {}
    for (process, thread), events in all_tracks.items():
        for event in events:
            if process.startswith("CTA"):
                cta = int(process.split()[1])
                if event["name"] == "issue":
                    asked.setdefault((cta, "copy"), []).append(event)
                elif event["name"] == "multiply" and not event["args"].get("drain"):
                    asked.setdefault((cta, thread.split(",")[0]), []).append(event)
            elif event["name"] == "copy":
                done.setdefault((event["args"]["cta"], "copy"), []).append(event)
            elif event["name"] == "multiply":
                done.setdefault((event["args"]["cta"], f"consumer {event['args'].get('consumer')}"), []).append(event)
    for key, events in done.items():
        if len(events) == len(asked.get(key, ())):
            for event, ask in zip(sorted(events, key=lambda one: one["args"]["clock"]), sorted(asked[key], key=lambda one: one["args"]["clock"])):
                event["args"].update({name: ask["args"][name] for name in ("tile", "k_tile", "stage") if name in ask["args"]})


def compact(trace, rows, tracks, head):
    """A trace as its figure shows it. `rows` and `tracks` are those of draw_trace.py; `head` is (what is left, what is right) above it."""
    _say_k_tiles(tracks)
    owner = {id(event): int(process.split()[1]) for (process, _), events in tracks.items() if process.startswith("CTA") for event in events}
    about, shown, texts = trace["about"], [], {}
    for name, events, kind in rows:
        # Thin bars below the multiplications of an SM are what its roles do; they have rows of their own or are those of other SMs.
        events = [event for event in events if kind != "tensor cores" or id(event) not in owner]
        text = " ".join(_words(events, about["stages"], lambda event: owner.get(id(event), event["args"].get("cta"))))
        # Rows that are like an earlier one say which.
        shown.append({"name": name, "kind": kind, "spans": texts.setdefault(text, len(shown)) if text in texts else text})
        texts.setdefault(text, len(shown) - 1)
    return {"head": head, "stages": about["stages"], "clock_mhz": round(about["clock_mhz"]), "end": trace["end"], "rows": shown}
