// @ts-check
/** Filters in the box above the list, like `agent:claude since:7d`. The server knows which sessions they mean. */

import * as api from "./api.js";
import { Refused } from "./connection.js";

const PAUSE_MS = 200;
/** The parameter of the server for each word. */
const PARAMETERS = new Map(["since", "until", "project", "agent", "model", "status", "touched", "person"].map((name) => [name, name]));
PARAMETERS.set("cost", "costOver");

/**
 * What was typed, taken apart: the filters as parameters, and the other words.
 * @param {string} text
 */
export function parse(text) {
  const parameters = new URLSearchParams();
  const words = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [, name = "", value = ""] = word.match(/^(\w+):(.+)$/) ?? [];
    const parameter = PARAMETERS.get(name.toLowerCase());
    if (parameter) parameters.append(parameter, value);
    else words.push(word);
  }
  return { words: words.join(" "), parameters: parameters.toString() };
}

/** Knows which sessions the filters mean. */
export class SessionFilter {
  /** @param {() => unknown} changed called when an answer has come */
  constructor(changed) {
    this.changed = changed;
    this.parameters = "";
    /** Null if every session is meant, or the answer has not come yet. @type {Set<string> | null} */
    this.ids = null;
    /** What is wrong with the filters. @type {string | null} */
    this.problem = null;
    /** @type {number | undefined} */
    this.timer = undefined;
  }

  /** Ask the server soon. @param {string} parameters */
  set(parameters) {
    clearTimeout(this.timer);
    this.parameters = parameters;
    if (parameters) this.timer = setTimeout(() => this._ask(parameters), PAUSE_MS);
    else [this.ids, this.problem] = [null, null];
  }

  /** Ask again: the sessions have changed. */
  refresh() {
    if (this.parameters) this.set(this.parameters);
  }

  /** @param {{id: string}} info */
  has(info) {
    return this.ids === null || this.ids.has(info.id);
  }

  /** @param {string} parameters */
  async _ask(parameters) {
    try {
      const ids = await meant(parameters);
      if (parameters === this.parameters) [this.ids, this.problem] = [ids, null];
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      if (parameters === this.parameters) [this.ids, this.problem] = [new Set(), problem.message];
    }
    this.changed();
  }
}

/** @param {string} parameters @returns {Promise<Set<string>>} */
async function meant(parameters) {
  const ids = new Set();
  for (const archived of ["false", "true"]) {
    for (let before = ""; ; ) {
      const page = await api.get(`api/sessions?limit=1000&archived=${archived}&${parameters}${before && `&before=${encodeURIComponent(before)}`}`);
      for (const info of page.sessions) ids.add(info.id);
      if (!page.next) break;
      before = page.next;
    }
  }
  return ids;
}
