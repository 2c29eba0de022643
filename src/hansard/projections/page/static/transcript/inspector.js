/** The workbench: the wire frame an event came from and what it became, its bytes, and a list of every event there is, drawn or not. */

import { json } from "./blocks.js";
import { copyCode } from "./event_menu.js";
import { h, place, visible } from "./dom.js";
import { asText, between, clock, count, duration, line, plural, size } from "./format.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Hooks} Hooks */

/** The height of a row, in pixels; inspector.css says the same. */
const ROW = 24;
/** Rows beyond the edge of the list. */
const SPARE = 12;

export class Inspector {
  /**
   * @param {HTMLElement} container
   * @param {import("./transcript.js").Transcript} transcript
   * @param {Hooks} [hooks]
   */
  constructor(container, transcript, hooks = transcript.hooks) {
    this.transcript = transcript;
    this.hooks = hooks;
    this.seq = 0;
    /** @type {string | null} */
    this.type = null;
    /** @type {Event[]} */
    this.rows = [];
    this.counted = 0;
    this.detail = h("section", { class: "inspector-event", "aria-label": "Selected event" });
    this.filter = h("select", { class: "inspector-filter", "aria-label": "Show events of one type", onchange: () => this.filtered() });
    this.total = h("span", { class: "inspector-total" });
    this.spacer = h("div", { class: "inspector-rows" });
    this.list = h("div", { class: "inspector-list", tabindex: "0", role: "listbox", "aria-label": "Events", onscroll: () => this.draw(), onclick: (/** @type {MouseEvent} */ click) => this.clicked(click), onkeydown: (/** @type {KeyboardEvent} */ key) => this.key(key) }, this.spacer);
    this.element = h("div", { class: "inspector" }, this.detail, h("div", { class: "inspector-head" }, this.filter, this.total), this.list);
    this.detail.addEventListener("click", (click) => copyCode(click, (words) => transcript.announce(words)));
    container.append(this.element);
    this.unsubscribe = transcript.subscribe(() => this.update());
    new ResizeObserver(() => this.draw()).observe(this.list);
    this.select(0);
    this.update();
  }

  /** No more of it. */
  close() {
    this.unsubscribe();
    this.element.remove();
  }

  /** New events, or another session. */
  update() {
    const { events } = this.transcript;
    if (events.length < this.counted) this.select(0);
    this.counted = events.length;
    this.rows = this.type === null ? events : events.filter((event) => event.type === this.type);
    this.total.textContent = plural(this.rows.length, "event");
    if (this.element.isConnected && this.element.offsetParent !== null) this.types();
    this.draw();
  }

  /** What there is to choose from. */
  types() {
    const found = [...this.transcript.types()].sort(([one], [other]) => (one < other ? -1 : 1));
    const options = [["", "every type"], ...found.map(([type, number]) => [type, `${type} (${count(number)})`])];
    const known = [...this.filter.options].map((option) => option.text).join("\n");
    if (known === options.map(([, words]) => words).join("\n") || document.activeElement === this.filter) return;
    this.filter.replaceChildren(...options.map(([value, words]) => h("option", { value, selected: value === (this.type ?? "") }, words)));
  }

  filtered() {
    this.type = this.filter.value || null;
    this.list.scrollTop = 0;
    this.update();
  }

