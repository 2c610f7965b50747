#!/usr/bin/env python3
"""What Lighthouse would say of the site's speed, measured in headless Chromium: python3 tests/tools/site_speed.py [PAGE ...]

Lighthouse itself comes through npm. This does what it does on a telephone with the throttling of the DevTools protocol: slow 4G, a processor
slowed down four times, a screen of 412 pixels, nothing cached, and a server that compresses. The score is computed with Lighthouse's curves
and weights (version 10 and later). The speed index is not measured: the score takes the largest contentful paint in its place.
"""
import functools
import gzip
import http.server
import json
import math
import pathlib
import statistics
import sys
import threading
import time

import chromium

SITE = pathlib.Path(__file__).resolve().parents[2] / "build/site"
PAGES = ("index.html", "docs/start.html", "steps/11_mbarrier_ring/index.html", "docs/lab/stream-k-model.html")
LOADS = 5
# Lighthouse's slow 4G: latency in ms and bytes per second, as it gives them to the DevTools protocol.
NETWORK = {"offline": False, "latency": 150 * 3.75, "downloadThroughput": 1.6 * 1024 * 0.9 * 1024 / 8, "uploadThroughput": 750 * 0.9 * 1024 / 8}
SLOWER = 4
# Weight, the value that scores 0.9, and the value that scores 0.5; times are in ms.
CURVES = {"FCP": (10, 1800, 3000), "speed index": (10, 3387, 5800), "LCP": (25, 2500, 4000), "TBT": (30, 200, 600), "CLS": (25, 0.1, 0.25)}
OBSERVER = """window.seen = {FCP: 0, LCP: 0, CLS: 0, tasks: []};
const watch = (type, act) => new PerformanceObserver(list => list.getEntries().forEach(act)).observe({type, buffered: true});
watch("paint", one => { if (one.name === "first-contentful-paint") seen.FCP = one.startTime; });
watch("largest-contentful-paint", one => { seen.LCP = one.startTime; });
watch("layout-shift", one => { if (!one.hadRecentInput) seen.CLS += one.value; });
watch("longtask", one => seen.tasks.push([one.startTime, one.duration]));"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Compresses what it serves."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        file = pathlib.Path(self.translate_path(self.path))
        if not file.is_file():
            self.send_error(404)
            return
        body = compressed(file)
        self.send_response(200)
        for name, value in (("Content-Type", self.guess_type(file)), ("Content-Encoding", "gzip"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@functools.cache
def compressed(file):
    return gzip.compress(file.read_bytes(), 6)


def score(values):
    """Lighthouse's score, 0 to 100: each value is on a log-normal curve through its two points."""
    total = 0
    for name, (weight, good, median) in CURVES.items():
        value = max(values[name], 1e-9)
        total += weight * (1 - math.erf(0.9061938024368232 * math.log(value / median) / math.log(median / good))) / 2
    return total / sum(weight for weight, _, _ in CURVES.values()) * 100


def load(address):
    """The values of one load, in a browser of its own."""
    browser = chromium.Browser()
    try:
        browser.call("Network.emulateNetworkConditions", **NETWORK)
        browser.call("Emulation.setCPUThrottlingRate", rate=SLOWER)
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=OBSERVER)
        browser.open(address, width=412)
        end = time.monotonic() + 60
        while time.monotonic() < end:  # quiet: for three seconds no long task has ended
            seen = json.loads(browser.value("JSON.stringify({...seen, now: performance.now()})"))
            if seen["FCP"] and seen["now"] - max([seen["FCP"], *(begin + length for begin, length in seen["tasks"])]) > 3000:
                break
            time.sleep(0.5)
        values = {"FCP": seen["FCP"], "LCP": seen["LCP"], "speed index": seen["LCP"], "CLS": seen["CLS"],
                  "TBT": sum(length - max(50, seen["FCP"] - begin + 50) for begin, length in seen["tasks"] if begin + length > seen["FCP"] + 50)}
        return values
    finally:
        browser.close()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"medians of {LOADS} loads; FCP, LCP and TBT in ms")
    for page in sys.argv[1:] or PAGES:
        loads = [load(f"http://127.0.0.1:{server.server_port}/{page}") for _ in range(LOADS)]
        values = {name: statistics.median(one[name] for one in loads) for name in CURVES}
        scores = sorted(score(one) for one in loads)
        print(f"{page:45} FCP {values['FCP']:5.0f}  LCP {values['LCP']:5.0f}  TBT {values['TBT']:5.0f}  CLS {values['CLS']:.3f}  "
              f"score {score(values):3.0f} (loads: {scores[0]:.0f} to {scores[-1]:.0f})", flush=True)


if __name__ == "__main__":
    main()
