// @ts-check
/** The keys of the page. While somebody types, only those with Ctrl count, and Escape. */

/** @typedef {{keys: string, what: string, run: () => void}} Key */

export class Keys {
  /** @param {Key[]} keys */
  constructor(keys) {
    this.keys = keys;
    this.before = "";
  }

  /** @param {KeyboardEvent} event */
  take(event) {
    if (event.defaultPrevented || event.altKey || event.isComposing) return;
    const name = (event.ctrlKey || event.metaKey ? "Ctrl-" : "") + event.key;
    const plain = !name.startsWith("Ctrl-") && event.key !== "Escape";
    if (plain && isTyping(event.target)) return;
    const twice = `${this.before} ${name}`;
    const found = this.keys.find((key) => key.keys === twice) ?? this.keys.find((key) => key.keys.split(", ").includes(name));
    this.before = found ? "" : name;
    if (found === undefined) return;
    event.preventDefault();
    found.run();
  }
}

/** Whether somebody types there. The field of a dialog that was just closed still has the focus, and is not visible. @param {EventTarget | null} target */
export function isTyping(target) {
  return target instanceof HTMLElement && target.checkVisibility() && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));
}