  /** The rows that can be seen, and no others. */
  draw() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + SPARE);
    this.spacer.style.height = `${this.rows.length * ROW}px`;
    place(
      this.spacer,
      this.rows.slice(first, last).map((event, index) => {
        const row = this.row(event);
        row.style.top = `${(first + index) * ROW}px`;
        return row;
      }),
    );
  }

  /** @param {Event} event */
  row(event) {
    const payload = event.payload ?? {};
    const words = payload.text ?? payload.chunk ?? payload.toolName ?? payload.status ?? payload.subtype ?? payload.message ?? payload.method ?? payload.scope ?? "";
    return h(
      "div",
      { class: "inspector-row", role: "option", "data-seq": event.seq, "aria-selected": event.seq === this.seq ? "true" : "false" },
      h("span", { class: "row-seq" }, `§${event.seq}`),
      h("span", { class: "row-type" }, ...visible(event.type)),
      h("span", { class: "row-words" }, ...visible(line(asText(words), 80))),
      h("span", { class: "row-frame" }, event.frame === undefined ? "" : `${event.direction === "out" ? "→" : "←"}${event.frame}`),
    );
  }

  /** @param {MouseEvent} click */
  clicked(click) {
    const row = click.target instanceof Element ? click.target.closest("[data-seq]") : null;
    if (row instanceof HTMLElement) this.choose(Number(row.dataset.seq));
  }

  /** @param {KeyboardEvent} key */
  key(key) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key.key];
    if (step === undefined) return;
    key.preventDefault();
    key.stopPropagation();
    const at = this.rows.findIndex((event) => event.seq === this.seq);
    const next = this.rows[Math.max(0, Math.min(this.rows.length - 1, at + step))];
    if (next !== undefined) this.choose(next.seq);
  }

  /** Somebody chose an event here: show it here and there. @param {number} seq */
  choose(seq) {
    this.select(seq);
    this.transcript.select(seq);
    this.hooks.onSelect?.(seq);
  }

  /** Show an event. @param {number} seq */
  select(seq) {
    this.seq = seq;
    const event = this.transcript.event(seq);
    if (event === undefined) {
      this.detail.replaceChildren(h("p", { class: "about" }, "Choose an event: a § in the margin, or a line below."));
      this.draw();
      return;
    }
    this.detail.replaceChildren(...this.about(event));
    const index = this.rows.indexOf(event);
    const top = index * ROW;
    if (index !== -1 && (top < this.list.scrollTop || top > this.list.scrollTop + this.list.clientHeight - ROW)) {
      this.list.scrollTop = Math.max(0, top - this.list.clientHeight / 2);
    }
    this.draw();
  }

  /** @param {Event} event @returns {Node[]} */
  about(event) {
    const { events } = this.transcript;
    const at = clock(event.timestamp);
    const since = between(events[0]?.timestamp, event.timestamp);
    const late = between(event.timestamp, event.receivedAt);
    const facts = [
      event.source ?? "hansard itself",
      event.synthetic ? "no frame says this literally" : null,
      at,
      since === null ? null : `${duration(since)} after the first`,
      late ? `received ${duration(late)} later` : null,
    ];
    const { original, ...rest } = event;
    return [
      h("h2", null, h("span", null, `§${event.seq}`), " ", ...visible(event.type)),
      h("p", { class: "about" }, ...visible(facts.filter(Boolean).join(" · "))),
      ...this.frame(event),
      h("details", { class: "inspector-part", open: true }, h("summary", null, "the event"), json(rest)),
      this.original(event, original),
    ];
  }

  /** The wire frame, and what it became. @param {Event} event @returns {Node[]} */
  frame(event) {
    if (event.frame === undefined) return [];
    const same = this.sameFrame(event);
    const before = this.before(same[0]);
    const gap = before === undefined ? null : between(before.timestamp, same[0].timestamp);
    const words = [`frame ${count(event.frame)}`, event.direction === "out" ? "sent to the agent" : "from the agent", gap === null ? null : `${duration(gap)} after the one before`];
    return [
      h("p", { class: "inspector-frame" }, words.filter(Boolean).join(" · "), " → ", plural(same.length, "event")),
      h(
        "ul",
        { class: "inspector-same" },
        same.map((one) => h("li", null, h("button", { type: "button", "aria-current": one === event ? "true" : null, onclick: () => this.choose(one.seq) }, `§${one.seq} `, ...visible(one.type)))),
      ),
    ];
  }

  /** @param {Event} event */
  sameFrame(event) {
    const { events } = this.transcript;
    const at = events.indexOf(event);
    const same = (/** @type {Event | undefined} */ other) => other !== undefined && other.frame === event.frame && other.stream === event.stream;
    let from = at;
    let to = at;
    while (same(events[from - 1])) from -= 1;
    while (same(events[to + 1])) to += 1;
    return events.slice(from, to + 1);
  }

  /** @param {Event} event */
  before(event) {
    return this.transcript.events[this.transcript.events.indexOf(event) - 1];
  }

  /** The bytes, when somebody asks for them. @param {Event} event @param {any} known */
  original(event, known) {
    const body = h("div", { class: "inspector-original" });
    const summary = h("summary", null, "the original");
    const element = h("details", { class: "inspector-part", ontoggle: () => this.fetch(element, body, summary, event, known) }, summary, body);
    return element;
  }

  /** @param {HTMLDetailsElement} element @param {HTMLElement} body @param {HTMLElement} summary @param {Event} event @param {any} known */
  async fetch(element, body, summary, event, known) {
    if (!element.open || body.childNodes.length > 0) return;
    const { original } = this.hooks;
    if (known === undefined && original === undefined) {
      body.append(h("p", { class: "about" }, "it is not in this copy"));
      return;
    }
    body.append(h("p", { class: "about" }, "fetching the original"));
    try {
      const text = known === undefined ? await /** @type {NonNullable<Hooks["original"]>} */ (original)(this.sameFrame(event)[0].seq) : asText(known);
      summary.textContent = `the original · ${size(new TextEncoder().encode(text).length)}`;
      body.replaceChildren(json(pretty(text)));
    } catch {
      body.replaceChildren(h("p", { class: "about" }, "the original could not be had"));
    }
  }
}

/** JSON with room between, anything else as it is. @param {string} text */
function pretty(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
