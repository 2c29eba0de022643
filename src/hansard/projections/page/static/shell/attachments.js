// @ts-check
/** Files that go with a message: by the button, by paste, by drop. What the agent does not take is refused before it is sent. */

import { h } from "../transcript/dom.js";
import { size } from "../transcript/format.js";
import * as api from "./api.js";
import { failed, tell } from "./toasts.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST = 7_000_000;

/** @typedef {{name: string, block: any}} Attached */

export class Attachments {
  /** @param {() => {session: string | null, agent: string, can: any}} about */
  constructor(about) {
    this.about = about;
    /** @type {Attached[]} */
    this.attached = [];
    this.coming = 0;
    this.list = h("ul", { class: "attached", "aria-label": "Attached", hidden: true });
    this.input = h("input", { type: "file", multiple: true, hidden: true, "aria-hidden": "true", onchange: () => this._chosen() });
    this.button = h("button", { type: "button", class: "icon", "aria-label": "Attach a file", title: "Attach a file", onclick: () => this.input.click() }, "+");
  }

  _chosen() {
    this.add([...(this.input.files ?? [])]);
    this.input.value = "";
  }

  /** @param {File[]} files */
  async add(files) {
    for (const file of files) {
      const problem = this._problem(file);
      if (problem) tell(problem, "bad");
      else await this._upload(file).catch(failed(file.name));
    }
  }

  /** Why a file is not taken. @param {File} file */
  _problem(file) {
    const { agent, can, session } = this.about();
    const picture = PICTURES.includes(file.type);
    if (session === null) return "There is no session to attach it to.";
    if (picture && can?.images === false) return `${agent} does not take pictures.`;
    if (!picture && !can?.files) return `${agent} does not take files such as ${file.name}. Name its path in the message instead.`;
    if (file.size > MOST) return `${file.name} has ${size(file.size)}; ${size(MOST)} is the most.`;
    return null;
  }

  /** @param {File} file */
  async _upload(file) {
    const { session } = this.about();
    if (session === null) return;
    this.coming += 1;
    this.draw();
    try {
      const { blob, mediaType } = await api.upload(session, file);
      const block = PICTURES.includes(file.type) ? { type: "image", mediaType, blob } : { type: "file", name: file.name, mediaType, size: file.size, blob };
      this.attached.push({ name: file.name || mediaType, block });
    } finally {
      this.coming -= 1;
      this.draw();
    }
  }

  draw() {
    const rows = this.attached.map((one) => {
      const drop = () => {
        this.attached = this.attached.filter((other) => other !== one);
        this.draw();
      };
      return h("li", { class: "chip" }, h("span", { class: "clip", dir: "auto" }, one.name), h("button", { type: "button", class: "icon", "aria-label": `Remove ${one.name}`, onclick: drop }, "×"));
    });
    if (this.coming) rows.push(h("li", { class: "chip quiet" }, "uploading …"));
    this.list.replaceChildren(...rows);
    this.list.hidden = rows.length === 0;
  }

  /** All that is attached, and nothing is any more. */
  take() {
    const blocks = this.attached.map((one) => one.block);
    this.attached = [];
    this.draw();
    return blocks;
  }

  /** Listen for what is pasted into or dropped on an element. @param {HTMLElement} element */
  listen(element) {
    element.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      this.add(files);
    });
    element.addEventListener("dragover", (event) => {
      event.preventDefault();
      element.classList.add("dropping");
    });
    element.addEventListener("dragleave", () => element.classList.remove("dropping"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      element.classList.remove("dropping");
      this.add([...(event.dataTransfer?.files ?? [])]);
    });
  }
}
