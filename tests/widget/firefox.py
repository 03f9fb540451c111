"""A Firefox, driven from Python by `firefox.mjs`."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

RUNNER = Path(__file__).parent / "firefox.mjs"

#: How long a tab may take to show what a test waits for.
SECONDS = 30

#: Finds an element of the page or of the chat in it.
FIND = "document.querySelector(it) ?? document.querySelector('chapter-verse')?.shadowRoot.querySelector(it)"

WHERE = f"""it => {{
  const element = {FIND};
  const {{ x, y, width, height }} = element.getBoundingClientRect();
  return {{ x: x + width / 2, y: y + height / 2 }};
}}"""

VISIBLE = f"it => Boolean(({FIND})?.checkVisibility())"


class Firefox:
    """The browser. `call` raises `RuntimeError` with what Firefox or the program in the page said."""

    def __init__(self, node: Path, path: str) -> None:
        self.process = subprocess.Popen(
            [node, RUNNER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def call(self, name: str, **arguments: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"call": name, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("Firefox could not be driven: the lines above say why.")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def open(self, url: str, script: str = "") -> Tab:
        """Open a tab; `script` runs before those of every page in it."""
        tab = Tab(self, self.call("open", script=script))
        tab.goto(url)
        return tab

    def close(self) -> None:
        self.process.communicate(timeout=60)


class Tab:
    def __init__(self, firefox: Firefox, number: int) -> None:
        self.firefox = firefox
        self.number = number

    def _call(self, name: str, **arguments: Any) -> Any:
        return self.firefox.call(name, tab=self.number, **arguments)

    def goto(self, url: str) -> None:
        self._call("goto", url=url)

    def reload(self) -> None:
        self._call("reload")

    def evaluate(self, program: str, argument: object = None) -> Any:
        """Return the result of a JavaScript function for the argument."""
        return self._call("evaluate", program=program, argument=argument)

    def click(self, selector: str) -> None:
        self.wait(selector)
        self._call("click", **self.evaluate(WHERE, selector))

    def type(self, text: str) -> None:
        self._call("type", text=text)

    def press(self, key: str) -> None:
        self._call("press", key=key)

    def wait(self, selector: str) -> None:
        """Wait until an element can be seen."""
        deadline = time.monotonic() + SECONDS
        while not self.evaluate(VISIBLE, selector):
            assert time.monotonic() < deadline, f"no {selector} within {SECONDS} seconds"
            time.sleep(0.05)

    def close(self) -> dict[str, list[str]]:
        """Return the `requests` of this tab, the errors `thrown` in it and its `dialogs`."""
        report: dict[str, list[str]] = self._call("close")
        return report
