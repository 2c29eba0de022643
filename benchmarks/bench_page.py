"""The page with a long session: how soon it is painted, what it costs, whether it keeps up. In Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.table import Row, figure, main
from tests.page.chromium import Chromium, Watched, chromium, serving
from tests.page.test_renderer import conversation

PAINTED = """async (text) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  await frame();
  const begun = performance.now();
  const events = JSON.parse(text);
  const parsed = performance.now();
  globalThis.shown = fresh();
  shown.replayEvents(events);
  const drawn = performance.now();
  await frame();
  return { parse: parsed - begun, draw: drawn - parsed, paint: performance.now() - begun, nodes: document.querySelectorAll("*").length };
}"""
LIVE = """async ([seconds, rate]) => {
  const from = shown.lastSeq, every = 50; let seq = from, longest = 0, last = performance.now();
  const turn = { turnId: "live", responseId: "live", blockIndex: 0 };
  shown.handleNewEvent({ seq: ++seq, type: "turn_start", turnId: "live", payload: { trigger: "user" } });
  let watching = true;
  const watch = (now) => { longest = Math.max(longest, now - last); last = now; if (watching) requestAnimationFrame(watch); };
  requestAnimationFrame(watch);
  const begun = performance.now();
  while (performance.now() - begun < seconds * 1000) {
    const due = from + 1 + Math.floor(((performance.now() - begun) * rate) / 1000);
    while (seq < due) {
      const payload = { text: seq % 40 ? `word ${seq} ` : "\\n\\n" };
      shown.handleNewEvent({ seq: ++seq, type: "assistant_chunk", ...turn, payload });
    }
    await new Promise((done) => setTimeout(done, 1000 / every));
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  watching = false;
  return { events: seq - from, seconds: (performance.now() - begun) / 1000, longest };
}"""
SCROLL = """async () => {
  const times = []; let last = performance.now(); shown.following = false;
  for (let step = 0; step < 120; step += 1) {
    shown.scroller.scrollTop -= 400;
    await new Promise((done) => requestAnimationFrame((now) => { times.push(now - last); last = now; done(); }));
  }
  times.sort((a, b) => a - b);
  return { median: times[60], slowest: times[times.length - 1] };
}"""


def heap(page: Watched) -> float:
    """What the page's objects take after a collection, in MB."""

    def measure(one: Any) -> float:
        session = one.context.new_cdp_session(one)
        session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"] / 1e6

    return page.do(measure)


def measured(browser: Chromium, url: str, text: str, seconds: float) -> dict[str, float]:
    """One page with a long session, from nothing to live."""
    page = browser.open(f"{url}/tests/harness.html")
    page.do(lambda one: one.wait_for_function("globalThis.ready"))
    painted = page.run(PAINTED, text)
    held = heap(page)
    scrolled = page.run(SCROLL)
    page.run("() => shown.toEnd()")
    live = page.run(LIVE, [seconds, 1000])
    if page.complaints:
        raise SystemExit(f"the page complains: {page.complaints}")
    page.close()
    return {
        "first paint, ms": painted["paint"],
        "of it JSON.parse, ms": painted["parse"],
        "of it fold and draw, ms": painted["draw"],
        "elements, ": painted["nodes"],
        "heap, MB": held,
        "a frame of scrolling, ms": scrolled["median"],
        "slowest frame of scrolling, ms": scrolled["slowest"],
        "events a second live, ": live["events"] / live["seconds"],
        "longest frame live, ms": live["longest"],
    }


def rows(short: bool) -> Iterable[Row]:
    """Some pages, one after the other; none without a browser."""
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine")
    events, seconds, rounds = (400, 0.2, 1) if short else (100_000, 5.0, 5)
    text = json.dumps(conversation(events // 8)[:events])
    browser = Chromium(path)
    with serving() as url:
        found = [measured(browser, url, text, seconds) for _ in range(rounds)]
    browser.close()
    for name in found[0]:
        what, _, unit = name.rpartition(", ")
        yield figure(f"a page of {events:,} events: {what}", [one[name] for one in found], unit)


if __name__ == "__main__":
    main(rows)
