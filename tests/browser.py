"""A headless Chromium, driven through its own debugging protocol: just enough to test a page."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

from websocket import WebSocket, create_connection

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0


def find_browser() -> str | None:
    """Return the path of a Chromium, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A tab: load, look, click, and what it complained about or asked the network for."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket, self.number = socket, 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; keep what happens meanwhile."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._notice(message.get("method"), message.get("params", {}))

    def _notice(self, event: str | None, details: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(str(details["exceptionDetails"]))
        elif event == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(details["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and details["type"] == "error":
            self.complaints.append(str(details["args"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    def run(self, script: str) -> Any:
        """Evaluate JavaScript and return its value."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Evaluate JavaScript until it is true."""
        deadline = time.monotonic() + PATIENCE
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{script} stayed {value!r}; complaints: {self.complaints}")
            time.sleep(0.05)
        return value

    def load(self, path: Path, *, width: int, height: int = 900) -> None:
        """Open a file in a window of some size, and wait until it is loaded."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait_for(
            f"location.href === {json.dumps(path.resolve().as_uri())} && document.readyState === 'complete'"
        )

    def click(self, x: float, y: float) -> None:
        """Press and release the mouse."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)


class Browser:
    """Chromium with a profile of its own, closed at the end."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-allow-origins=*",
                "--remote-debugging-port=0",
                f"--user-data-dir={self.profile.name}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.profile.cleanup()

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        told = Path(self.profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE
        while not (told.exists() and len(told.read_text().splitlines()) == 2):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise TimeoutError("the browser did not start")
            time.sleep(0.05)
        return int(told.read_text().splitlines()[0])

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Open a tab."""
        request = Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urlopen(request, timeout=PATIENCE) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        socket = create_connection(address, timeout=PATIENCE)
        try:
            yield Page(socket)
        finally:
            socket.close()
