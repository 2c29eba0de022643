// @ts-check
/** Dialogs on top of the page. The browser keeps the focus inside and gives it back. */

import { h } from "../transcript/dom.js";

/**
 * Show a dialog; what it returns is removed when it closes. `key` has the keys that are pressed in it; those with Ctrl or Alt are not for it.
 * @param {{title: string, class?: string, closed?: () => void, key?: (event: KeyboardEvent) => void}} look @param {...any} body
 */
export function dialog(look, ...body) {
  const close = h("button", { type: "button", class: "icon", "aria-label": "Close", title: "Close (Esc)", onclick: () => element.close() }, "×");
  const element = h(
    "dialog",
    { class: `dialog ${look.class ?? ""}`, "aria-label": look.title },
    h("div", { class: "dialog-head" }, h("h2", null, look.title), close),
    ...body,
  );
  element.addEventListener("close", () => {
    element.remove();
    look.closed?.();
  });
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close();
  });
  element.addEventListener("keydown", (event) => {
    if (!element.open) return; // it was just closed and still has the focus: the key is for the page
    event.stopPropagation();
    if (!event.ctrlKey && !event.metaKey && !event.altKey) look.key?.(event);
  });
  document.body.append(element);
  element.showModal();
  return element;
}

/**
 * Ask before something is done that cannot be undone, or that costs something: `no` is what stays as it is.
 * @param {{title: string, text: string, yes: string, no?: string, harmless?: boolean}} words
 * @returns {Promise<boolean>}
 */
export function confirmed(words) {
  return new Promise((answer) => {
    let said = false;
    const choose = (/** @type {boolean} */ yes) => {
      said = yes;
      element.close();
    };
    const no = h("button", { type: "button", class: "button", onclick: () => choose(false) }, words.no ?? "Keep");
    const yes = h("button", { type: "button", class: `button ${words.harmless ? "primary" : "danger"}`, onclick: () => choose(true) }, words.yes);
    const element = dialog(
      { title: words.title, class: "narrow", closed: () => answer(said) },
      h("p", { dir: "auto" }, words.text),
      h("div", { class: "dialog-foot" }, no, yes),
    );
    no.focus();
  });
}

/**
 * Ask for a line.
 * @param {{title: string, label: string, value?: string, choices?: string[], yes: string}} words
 * @returns {Promise<string | null>}
 */
export function asked(words) {
  return new Promise((answer) => {
    /** @type {string | null} */
    let said = null;
    const input = h("input", { class: "field", name: "line", "aria-label": words.label, $value: words.value ?? "", list: "asked-choices", autocomplete: "off", dir: "auto" });
    const form = h(
      "form",
      {
        onsubmit: (/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          said = input.value;
          element.close();
        },
      },
      h("label", { class: "labelled" }, h("span", null, words.label), input),
      h("datalist", { id: "asked-choices" }, (words.choices ?? []).map((value) => h("option", { value }))),
      h("div", { class: "dialog-foot" }, h("button", { class: "button primary" }, words.yes)),
    );
    const element = dialog({ title: words.title, class: "narrow", closed: () => answer(said) }, form);
    input.select();
  });
}
