// @ts-check
/** The browser's tab says how the session stands, in its title and its icon. */

const ICONS = /** @type {Record<string, string>} */ ({ running: "running", waiting: "waiting", failed: "failed" });
/** @type {Record<string, string>} */
const SIGNS = { running: "◐ ", waiting: "◆ ", failed: "✕ " };

/** @param {string | null} title @param {import("./labels.js").Standing} standing */
export function showInTab(title, standing) {
  document.title = `${SIGNS[standing] ?? ""}${title ? `${title} · ` : ""}hansard`;
  const link = document.querySelector("link[rel=icon]");
  const wanted = `assets/icons/${ICONS[standing] ?? "quiet"}.svg`;
  if (link && link.getAttribute("href") !== wanted) link.setAttribute("href", wanted);
}
