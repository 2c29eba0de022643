/** What the renderer's tests do in the browser: draw, and say what is drawn in a form that can be compared. */

import { Transcript } from "/transcript/transcript.js";

const host = document.getElementById("page");
const reports = [];
document.addEventListener("securitypolicyviolation", (report) => reports.push(`${report.violatedDirective} ${report.blockedURI}`));

function fresh(hooks = {}) {
  host.replaceChildren();
  return new Transcript(host, hooks);
}

/** Elements, attributes and text; nothing that depends on where the reader is. */
function drawn(element) {
  const parts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(JSON.stringify(node.nodeValue));
    if (node.nodeType !== Node.ELEMENT_NODE || node.classList.contains("spacer")) return;
    const attributes = [...node.attributes].map((one) => `${one.name}=${JSON.stringify(one.value)}`).filter((one) => !one.startsWith("style="));
    parts.push(`<${node.localName} ${attributes.sort().join(" ")}>`);
    node.childNodes.forEach(walk);
    parts.push(`</${node.localName}>`);
  };
  element.normalize();
  walk(element);
  return parts.join("\n");
}

function all(transcript) {
  return drawn(transcript.log) + drawn(transcript.now);
}

function ready(transcript, open) {
  transcript.painter.toolsOpen = open;
  transcript.painter.thinkingOpen = open;
  return transcript;
}

/** The first prefix at which a live page, which gets what changes of the state, differs from a fresh one, which gets all of it. */
function differs(events, open, prefixes, changes) {
  const live = ready(new Transcript(document.createElement("div"), {}), open);
  const at = new Set(prefixes);
  const stage = document.createElement("div");
  for (let length = 1; length <= events.length; length += 1) {
    live.renderEvent(events[length - 1]);
    if (changes[length] !== undefined) live.updateState(changes[length]);
    live.flush();
    if (!at.has(length)) continue;
    const again = ready(new Transcript(stage, {}), open);
    again.replayEvents(events.slice(0, length), stateAfter(changes, length));
    const [one, other] = [all(live), all(again)];
    stage.replaceChildren();
    if (one !== other) return { length, ...first(one, other) };
  }
  return null;
}

/** The state after some events, put together of its changes. */
function stateAfter(changes, length) {
  const state = {};
  const turns = new Map();
  for (const [at, { turnList = [], ...changed }] of Object.entries(changes)) {
    if (Number(at) > length) break;
    Object.assign(state, changed);
    for (const turn of turnList) turns.set(turn.id, turn);
  }
  return { ...state, turnList: [...turns.values()] };
}

/** Come back in the middle: what was, replayed, then the rest as it comes, some of it twice. */
function differsAfterCut(events, open, cuts, changes) {
  const whole = ready(new Transcript(document.createElement("div"), {}), open);
  whole.replayEvents(events, stateAfter(changes, events.length));
  const wanted = all(whole);
  for (const cut of cuts) {
    const back = ready(new Transcript(document.createElement("div"), {}), open);
    back.replayEvents(events.slice(0, cut), stateAfter(changes, cut));
    for (const event of events.slice(Math.max(0, cut - 3))) {
      back.handleNewEvent(event);
      if (event.seq % 7 === 0) back.flush();
    }
    back.updateState(stateAfter(changes, events.length));
    back.flush();
    const got = all(back);
    if (got !== wanted) return { cut, ...first(got, wanted) };
  }
  return null;
}

/** Where each event is: drawn, folded into something that is closed, or nowhere on the page and so only in the inspector, by type. */
function counted(events) {
  const shown = fresh();
  shown.replayEvents(events);
  const found = { kept: shown.events.length, drawn: 0, folded: 0, hidden: {}, lost: [] };
  for (const { seq, type } of events) {
    const place = shown.flow.places[seq];
    if (place === undefined) {
      found.hidden[type] = (found.hidden[type] ?? 0) + 1;
      continue;
    }
    if (!place.element?.isConnected) shown.select(seq); // it is further up, or in a call that is closed
    if (!place.element?.isConnected) found.lost.push([seq, type]);
    else if (place.element.closest("details:not([open])")) found.folded += 1;
    else found.drawn += 1;
  }
  shown.close();
  return found;
}

/** Everything that a recording proves, in one go. */
function proof(text, changed, everywhere, few, cuts) {
  const events = JSON.parse(text);
  const changes = JSON.parse(changed);
  return {
    live: differs(events, true, everywhere, changes),
    folded: differs(events, false, few, changes),
    back: differsAfterCut(events, true, cuts, changes),
    counted: counted(events),
  };
}

/** Everything open that can be opened, and everything done that a reader does. */
async function explored(events) {
  const shown = fresh({ href: (seq) => `#${seq}`, original: async () => "the original", blob: (sha) => `/blobs/${sha}` });
  shown.replayEvents(events);
  shown.openAll();
  shown.showThinking(true);
  for (let closed = 1; closed > 0; ) {
    const folded = [...host.querySelectorAll("details:not([open])")];
    closed = folded.length;
    folded.forEach((element) => (element.open = true));
    await new Promise((done) => setTimeout(done));
  }
  host.querySelectorAll("*").forEach((element) => ["pointerover", "mouseover", "focusin"].forEach((name) => element.dispatchEvent(new Event(name, { bubbles: true }))));
  shown.find("x");
  shown.find("");
  return shown;
}

/** What a reader reads: text, with the marks of invisible characters as the characters that they mark. */
function readable(element = host) {
  const copy = element.cloneNode(true);
  copy.querySelectorAll(".unseen").forEach((mark) => mark.replaceWith(String.fromCodePoint(parseInt(mark.title.slice(2), 16))));
  return copy.textContent;
}

/** The links that lead anywhere. */
function links() {
  return [...host.querySelectorAll("a:not(.cite)")].map((link) => ({ href: link.getAttribute("href"), rel: link.rel, target: link.target, download: link.hasAttribute("download") }));
}

/** Until what was changed is on the screen. */
function frame() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

/** How many elements there are of each of these. */
function counts(...names) {
  return names.map((name) => host.querySelectorAll(name).length);
}

/** An inspector beside the transcript. */
async function inspecting(shown, hooks) {
  const { Inspector } = await import("/transcript/inspector.js");
  const side = document.createElement("aside");
  host.append(side);
  return new Inspector(side, shown, hooks);
}

function first(one, other) {
  const [a, b] = [one.split("\n"), other.split("\n")];
  const index = a.findIndex((line, at) => line !== b[at]);
  return { live: a.slice(Math.max(0, index - 3), index + 3), replay: b.slice(Math.max(0, index - 3), index + 3) };
}

Object.assign(globalThis, { Transcript, fresh, drawn, all, proof, explored, readable, links, frame, counts, inspecting, reports, ready: true });
