"""Headless Chromium, driven over a pipe with the DevTools protocol."""
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Browser:
    """One page, and what its console has said."""

    def __init__(self):
        from_browser, to_us = os.pipe()
        from_us, to_browser = os.pipe()
        self.profile = tempfile.TemporaryDirectory(prefix="gemm-steps-test.", ignore_cleanup_errors=True)

        def connect():  # Chromium reads file 3 and writes file 4
            first, second = os.dup(from_us), os.dup(to_us)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen([PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                                         "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                                         f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
                                        close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.reader, self.writer = os.fdopen(from_browser, "rb", buffering=0), os.fdopen(to_browser, "wb", buffering=0)
        self.number, self.session, self.buffer, self.said, self.loaded = 0, None, b"", [], False
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.writer.close()
        self.process.kill()
        self.process.wait()
        self.reader.close()
        self.profile.cleanup()

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.reader.fileno(), 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        method, details = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.said.append(details["exceptionDetails"]["exception"].get("description", "an exception"))
        elif method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.said.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and details["type"] == "error":
            self.said.append(str([one.get("value") or one.get("description") for one in details["args"]]))
        elif method == "Network.requestWillBeSent" and not details["request"]["url"].startswith(("file:", "http://127.0.0.1", "data:", "about:", "blob:")):
            self.said.append(f"asks the net for {details['request']['url']}")
        return message

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        self.writer.write(json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, address, width=1440):
        """Loads a page. `said` is then what its console said of errors."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.said, self.loaded = [], False
        new = "loaderId" in self.call("Page.navigate", url=address)  # another anchor of the same page loads nothing
        while new and not self.loaded:
            self.receive()

    def value(self, expression):
        """What a JavaScript expression is in the page; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description"))
        return done["result"].get("value")

    def press(self, key, shift=False):
        """Presses a key where the focus is."""
        text = key if len(key) == 1 else ""
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9}.get(key, ord(key.upper()[0]))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0, **({"text": text} if text and kind == "keyDown" else {}))

    def click(self, element):
        """Clicks at the middle of what a JavaScript expression is, with the mouse."""
        x, y = self.value(f"(() => {{ const one = {element}; one.scrollIntoView({{block: 'center'}}); const area = one.getBoundingClientRect(); "
                          "return [area.x + area.width / 2, area.y + area.height / 2]; })()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left", clickCount=0 if kind == "mouseMoved" else 1)

    def wait_for(self, expression, seconds=20):
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.value(expression)) and time.monotonic() < end:
            time.sleep(0.05)
        return value
