// The server: requests, and event streams that resume where they broke. A token is stored for this
// tab only, and sent in a header only.
import { parse } from "./json.js";

const tokenKey = "pawl.token";
let token = "";
try {
  token = sessionStorage.getItem(tokenKey) || "";
} catch {} // no storage: the token lives as long as the page

export const hasToken = () => token !== "";

export function setToken(t) {
  token = t;
  try {
    if (t) sessionStorage.setItem(tokenKey, t);
    else sessionStorage.removeItem(tokenKey);
  } catch {}
}

// Fault is why a request failed; code is the server's, or "away" if there was no response.
export class Fault extends Error {
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint || "";
  }
}

let skew = 0; // how far the server's clock is ahead, in ms
export const serverNow = () => Date.now() + skew;

const listeners = new Set();
export const onTrouble = (f) => listeners.add(f); // called with each Fault that requires a token

// The pages may stand below a prefix, behind a proxy or in an application: the API is beside them.
const prefix = new URL("..", import.meta.url).pathname.slice(0, -1);

async function ask(method, path, body, options = {}) {
  const headers = { Accept: options.accept || "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (options.lastEventID) headers["Last-Event-ID"] = options.lastEventID;
  let res;
  try {
    res = await fetch(prefix + path, { method, headers, body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body), signal: options.signal, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Fault(0, "away", "The server does not answer.", "Is pawl serve still running? This page tries again by itself.");
  }
  const date = Date.parse(res.headers.get("Date") || "");
  if (date && Math.abs(date - Date.now()) > 2500) skew = date - Date.now();
  if (!res.ok) {
    let e = {};
    try {
      e = (await res.json()).error || {};
    } catch {}
    const fault = new Fault(res.status, e.code || "failed", e.message || "The server answered " + res.status + ".", e.hint);
    if (res.status === 401) listeners.forEach((f) => f(fault));
    throw fault;
  }
  return res;
}

export async function get(path, options) {
  return parse(await (await ask("GET", path, undefined, options)).text());
}

export async function post(path, body, options) {
  return parse(await (await ask("POST", path, body ?? {}, options)).text());
}

export async function del(path) {
  return parse(await (await ask("DELETE", path)).text());
}

export const runPath = (id, rest = "") => "/v1/runs/" + encodeURIComponent(id) + rest;

// ms until a silent stream counts as broken: the server sends a heartbeat every 15 s
const silent = 45000;

// stream reads events from path until it is stopped or the server sends no more. o.event gets {id,
// name, data}, o.state gets "open", "lost" or "ended", o.fault gets a Fault that a retry does not
// repair. While the page is hidden it has no connection, because a browser allows six per server.
// After that, and after a break, it resumes after the last event. It returns the function that
// stops it.
export function stream(path, o) {
  let last = o.lastEventID || "";
  let wait = 500;
  let stopped = false;
  let connection = null;
  let look = null;
  const seen = () => (document.hidden ? connection?.abort() : look?.());
  document.addEventListener("visibilitychange", seen);
  const run = async () => {
    while (!stopped) {
      if (document.hidden) {
        await new Promise((ok) => (look = ok));
        continue;
      }
      let ended = false;
      let alive = Date.now();
      const mine = (connection = new AbortController());
      const dead = setInterval(() => Date.now() - alive > silent && mine.abort(), 5000);
      try {
        const res = await ask("GET", path, undefined, { accept: "text/event-stream", lastEventID: last, signal: mine.signal });
        if (res.status === 204) ended = true;
        else {
          o.state?.("open");
          await read(res.body, () => (alive = Date.now()), (e) => {
            if (stopped) return;
            wait = 500;
            if (e.id) last = e.id;
            if (o.event(e) === "end") {
              ended = true;
              mine.abort();
            }
          });
        }
      } catch (e) {
        if (e instanceof Fault && e.status >= 400 && e.status < 500 && e.status !== 429 && e.status !== 408) {
          if (!stopped) o.fault?.(e);
          break;
        }
      } finally {
        clearInterval(dead);
      }
      if (stopped || ended) {
        if (ended && !stopped) o.state?.("ended");
        break;
      }
      if (document.hidden) continue;
      o.state?.("lost");
      await new Promise((ok) => setTimeout(ok, wait));
      wait = Math.min(wait * 2, 8000);
    }
    document.removeEventListener("visibilitychange", seen);
  };
  run();
  return () => {
    stopped = true;
    connection?.abort();
    look?.();
  };
}

// read calls tell for each event of a body, and life whenever data arrives.
async function read(body, life, tell) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = [];
  let event = { id: "", name: "", data: [] };
  const take = (line) => {
    if (line.endsWith("\r")) line = line.slice(0, -1);
    if (line === "") {
      if (event.data.length) tell({ id: event.id, name: event.name || "message", data: event.data.join("\n") });
      event = { id: "", name: "", data: [] };
    } else if (line.startsWith("data:")) event.data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) event.id = line.slice(3).trim();
    else if (line.startsWith("event:")) event.name = line.slice(6).trim();
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    life();
    const lines = decoder.decode(value, { stream: true }).split("\n");
    for (let i = 0; i < lines.length - 1; i++) {
      rest.push(lines[i]);
      take(rest.join("")); // a line of megabytes arrives in many pieces
      rest = [];
    }
    rest.push(lines[lines.length - 1]);
  }
}
