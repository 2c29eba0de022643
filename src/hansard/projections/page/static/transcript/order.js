/** The order of a conversation. A log is in the order in which it was written; what another stream added later may belong further up. */

/** @typedef {import("./types").Event} Event */

const PARENT_SUBTYPES = new Set(["parent_found", "parent_updated"]);

/**
 * The events of a log in the order of the conversation: late ones directly behind the event that they follow. One whose predecessor is
 * not here keeps its place. Where the parent of a fork was recorded again, all of these events follow the end of what both have now.
 * @param {Event[]} events
 * @returns {Event[]}
 */
export function inConversationOrder(events) {
  /** @type {Map<string, Event[]>} */
  const followers = new Map();
  const forkPoint = events.findLast((event) => event.after !== undefined && isParentRecorded(event))?.after;
  for (const event of events) {
    if (event.after === undefined) continue;
    const before = isParentRecorded(event) ? (forkPoint ?? event.after) : event.after;
    followers.set(before, [...(followers.get(before) ?? []), event]);
  }
  const given = new Set();
  /** @type {Event[]} */
  const ordered = [];
  for (const first of events) {
    const waiting = [first];
    for (let event = waiting.pop(); event !== undefined; event = waiting.pop()) {
      if (event.after !== undefined) {
        if (given.has(event)) continue;
        given.add(event);
      }
      ordered.push(event);
      const next = followers.get(event.id ?? "");
      if (next === undefined) continue;
      followers.delete(event.id ?? "");
      waiting.push(...next.reverse());
    }
  }
  return ordered;
}

/**
 * Whether hansard records the parent of the session with an event.
 * @param {Event} event
 */
function isParentRecorded(event) {
  return event.source === undefined && PARENT_SUBTYPES.has(event.payload?.subtype);
}
