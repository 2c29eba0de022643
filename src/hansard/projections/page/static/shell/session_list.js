// @ts-check
/** The list of sessions as the server tells it, and who wants to know when it changes. */

/**
 * @typedef {{
 *   id: string, title?: string | null, agent?: string | null, status?: string | null, phase?: string | null, live?: boolean,
 *   here?: boolean, head?: number | null, archived?: boolean,
 *   parentSessionId?: string | null, parentSeq?: number | null, lineage?: "fork" | "subagent" | null, copiedEvents?: number,
 *   project?: string | null, cwd?: string | null, repository?: string | null, costUsd?: number | null, updated?: number | null, captured?: boolean,
 *   problem?: string | null
 * }} Info
 */

export class Sessions {
  constructor() {
    /** @type {Map<string, Info>} */
    this.all = new Map();
    this.known = false;
    /** @type {(() => unknown)[]} */
    this.listeners = [];
  }

  /** @param {boolean} all @param {Info[]} changed @param {string[]} removed */
  tell(all, changed, removed) {
    if (all) this.all.clear();
    for (const info of changed) this.all.set(info.id, info);
    for (const id of removed) this.all.delete(id);
    this.known = true;
    for (const listener of this.listeners) listener();
  }

  /** Call the listener after each change. @param {() => unknown} listener @returns {() => void} the function that ends this */
  subscribe(listener) {
    this.listeners.push(listener);
    return () => (this.listeners = this.listeners.filter((one) => one !== listener));
  }

  /** @param {string} id */
  get(id) {
    return this.all.get(id);
  }

  /** The sessions that come from this one, the oldest first. @param {string} id @returns {Info[]} */
  children(id) {
    return [...this.all.values()].filter((info) => info.parentSessionId === id).sort((a, b) => (a.updated ?? 0) - (b.updated ?? 0));
  }

  /** The newest first; those with these words in the title. @param {string} words @param {boolean} archived @returns {Info[]} */
  list(words = "", archived = false) {
    const wanted = words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    return [...this.all.values()]
      .filter((info) => Boolean(info.archived) === archived)
      .filter((info) => wanted.every((word) => text(info).includes(word)))
      .sort((a, b) => (b.updated ?? 0) - (a.updated ?? 0) || (a.id < b.id ? -1 : 1));
  }
}

/** Where a session comes from, in a few words; empty if it has no parent. @param {Info} info @param {string | null} parent the parent's title */
export function origin(info, parent) {
  if (!info.lineage) return "";
  const kind = info.lineage === "subagent" ? "Subagent" : "Fork";
  return info.parentSessionId ? `${kind} of ${parent ?? info.parentSessionId}` : `${kind} of a session that is not here`;
}

/** @param {{title?: string | null}} info */
export function title(info) {
  return info.title?.trim().split("\n", 1)[0] || "Untitled";
}

/** How it stands: what it is doing now, or how its last turn ended. @param {Info} info */
export function standingOf(info) {
  if (info.phase === "waiting" || info.phase === "running") return info.phase;
  return info.status === "running" && isOver(info) ? "unfinished" : info.status;
}

/** Whether it is no longer written. @param {Info} info */
export function isOver(info) {
  return !info.live && !info.here;
}

/** @param {Info} info */
function text(info) {
  return `${info.title ?? ""} ${info.agent ?? ""} ${info.id}`.toLocaleLowerCase();
}
