"""The page with a long session: how soon it is painted, what it costs, whether it keeps up. `make bench`; needs Chromium."""

from __future__ import annotations

import argparse
import json
from typing import Any

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
  const from = shown.state.lastSeq, every = 50; let seq = from, longest = 0, last = performance.now();
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


def main() -> None:
    """Measure, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=100_000)
    wanted = arguments.parse_args().events
    path = chromium()
    if path is None:
        print("no Chromium on this machine")
        return
    text = json.dumps(conversation(wanted // 8)[:wanted])
    browser = Chromium(path)
    with serving() as url:
        page = browser.open(f"{url}/tests/harness.html")
        page.do(lambda one: one.wait_for_function("globalThis.ready"))
        painted = page.run(PAINTED, text)
        print(f"events                {wanted:,} ({len(text) / 1e6:.0f} MB of JSON)")
        print(f"first paint           {painted['paint']:.0f} ms (parse {painted['parse']:.0f}, fold and draw {painted['draw']:.0f})")
        print(f"elements in the page  {painted['nodes']:,}")
        print(f"heap                  {heap(page):.0f} MB")
        scrolled = page.run(SCROLL)
        print(f"a frame of scrolling  {scrolled['median']:.1f} ms, slowest {scrolled['slowest']:.1f} ms")
        page.run("() => shown.toEnd()")
        live = page.run(LIVE, [5, 1000])
        print(f"live                  {live['events'] / live['seconds']:,.0f} events/s, longest frame {live['longest']:.0f} ms")
        print(f"complaints            {page.complaints}")
        page.close()
    browser.close()


if __name__ == "__main__":
    main()
