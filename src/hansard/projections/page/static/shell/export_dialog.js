// @ts-check
/** A session as a file, in any of the forms that the server's own description names. Secrets are masked unless somebody asks otherwise. */

import { h } from "../transcript/dom.js";
import * as api from "./api.js";
import { dialog } from "./dialog.js";
import { failed } from "./toasts.js";

const ROUTE = /^\/api\/sessions\/\{\w+\}\/export$/;

/** @returns {Promise<string[]>} */
async function forms() {
  const about = await api.get("openapi.json");
  const route = Object.keys(about.paths).find((path) => ROUTE.test(path)) ?? "";
  const to = about.paths[route].get.parameters.find((/** @type {any} */ parameter) => parameter.name === "to");
  return to.schema.enum;
}

/** @param {string} session */
export async function exportDialog(session) {
  const found = await forms().catch(failed("The forms of an export"));
  if (!found) return;
  const masked = h("input", { type: "checkbox", $checked: true, onchange: () => draw() });
  const list = h("ul", { class: "forms" });
  const draw = () => {
    const more = masked.checked ? "" : "&redact=false";
    list.replaceChildren(...found.map((form) => h("li", null, h("a", { class: "palette-row", href: `${api.at(session)}/export?to=${encodeURIComponent(form)}${more}`, download: "" }, form.replaceAll("_", " ")))));
  };
  draw();
  dialog({ title: "Export as", class: "narrow" }, h("label", { class: "option" }, masked, h("span", null, "Mask secrets", h("span", { class: "quiet small block" }, "Keys, tokens and passwords become a word that says what was there."))), list);
}
