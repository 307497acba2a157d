"""Uses the page of `bufferscope serve` in Chromium as a person does: `pagetest.py HOST TOKEN_FILE DIRECTORY PARTS`.

It is a program, because the browser must run on a host of a shell's network. It leaves what it saw in the directory.
"""

import json
import sys
import time
from pathlib import Path

from browsers import ARGUMENTS
from laboratory import program
from playwright.sync_api import Error, Page, ViewportSize, sync_playwright

PORT = 47300
PATIENCE_MS = 150_000
START_S = 30
PHONE: ViewportSize = {"width": 360, "height": 740}
UNLABELLED = """
[...document.querySelectorAll("button, select, input, canvas")]
  .filter((each) => !each.textContent.trim() && !each.getAttribute("aria-label") && !each.labels?.length)
  .map((each) => each.id)
"""
"""The controls without a name for a screen reader."""
DESKTOP: ViewportSize = {"width": 1280, "height": 800}


def disturbances(*files: Path) -> list[str]:
    """The warnings of measurements, by their files of events, that this machine disturbed."""
    ends = [json.loads(file.read_text(encoding="utf-8").splitlines()[-1]) for file in files]
    warnings = [text for end in ends for text in end["verdict"]["warnings"]]
    return [text for text in warnings if text.startswith("This machine was busy")]


def secret(file: Path) -> str:
    """The secret of the token that the server keeps in a file, once it does."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if file.exists() and (text := file.read_text(encoding="utf-8")):
            return text.splitlines()[0].split("-")[0]
        time.sleep(0.1)
    raise SystemExit(f"{file}: no token")


def visit(page: Page, url: str) -> None:
    """Open the page, as soon as the server answers."""
    until = time.monotonic() + START_S
    while True:
        try:
            page.goto(url)
            return
        except Error:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def wide(page: Page) -> int:
    """By how many pixels the page is wider than the screen."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def main(host: str, token_file: Path, directory: Path, parts: list[str]) -> None:
    """Run the test, and save the result, the picture, screenshots and what was shown."""
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=ARGUMENTS)
        context = browser.new_context(viewport=PHONE, color_scheme="light", locale="en-GB", accept_downloads=True)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        visit(page, f"http://{host}:{PORT}/#{secret(token_file)}")
        page.get_by_text("Choose the parts").click()
        for part in {"download", "upload", "both"} - set(parts):
            page.get_by_label(part, exact=True).uncheck()
        page.screenshot(path=directory / "begin-phone-light.png", full_page=True)
        start = page.get_by_role("button", name="Start the test")
        start.focus()
        page.keyboard.press("Enter")
        page.locator("#phases li[aria-current]").filter(has_text=parts[0]).wait_for(timeout=PATIENCE_MS)
        page.wait_for_timeout(3000)
        page.screenshot(path=directory / "running-phone-light.png", full_page=True)
        running = {"status": page.locator("#status").inner_text(), "wide": wide(page)}
        page.locator("#result:visible, #error:visible").first.wait_for(timeout=PATIENCE_MS)
        if failure := page.locator("#error").inner_text():
            raise SystemExit(f"the page shows: {failure}; {errors}")
        focused = page.evaluate("document.activeElement.id")
        for button, name in (("#save", "page.jsonl"), ("#picture", "picture.png")):
            with page.expect_download() as download:
                page.locator(button).click()
            download.value.save_as(directory / name)
        shown = {
            "running": running,
            "focused": focused,
            "grade": page.locator("#grade").inner_text(),
            "sentences": page.locator("#sentences li").all_inner_texts(),
            "means": page.locator("#means li").all_inner_texts(),
            "rows": [row.split("\t") for row in page.locator("#rows tr").all_inner_texts()],
            "unlabelled": page.evaluate(UNLABELLED),
            "wide": {},
        }
        for size, viewport in (("phone", PHONE), ("desktop", DESKTOP)):
            page.set_viewport_size(viewport)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(500)
                page.screenshot(path=directory / f"result-{size}-{scheme}.png", full_page=True)
            shown["wide"][size] = wide(page)
        shown["languages"] = {}
        for language in ("pt", "zh"):
            page.set_viewport_size(PHONE)
            page.locator("#language").select_option(language)
            page.locator(f"html:lang({language})").wait_for()
            page.wait_for_timeout(300)
            page.screenshot(path=directory / f"result-{language}.png", full_page=True)
            shown["languages"][language] = page.locator("#sentences li").all_inner_texts()
            shown["wide"][language] = wide(page)
        shown["errors"] = errors
        (directory / "shown.json").write_text(json.dumps(shown), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4].split(","))
