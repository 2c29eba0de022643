// @ts-check
/** Where a person speaks: the message, its attachments, what waits, and how the agent is stopped or changed. */

import { h } from "../transcript/dom.js";
import { Attachments } from "./attachments.js";
import { Menu } from "./menu.js";
import { Queue } from "./queue.js";
import { withinSentence } from "./labels.js";
import { commandsOf, SlashMenu } from "./slash_menu.js";

/**
 * @typedef {{
 *   session: string, agent: string, can: any, running: boolean, isKnown: boolean, commands: any[] | null, queue: import("./queue.js").Waiting[],
 *   readOnly: string | null, record: boolean, agents: import("./agents.js").Agent[], current: string | null, offline: boolean
 * }} Situation
 * @typedef {{
 *   say(text: string, blocks: any[], steer: boolean): Promise<unknown>, interrupt(): void, edit(itemId: string, text: string): void,
 *   cancel(itemId: string): void, change(agent: string): void, needAgents(): void
 * }} Hooks
 */

export class Composer {
  /** @param {Hooks} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    /** @type {Situation | null} */
    this.now = null;
    this.input = h("textarea", { class: "message", rows: "1", "aria-label": "Message", dir: "auto", oninput: () => this._typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event) });
    this.slash = new SlashMenu(this.input, () => commandsOf(this.now?.commands));
    this.attachments = new Attachments(() => ({ session: this.now?.session ?? null, agent: this.now?.agent ?? "The agent", can: this.now?.can }));
    this.queue = new Queue(hooks);
    this.agentsWord = h("span", null, "Switch agent");
    this.agents = new Menu({ label: "Go on with another agent", class: "plain quiet", up: true }, () => this._agents(), this.agentsWord);
    this.steer = h("button", { type: "button", class: "plain", title: "Say it now, in the middle of the turn (Ctrl-Enter)", hidden: true, onclick: () => this._send(true) }, "Steer");
    this.stop = h("button", { type: "button", class: "button stop", hidden: true, title: "Stop what the agent is doing (Esc)", onclick: () => hooks.interrupt() }, "Interrupt");
    this.sendWord = h("span", null, "Send");
    this.send = h("button", { type: "button", class: "button primary send", onclick: () => this._send(false) }, this.sendWord, h("kbd", { "aria-hidden": "true" }, "⏎"));
    this.why = h("p", { class: "composer-why", hidden: true });
    this.bar = h("div", { class: "composer-bar" }, this.attachments.button, this.attachments.input, this.agents.element, h("span", { class: "spring" }), this.stop, this.steer, this.send);
    this.box = h("div", { class: "composer-box" }, this.attachments.list, this.input, this.bar);
    this.element = h("footer", { class: "composer", "aria-label": "Your message" }, h("div", { class: "composer-inner" }, this.queue.element, this.slash.element, this.why, this.box));
    this.attachments.listen(this.box);
  }

  /** @param {Situation} now */
  show(now) {
    if (this.now?.session !== now.session) this._enter(now.session);
    const hasOtherAgents = this.now?.agents !== now.agents;
    this.now = now;
    if (hasOtherAgents && this.agents.isOpen) this.agents.open(); // it was opened before the list of agents arrived
    const closed = now.readOnly !== null;
    this.queue.show(now.queue, closed);
    this.why.hidden = !closed && !now.record;
    this.why.textContent = now.readOnly ?? (now.record ? "This is a record: nobody is there to answer. An agent can go on from here." : "");
    this.box.classList.toggle("closed", closed);
    this.box.classList.toggle("record", now.record);
    this.agentsWord.textContent = now.record ? "Go on with an agent …" : "Switch agent";
    this.input.disabled = closed || now.record;
    this.input.placeholder = this._hint(now);
    this.stop.hidden = closed || !now.running;
    this.steer.hidden = closed || !now.running || !now.can?.steer;
    this.sendWord.textContent = now.running ? "Queue" : "Send";
    this.send.disabled = closed || now.record || !now.isKnown;
    this.attachments.button.disabled = closed || now.record;
    this.agents.button.disabled = closed;
  }

  /** @param {Situation} now */
  _hint(now) {
    const agent = withinSentence(now.agent);
    if (now.readOnly !== null || now.record || !now.isKnown) return "";
    if (now.offline) return "It is sent when the connection is back";
    if (now.running) return now.can?.steer ? "Say something: it waits its turn, or Ctrl-Enter steers" : "Say something: it waits its turn";
    return now.commands?.length ? `Message ${agent}, / for commands` : `Message ${agent}`;
  }

  /** @param {string} session */
  _enter(session) {
    this.input.value = draft(session);
    this.attachments.take();
    this._grow();
  }

  _agents() {
    const agents = this.now?.agents ?? [];
    if (agents.length === 0) this.hooks.needAgents();
    return agents.map((agent) => ({
      label: agent.title,
      hint: agent.installed ? "" : "not installed",
      checked: agent.name === this.now?.current,
      disabled: !agent.installed,
      run: () => this.hooks.change(agent.name),
    }));
  }

  _typed() {
    this._grow();
    if (this.now) keep(this.now.session, this.input.value);
  }

  /** As high as the text, up to a third of the window. */
  _grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, innerHeight / 3)}px`;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.isComposing || this.slash.key(event)) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this._send(this.now?.can?.steer === true && this.now.running);
    else if (event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches) this._send(false);
    else if (event.key === "ArrowUp" && this.input.value === "" && this.now?.queue.length) this.queue.editLast();
    else if (event.key === "Escape" && !this.now?.running) this.input.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {boolean} steer */
  async _send(steer) {
    const text = this.input.value;
    if (this.input.disabled || this.attachments.coming || (!text.trim() && this.attachments.attached.length === 0)) return;
    const attached = [...this.attachments.attached];
    const blocks = this.attachments.take();
    this.input.value = "";
    this._typed();
    this.slash.close();
    try {
      await this.hooks.say(text, blocks, steer);
    } catch {
      if (this.input.value !== "") return; // something else is being written already
      this.input.value = text;
      this.attachments.attached = attached;
      this.attachments.draw();
      this._typed();
    }
  }

  focus() {
    this.input.focus();
  }
}

/** What was being written for a session when the page was left. @param {string} session */
function draft(session) {
  try {
    return sessionStorage.getItem(`hansard-draft-${session}`) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

/** @param {string} session @param {string} text */
function keep(session, text) {
  try {
    if (text) sessionStorage.setItem(`hansard-draft-${session}`, text);
    else sessionStorage.removeItem(`hansard-draft-${session}`);
  } catch {
    // a browser that keeps nothing
  }
}
