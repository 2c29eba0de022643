/** Numbers, times and sizes in words. */

import { EARLIEST_CALENDAR_MS } from "./rules.js";

const NUMBER = new Intl.NumberFormat("en");

/** @param {number} number */
export function count(number) {
  return NUMBER.format(number);
}

/** @param {number} number @param {string} word */
export function plural(number, word, several = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : several}`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 950) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${Number((ms / 1000).toFixed(1))} s`;
  if (ms < 59_500) return `${Math.round(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/**
 * The time between two moments of one clock; null where they are of two, or go backwards.
 * @param {number | null | undefined} from
 * @param {number | null | undefined} to
 */
export function between(from, to) {
  if (typeof from !== "number" || typeof to !== "number" || from < 0 || from >= EARLIEST_CALENDAR_MS !== to >= EARLIEST_CALENDAR_MS || to < from) return null;
  return to - from;
}

/** What is being done, in words. @param {import("./types").Running | null} running */
export function workWords(running) {
  if (running === null) return null;
  const { what, toolName, retryMs } = running;
  switch (what) {
    case "waiting":
      return "waiting for your answer";
    case "retrying":
      return retryMs === null ? "retrying" : `retrying in ${duration(retryMs)}`;
    case "tool":
      return `running ${toolName}`;
    case "preparing":
      return toolName === null ? "preparing a call" : `preparing ${toolName}`;
    default:
      return what;
  }
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return plural(bytes, "byte");
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** @param {number} usd */
export function money(usd) {
  return `$${usd < 0.1 ? usd.toFixed(4) : usd.toFixed(2)}`;
}

/** @param {number | undefined} timestamp */
export function clock(timestamp) {
  if (typeof timestamp !== "number" || timestamp < EARLIEST_CALENDAR_MS) return null;
  return new Date(timestamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** @param {string} word */
export function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/**
 * Any JSON as text: a string as it is.
 * @param {any} value
 * @returns {string}
 */
export function asText(value) {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);
}

/**
 * The beginning of a text on one line.
 * @param {string} text
 * @param {number} width
 */
export function line(text, width = 160) {
  const words = text.slice(0, 4 * width).trim().split(/\s+/).join(" ");
  return words.length <= width && text.length <= 4 * width ? words : `${words.slice(0, width - 1).trimEnd()}…`;
}

/** @param {any} value @returns {Record<string, any>} */
export function asObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** @param {any} value @returns {any[]} */
export function asList(value) {
  return Array.isArray(value) ? value : [];
}

/** @param {any} value @returns {string | null} */
export function textOf(value) {
  return typeof value === "string" ? value : null;
}

/**
 * Where and for whom an agent works, a fact on each line.
 * @param {string | null} cwd
 * @param {import("./types").State["workspace"] | null} workspace
 * @param {string | null} lastCommit
 */
export function placeWords(cwd, workspace, lastCommit) {
  const { remote, branch, commit, person, machine, entryPoint } = workspace ?? {};
  const commits = [...new Set([commit, lastCommit].filter(Boolean))].map((one) => String(one).slice(0, 12)).join(" → ");
  const facts = { Folder: cwd, Repository: remote, Branch: branch, Commit: commits, Person: person, Machine: machine, "Started from": entryPoint };
  return Object.entries(facts)
    .filter(([, fact]) => fact)
    .map(([name, fact]) => `${name}: ${fact}`)
    .join("\n");
}
