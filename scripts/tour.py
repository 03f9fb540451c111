"""Takes the pictures of the docs' tour:  tour.py  builds the example site and uses its chat as a reader does.

The pictures stand in `site_example/docs/images/tour`. Those who ask for the report are made up.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import demo
from playwright.sync_api import Page, sync_playwright

FOLDER = demo.SITE / "docs" / "images" / "tour"
#: Bytes of a picture at most.
MOST = 60_000
PORT = 8799

QUESTION = "How do I add the chat to a site that I already have?"
REFUSED = "Can I use it with Azure Functions?"
#: What a month of readers asks, and on how many days.
MONTH = {
    QUESTION: 6,
    REFUSED: 5,
    "azure functions instead of lambda": 3,
    "which generators are supported": 4,
    "how do i change the color of the button": 3,
    "what does it cost on aws": 5,
    "can answers be wrong": 3,
    "how do i write a starter question": 2,
    "export the conversations to zendesk": 4,
    "send a question to zendesk": 2,
    "how do i keep a page out of the index": 4,
    "rate limit per reader": 3,
    "does it set a cookie": 4,
    "how to use openai for the answers": 5,
}

#: Chromium's own encoder, at the best quality that fits: a picture of text is half as large as a PNG.
ENCODE = """async ([png, most]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
  canvas.getContext('2d').drawImage(image, 0, 0);
  const qualities = [0.9, 0.8, 0.7, 0.6, 0.5].map(quality => canvas.toDataURL('image/webp', quality).split(',')[1]);
  return qualities.find(text => text.length * 0.75 <= most);
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = Path(folder)
        variables = {**demo.variables(), "CHAPTERVERSE_STORE": f"edge:{run}/index"}
        variables |= {"CHAPTERVERSE_LOG_QUESTIONS": "1", "CHAPTERVERSE_RATES": "off"}
        demo.build(variables, run / "site")
        program = os.environ.get("CHAPTERVERSE_CHROMIUM")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1240, "height": 640}, reduced_motion="reduce").new_page()
        with _serve(run, variables) as address:
            FOLDER.mkdir(parents=True, exist_ok=True)
            _picture_the_chat(page, address)
            _ask_for_a_month(address)
        _write_report(run, variables)
        page.set_viewport_size({"width": 1240, "height": 1100})
        page.goto((run / "report.html").as_uri())
        _keep(page, "report")
        browser.close()


@contextmanager
def _serve(run: Path, variables: dict[str, str]) -> Iterator[str]:
    """Serve the site, and keep the log of the service."""
    command: list[str | Path] = [demo.PROGRAM, "serve", "--site-dir", run / "site", "--port", str(PORT)]
    with (run / "log").open("wb") as log, subprocess.Popen(command, env=variables, stderr=log) as server:
        try:
            demo.wait_until_ready(server, PORT)
            yield f"http://{demo.HOST}:{PORT}"
        finally:
            server.terminate()


def _picture_the_chat(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Ask the docs").click()
    page.locator(".thread .chip").first.wait_for()
    _keep(page, "empty")
    _ask(page, QUESTION)
    _keep(page, "answer")
    page.locator(".turn .crumb").first.click()
    page.wait_for_url("**/getting-started/#add")
    # It makes room for the passage by itself.
    page.locator("dialog.side").wait_for()
    page.wait_for_timeout(500)
    _keep(page, "passage")
    page.get_by_role("button", name="New chat").click()
    _ask(page, REFUSED)
    _keep(page, "refusal")


def _ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Ask a question").fill(question)
    page.keyboard.press("Enter")
    page.locator(".copy_answer").last.wait_for()
    page.wait_for_timeout(500)


def _keep(page: Page, name: str) -> None:
    """Write what the page looks like as `NAME.webp`."""
    blank = page.context.new_page()
    picture = blank.evaluate(ENCODE, [base64.b64encode(page.screenshot()).decode(), MOST])
    blank.close()
    if picture is None:
        sys.exit(f"{name}.webp has more than {MOST} bytes: picture less of the page.")
    (FOLDER / f"{name}.webp").write_bytes(base64.b64decode(picture))
    print(f"Wrote {name}.webp")


def _ask_for_a_month(address: str) -> None:
    for number, (question, days) in enumerate(MONTH.items()):
        for day in range(days):
            body = json.dumps({"query": question, "thread_id": f"reader-{number}-{day}-of-the-tour"}).encode()
            headers = {"content-type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(f"{address}/v1/chat", body, headers)).read()


def _write_report(run: Path, variables: dict[str, str]) -> None:
    """Report the conversations as those of a month."""
    days: dict[str, int] = {}
    lines = []
    # As the published site would log it.
    log = (run / "log").read_text("utf-8").replace(f"http://{demo.HOST}:{PORT}/", "https://docs.chapterverse.example/")
    for line in log.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if (thread := str(event.get("thread_id"))).endswith("-of-the-tour"):
            day = days.setdefault(thread, len(days) * 11 % 28 + 1)
            lines.append(json.dumps({**event, "time": f"2026-10-{day:02}{event['time'][10:]}"}))
    (run / "month.log").write_text("\n".join(lines), "utf-8")
    command: list[str | Path] = [demo.PROGRAM, "report", "--log", run / "month.log", "--html", run / "report.html"]
    subprocess.run(command, env=variables, check=True)


if __name__ == "__main__":
    main()
