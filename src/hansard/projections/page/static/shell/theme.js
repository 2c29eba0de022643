// @ts-check
/** Light, dark, or as the system has it. */

const KEY = "hansard-theme";
/** @typedef {"system" | "light" | "dark"} Theme */

/** @returns {Theme} */
export function theme() {
  const kept = remembered(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** @param {Theme} wanted */
export function setTheme(wanted) {
  remember(KEY, wanted === "system" ? null : wanted);
  apply();
}

/** Put it on the page. */
export function apply() {
  const wanted = theme();
  if (wanted === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", wanted);
}

/** What was kept; a browser that keeps nothing is no error. @param {string} key */
export function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string | null} value */
export function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // a private window forgets
  }
}
