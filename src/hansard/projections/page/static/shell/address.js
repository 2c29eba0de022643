// @ts-check
/** Where the page is: `#SESSION` or `#SESSION/SEQ`. What comes after the # never reaches a server, and any path serves the page. */

/** @typedef {{session: string | null, seq: number | null}} Place */

/** @param {string} hash @returns {Place} */
export function place(hash) {
  const [session, seq] = hash.replace(/^#\/?/, "").split("/", 2);
  const number = /^\d+$/.test(seq ?? "") ? Number(seq) : null;
  return { session: session ? decoded(session) : null, seq: number };
}

/** Somebody may have typed anything. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} session @param {number | null} [seq] */
export function href(session, seq = null) {
  return `#${encodeURIComponent(session)}${seq === null ? "" : `/${seq}`}`;
}

/** The whole address, to give away. @param {string} session @param {number | null} [seq] */
export function link(session, seq = null) {
  return new URL(href(session, seq), location.href).href;
}
