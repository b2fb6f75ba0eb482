// Data that all pages share: the list of runs, the pending calls, the agents and tools. It follows
// the server while the page is visible.
import { useEffect, useState } from "../vendor/htm-preact.js";
import { get, stream, onTrouble, setToken, hasToken } from "./api.js";
import { parse } from "./json.js";

export const store = {
  runs: new Map(), // by ID, as sent by the server
  listed: false, // the list was received once
  link: "connecting", // open, lost, denied
  login: null, // the Fault that requires a token
  fault: null,
  waiting: [], // [{run, pending}]
  agents: null,
  tools: null,
  says: "", // for screen readers
};

const watchers = new Set();
let due = 0;

// changed redraws the components that use the store, once per frame.
export function changed() {
  if (due) return;
  due = requestAnimationFrame(() => {
    due = 0;
    for (const f of [...watchers]) f();
  });
}

// useStore redraws a component when the store changes.
export function useStore() {
  const [, again] = useState(0);
  useEffect(() => {
    const f = () => again((n) => n + 1);
    watchers.add(f);
    return () => watchers.delete(f);
  }, []);
  return store;
}

// say announces something to screen readers, politely.
export function say(text) {
  store.says = text;
  changed();
}

let stop = null;
let asking = 0;

function waitingChanged() {
  clearTimeout(asking);
  asking = setTimeout(refreshInbox, 60);
}

// refreshInbox requests the pending calls.
export async function refreshInbox() {
  try {
    const all = [];
    for (let after = ""; ; ) {
      const page = await get("/v1/pending" + (after ? "?after=" + encodeURIComponent(after) : ""));
      all.push(...page.waiting);
      if (!page.after || all.length > 500) break;
      after = page.after;
    }
    const before = store.waiting.reduce((n, w) => n + w.pending.length, 0);
    store.waiting = all;
    const now = all.reduce((n, w) => n + w.pending.length, 0);
    if (now > before) say(now === 1 ? "1 question waits" : now + " questions wait");
    changed();
  } catch {} // the list already shows that the server is not reachable
}

// follow connects to the server. It is called again after a login.
export function follow() {
  stop?.();
  store.link = "connecting";
  store.login = store.fault = null;
  changed();
  let known = new Set();
  stop = stream("/v1/runs", {
    state(s) {
      if (s === "open") known = new Set();
      const was = store.link;
      store.link = s;
      if (s === "lost" && was === "open") say("The connection to the server is lost. Trying again.");
      if (s === "open" && was === "lost") say("Connected again.");
      changed();
    },
    event(e) {
      if (e.name === "run") {
        const run = parse(e.data);
        known.add(run.id);
        const before = store.runs.get(run.id);
        store.runs.set(run.id, run);
        if ((before?.state === "waiting") !== (run.state === "waiting") || (before?.waits || 0) !== (run.waits || 0) || run.state === "waiting") waitingChanged();
      } else if (e.name === "gone") {
        store.runs.delete(parse(e.data).id);
        waitingChanged();
      } else if (e.name === "listed") {
        for (const id of [...store.runs.keys()]) if (!known.has(id)) store.runs.delete(id);
        store.listed = true;
        if (!store.agents) loadAgents();
      }
      changed();
    },
    fault(f) {
      store.link = "denied";
      if (f.status !== 401) store.fault = f;
      changed();
    },
  });
}

export async function loadAgents() {
  try {
    const [agents, tools] = await Promise.all([get("/v1/agents"), get("/v1/tools")]);
    store.agents = agents.agents || [];
    store.tools = tools.tools || [];
  } catch (e) {
    store.agents ||= [];
    store.tools ||= [];
    store.fault ||= e;
  }
  changed();
}

onTrouble((f) => {
  store.login = f;
  stop?.();
  store.link = "denied";
  changed();
});

// login stores a token and starts anew with it.
export function login(token) {
  setToken(token);
  store.runs.clear();
  Object.assign(store, { listed: false, waiting: [], agents: null, tools: null });
  follow();
}

export function logout() {
  login("");
}

export { hasToken };
