// @ts-check
/** Numbers, times and states in a person's words. Nothing here looks at a clock that it was not given. */

const DAY = 86_400_000;

/** @param {number | null | undefined} dollars */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "";
  if (dollars === 0) return "$0";
  return dollars < 0.005 ? "< 1¢" : `$${dollars.toFixed(dollars < 10 ? 2 : dollars < 1000 ? 1 : 0)}`;
}

/** 950, 12.3k, 1.2M. @param {number} count */
export function short(count) {
  if (count < 1000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return `${value < 99.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`;
}

/** The day something belongs to, as a heading. @param {number | null | undefined} time @param {number} now */
export function day(time, now) {
  if (!time) return "Without a date";
  const days = Math.round((midnight(now) - midnight(time)) / DAY);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  const date = new Date(time);
  if (days < 7) return date.toLocaleDateString(undefined, { weekday: "long" });
  const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(undefined, { day: "numeric", month: "long", year });
}

/** @param {number} time */
function midnight(time) {
  return new Date(time).setHours(0, 0, 0, 0);
}

/** @param {number | null | undefined} time */
export function clock(time) {
  return time ? new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) : "";
}

/**
 * How a session stands, in one word that has a shape of its own.
 * @typedef {"running" | "waiting" | "done" | "failed" | "stopped" | "idle"} Standing
 */

/** @type {Record<string, Standing>} */
const STANDING = {
  running: "running",
  waiting: "waiting",
  completed: "done",
  interrupted: "stopped",
  denied: "stopped",
  error: "failed",
  refused: "failed",
  max_tokens: "failed",
  lost: "failed",
  unfinished: "stopped",
};

/** @type {Record<string, string>} */
const WORDS = { running: "running", waiting: "waits for you", completed: "done", max_tokens: "cut off", lost: "lost", error: "failed" };

/** @param {string | null | undefined} status @returns {Standing} */
export function standing(status) {
  return STANDING[status ?? ""] ?? "idle";
}

/** @param {string | null | undefined} status */
export function standingWord(status) {
  return WORDS[status ?? ""] ?? status ?? "quiet";
}

/** The name of an agent within a sentence: "the demo agent". @param {string} name */
export function withinSentence(name) {
  return name.replace(/^(The|An?) /, (article) => article.toLowerCase());
}
