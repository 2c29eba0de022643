/** The order of a conversation. A log is in the order in which it was written; what another stream added later may belong further up. */

/** @typedef {import("./types").Event} Event */

/**
 * The events of a log in the order of the conversation: late ones directly behind the event that they follow. One whose predecessor is
 * not here keeps its place.
 * @param {Event[]} events
 * @returns {Event[]}
 */
export function inConversationOrder(events) {
  /** @type {Map<string, Event[]>} */
  const followers = new Map();
  for (const event of events) {
    if (event.after !== undefined) followers.set(event.after, [...(followers.get(event.after) ?? []), event]);
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
