/** The small menu of an event: copy what it says, all of it, or its bytes; or its address. */

import { h } from "./dom.js";
import { asText } from "./format.js";

/** @typedef {import("./types").Event} Event @typedef {import("./types").Hooks} Hooks */

/** What an event says, in words. @param {Event} event @param {import("./types").Drawn | undefined} drawn */
export function wordsOf(event, drawn) {
  const item = /** @type {any} */ (drawn);
  if (item?.kind === "text" || item?.kind === "thinking") return item.text;
  const { payload } = event;
  return asText(payload?.text ?? payload?.chunk ?? payload?.message ?? payload?.result ?? payload?.args ?? payload);
}

/**
 * Copy the code whose button was clicked, if one was.
 * @param {MouseEvent} click
 * @param {(words: string) => void} announce
 */
export function copyCode(click, announce) {
  const button = click.target instanceof Element ? click.target.closest("button.copy") : null;
  if (button === null) return false;
  navigator.clipboard.writeText(button.closest("figure")?.querySelector("pre")?.textContent ?? "").then(
    () => announce("copied"),
    () => announce("it could not be copied"),
  );
  return true;
}

export class Menu {
  /**
   * @param {HTMLElement} scroller
   * @param {Hooks} hooks
   * @param {(words: string) => void} announce
   */
  constructor(scroller, hooks, announce) {
    this.scroller = scroller;
    this.hooks = hooks;
    this.announce = announce;
    /** @type {HTMLElement | null} */
    this.element = null;
  }

  /** @param {HTMLElement} anchor @param {Event} event @param {string} words */
  open(anchor, event, words) {
    this.close();
    const { original, href } = this.hooks;
    const { original: verbatim, ...rest } = event;
    const choices = [
      this.choice("copy as text", async () => words),
      this.choice("copy as JSON", async () => JSON.stringify(rest, null, 2)),
      verbatim !== undefined || original !== undefined
        ? this.choice("copy original", async () => (verbatim === undefined ? await /** @type {any} */ (original)(event.seq) : asText(verbatim)))
        : null,
      href !== undefined ? this.choice("copy link", async () => new URL(href(event.seq), location.href).href) : null,
    ];
    this.element = h("div", { class: "cite-menu", role: "menu", "aria-label": `Event ${event.seq}`, onkeydown: (/** @type {KeyboardEvent} */ key) => this.key(key, anchor) }, h("p", null, `§${event.seq} · ${event.type}`), choices);
    this.scroller.append(this.element);
    const place = anchor.getBoundingClientRect();
    const frame = this.scroller.getBoundingClientRect();
    this.element.style.top = `${place.bottom - frame.top + this.scroller.scrollTop + 4}px`;
    this.element.style.left = `${Math.max(8, Math.min(place.left - frame.left, frame.width - 200))}px`;
    /** @type {HTMLElement | null} */ (this.element.querySelector("button"))?.focus({ preventScroll: true });
  }

  /** @param {string} words @param {() => Promise<string>} make */
  choice(words, make) {
    return h("button", { type: "button", role: "menuitem", onclick: () => this.copy(words, make) }, words);
  }

  /** @param {string} words @param {() => Promise<string>} make */
  async copy(words, make) {
    this.close();
    try {
      await navigator.clipboard.writeText(await make());
      this.announce(words.replace("copy", "copied"));
    } catch {
      this.announce("it could not be copied");
    }
  }

  /** @param {KeyboardEvent} key @param {HTMLElement} anchor */
  key(key, anchor) {
    const buttons = [...(this.element?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (key.key === "Escape") {
      this.close();
      anchor.focus();
    } else if (key.key === "ArrowDown") buttons[(at + 1) % buttons.length]?.focus();
    else if (key.key === "ArrowUp") buttons[(at + buttons.length - 1) % buttons.length]?.focus();
    else return;
    key.preventDefault();
    key.stopPropagation();
  }

  close() {
    this.element?.remove();
    this.element = null;
  }
}
