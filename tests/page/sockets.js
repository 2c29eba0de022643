/** The page's connection with a clock and sockets that do what a test says. */

import { Connection, pause } from "/shell/connection.js";

class Socket {
  constructor() {
    this.readyState = 1;
    this.sent = [];
    this.isClosed = false;
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
    this.readyState = 3;
  }

  says(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }

  breaks(code = 1006) {
    this.readyState = 3;
    this.onclose({ code });
  }

  said(type) {
    return this.sent.filter((message) => message.type === type);
  }
}

class Clock {
  constructor() {
    this.time = 0;
    this.timers = [];
  }

  now() {
    return this.time;
  }

  chance() {
    return 1;
  }

  after(ms, work) {
    const timer = { at: this.time + ms, work };
    this.timers.push(timer);
    return timer;
  }

  cancel(timer) {
    this.timers = this.timers.filter((one) => one !== timer);
  }

  async pass(ms) {
    const end = this.time + ms;
    for (;;) {
      const next = this.timers.filter((one) => one.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.cancel(next);
      this.time = Math.max(this.time, next.at);
      next.work();
      await Promise.resolve();
      await Promise.resolve();
    }
    this.time = end;
  }
}

function stage(hooks = {}) {
  const clock = new Clock();
  const sockets = [];
  const states = [];
  const connection = new Connection(
    () => sockets[sockets.push(new Socket()) - 1],
    { state: (state) => states.push(state.name), sessions: () => {}, hello: () => {}, whole: async () => ({}), allowed: async () => true, ...hooks },
    clock,
  );
  connection.connect();
  return { clock, sockets, states, connection, hello: () => sockets.at(-1).says({ type: "hello", protocol: 2, role: "participant", heartbeatMs: 15000 }) };
}

function reader() {
  const read = { seqs: [], live: 0, lost: [] };
  return { read, subscribed: () => {}, events: (events) => read.seqs.push(...events.map((event) => event.seq)), live: () => (read.live += 1), lost: (...why) => read.lost.push(why) };
}

const events = (id, ...seqs) => ({ type: "events", id, events: seqs.map((seq) => ({ seq, type: "raw", payload: {} })), to: Math.max(...seqs) });
const subscribed = (id) => ({ type: "subscribed", id, session: "s", logId: "L", head: 9 });

export const plays = {
  async comesBackAtItsCursor() {
    const { sockets, connection, hello, clock } = stage();
    const one = reader();
    connection.subscribe("s", one);
    hello();
    const first = sockets[0].said("subscribe")[0];
    sockets[0].says(subscribed(first.id));
    sockets[0].says(events(first.id, 1, 2, 3));
    sockets[0].breaks();
    await clock.pass(600);
    hello();
    const again = sockets[1].said("subscribe")[0];
    sockets[1].says(subscribed(again.id));
    sockets[1].says(events(again.id, 3, 4));
    sockets[1].says(events(first.id, 5));
    return { after: [first.after ?? null, again.after], seqs: one.read.seqs };
  },

  async asksAgainAtAGap() {
    const { sockets, connection, hello } = stage();
    const one = reader();
    connection.subscribe("s", one);
    hello();
    const first = sockets[0].said("subscribe")[0].id;
    sockets[0].says(subscribed(first));
    sockets[0].says(events(first, 1, 2, 4));
    const [, again] = sockets[0].said("subscribe");
    sockets[0].says(subscribed(again.id));
    sockets[0].says(events(again.id, 4, 5));
    return { after: again.after, left: sockets[0].said("unsubscribe").map((one) => one.id === first), times: sockets[0].said("subscribe").length, seqs: one.read.seqs };
  },

  async sendsWhatIsNotAnsweredAgain() {
    const { sockets, connection, hello, clock } = stage();
    hello();
    const done = connection.command("s", "user_message", { text: "a" });
    const refused = connection.command("s", "user_message", { text: "b" }).catch((problem) => problem.code);
    sockets[0].breaks();
    const later = connection.command("s", "user_message", { text: "c" });
    await clock.pass(600);
    hello();
    const sent = sockets[1].said("command");
    sockets[1].says({ type: "done", commandId: sent[0].event.commandId, seq: 7 });
    sockets[1].says({ type: "refused", commandId: sent[1].event.commandId, code: "changed", message: "look again" });
    sockets[1].says({ type: "done", commandId: sent[2].event.commandId, seq: 8 });
    const same = sockets[0].said("command").map((one) => one.event.commandId).join() === sent.slice(0, 2).map((one) => one.event.commandId).join();
    return { texts: sent.map((one) => one.event.payload.text), same, answers: [await done, await refused, await later], settled: connection.settled };
  },

  async takesSilenceForDeath() {
    const { sockets, states, hello, clock } = stage();
    hello();
    await clock.pass(15_500);
    const pinged = sockets[0].said("ping").length;
    await clock.pass(2_000);
    const before = states.at(-1);
    await clock.pass(800);
    return { pinged, before, after: states.at(-1), closed: sockets[0].isClosed };
  },

  async doesNotTalkToAnotherProtocol() {
    const { sockets, states, clock } = stage();
    sockets[0].says({ type: "hello", protocol: 99, version: "9", role: "participant", heartbeatMs: 15_000 });
    await clock.pass(60_000);
    return { state: states.at(-1), sockets: sockets.length, said: sockets[0].sent.length, closed: sockets[0].isClosed };
  },

  async waitsLongerEachTime() {
    const { sockets, clock } = stage();
    const waits = [];
    for (let tries = 0; tries < 7; tries += 1) {
      const begun = clock.time;
      sockets.at(-1).breaks();
      const known = sockets.length;
      while (sockets.length === known) await clock.pass(100);
      waits.push(Math.round((clock.time - begun) / 100) * 100);
    }
    return { waits, jitter: [pause(0, 0), pause(0, 1), pause(20, 0), pause(20, 1)] };
  },

  async saysWhatItHadWhenTheLogIsAnother() {
    const { sockets, connection, hello } = stage();
    const one = reader();
    connection.subscribe("s", one, { logId: "old", seq: 42 });
    hello();
    const asked = sockets[0].said("subscribe")[0];
    sockets[0].says({ type: "error", id: asked.id, code: "unknown_cursor", message: "another log" });
    return { asked: asked.after, lost: one.read.lost, left: connection.subscriptions.size };
  },

  async waitsForAStoreThatIsAway() {
    const states = [];
    const { sockets, connection, clock, hello } = stage({ state: (state) => states.push(state) });
    const one = reader();
    connection.subscribe("s", one, { logId: "L", seq: 3 });
    hello();
    const asked = sockets[0].said("subscribe")[0];
    sockets[0].says({ type: "error", id: asked.id, code: "away", message: "refused" });
    await clock.pass(2_500);
    const again = sockets[0].said("subscribe")[1];
    sockets[0].says({ type: "subscribed", id: again.id, session: "s", logId: "L", head: 4 });
    sockets[0].says(events(again.id, 4));
    const reasons = states.filter((state) => state.name === "open").map((state) => state.reason ?? null);
    return { after: again.after, seqs: one.read.seqs, lost: one.read.lost, reasons };
  },

  async fetchesWhatDidNotFitInItsPlace() {
    let give;
    const { sockets, connection, hello } = stage({ whole: () => new Promise((found) => (give = found)) });
    const one = reader();
    connection.subscribe("s", one);
    hello();
    const { id } = sockets[0].said("subscribe")[0];
    sockets[0].says(subscribed(id));
    sockets[0].says({ type: "events", id, events: [{ seq: 1, type: "raw", large: { bytes: 2e6 } }], to: 1 });
    sockets[0].says(events(id, 2));
    sockets[0].says({ type: "live", id, seq: 2 });
    await new Promise((later) => setTimeout(later, 20));
    const before = [...one.read.seqs];
    give({ seq: 1, type: "raw", payload: { whole: true } });
    await new Promise((later) => setTimeout(later, 20));
    return { before, after: one.read.seqs, live: one.read.live };
  },

  async aDamagedLineIsNoGap() {
    const { sockets, connection, hello } = stage();
    const one = reader();
    connection.subscribe("s", one);
    hello();
    const { id } = sockets[0].said("subscribe")[0];
    sockets[0].says(subscribed(id));
    sockets[0].says({ ...events(id, 1, 0, 3), to: 3 });
    return { seqs: one.read.seqs, times: sockets[0].said("subscribe").length };
  },

  async aLinkThatIsNoLongerGoodIsSaid() {
    const { sockets, states, clock, connection } = stage({ allowed: async () => false });
    sockets[0].breaks();
    await clock.pass(1_000);
    sockets.at(-1).breaks();
    await clock.pass(30_000);
    return { last: states.at(-1), reason: connection.state.reason, tries: sockets.length };
  },
};
