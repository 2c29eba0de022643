"""The animation of README.md, made from the demo: ``python tools/capture.py``. Needs Playwright, a Chromium and ffmpeg."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.screenshots import HERE, chromium, demo, visit  # noqa: E402

MOST = 500_000
"""Bytes of the animation."""
SIZE = {"width": 1080, "height": 680}
SHRINK = "scale=900:-1:flags=lanczos"
COLOURS = 64


class Camera:
    """Pictures of a page, each with the seconds for which it is shown."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.shots: list[tuple[Path, float]] = []

    def shoot(self, seconds: float) -> None:
        """One picture."""
        path = self.folder / f"{len(self.shots):04}.png"
        self.page.screenshot(path=path)
        self.shots.append((path, seconds))

    def film(self, pictures: int, seconds: float = 0.12) -> None:
        """What happens by itself, for a while."""
        for _ in range(pictures):
            self.page.wait_for_timeout(seconds * 1000)
            self.shoot(seconds)

    def type(self, text: str) -> None:
        """A message, letter by letter."""
        self.page.focus("textarea.message")
        for letter in text:
            self.page.keyboard.type(letter)
            self.shoot(0.12)

    def develop(self, target: Path) -> None:
        """All of them as one GIF: one palette for all, and of each picture only what is new."""
        listed = "".join(f"file '{path}'\nduration {seconds}\n" for path, seconds in [*self.shots, (self.shots[-1][0], 0.1)])
        (self.folder / "shots").write_text(listed)
        filters = f"{SHRINK},split[a][b];[a]palettegen=max_colors={COLOURS}:stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
        command = ["ffmpeg", "-loglevel", "error", "-y", "-f", "concat", "-safe", "0", "-i", str(self.folder / "shots")]
        subprocess.run([*command, "-filter_complex", filters, "-fps_mode", "vfr", "-loop", "0", str(target)], check=True)


def play(page: Page, camera: Camera) -> None:
    """Say something, be asked, allow it, see what was done, and look at the bytes."""
    camera.shoot(1.2)
    camera.type("edit answer.py")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card .diff-row")
    camera.film(3)
    camera.shoot(2.2)
    page.click(".card .choice >> nth=0")
    page.wait_for_selector(".card", state="hidden")
    camera.film(8)
    page.wait_for_selector("text=Now it is 42.")
    camera.shoot(1.2)
    page.locator(".tool-call summary").last.click()
    camera.film(3)
    camera.shoot(1.5)
    page.click("header [aria-label=Inspector]")
    page.wait_for_selector(".inspector-row")
    camera.film(2)
    page.hover(".inspector-row >> nth=0")
    page.mouse.wheel(0, 100_000)
    page.locator(".inspector-row:has-text('permission_response')").last.click()
    camera.film(3)
    camera.shoot(3.5)


def main() -> None:
    """The animation."""
    target = HERE / "demo.gif"
    with demo() as link, sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = visit(browser, link, SIZE)
        page.wait_for_selector(".send:has-text('Send')")
        page.wait_for_timeout(500)
        camera = Camera(page, Path(folder))
        play(page, camera)
        camera.develop(target)
        browser.close()
    size = target.stat().st_size
    print(f"{target.relative_to(HERE.parents[1])}: {size:,} bytes, {len(camera.shots)} pictures")
    if size > MOST:
        raise SystemExit(f"{target.name} has more than {MOST:,} bytes")


if __name__ == "__main__":
    main()
