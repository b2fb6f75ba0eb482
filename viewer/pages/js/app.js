// The page: the current address, navigation, and everything that concerns all pages.
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";
import { Compare } from "./compare.js";
import { Inbox } from "./inbox.js";
import { keys, keysOn, listen, setKeys } from "./keys.js";
import { Memory } from "./memory.js";
import { Dialog, go, Icon, Trouble } from "./parts.js";
import { RunPage } from "./run.js";
import { Runs } from "./runs.js";
import { changed, follow, hasToken, login, logout, say, store, useStore } from "./store.js";
import { Try } from "./try.js";
import { plain, visible } from "./text.js";

const themes = ["auto", "light", "dark"];
const ui = { theme: "auto", help: false };
try {
  if (themes.includes(localStorage.getItem("pawl.theme"))) ui.theme = localStorage.getItem("pawl.theme");
} catch {}
const paint = () => (ui.theme === "auto" ? document.documentElement.removeAttribute("data-theme") : document.documentElement.setAttribute("data-theme", ui.theme));
paint();

function nextTheme() {
  ui.theme = themes[(themes.indexOf(ui.theme) + 1) % themes.length];
  try {
    localStorage.setItem("pawl.theme", ui.theme);
  } catch {}
  paint();
  say("Colours: " + ui.theme);
}

// route returns the page that the address names.
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((p) => {
    try {
      return decodeURIComponent(p);
    } catch {
      return p;
    }
  });
  return { page: parts[0] || "runs", rest: parts.slice(1), query: new URLSearchParams(query || "") };
}

const places = [
  { id: "runs", title: "Runs", icon: "runs" },
  { id: "inbox", title: "Inbox", icon: "inbox" },
  { id: "try", title: "Try", icon: "try" },
  { id: "compare", title: "Compare", icon: "compare" },
  { id: "memory", title: "Memory", icon: "memory" },
];

function App() {
  const s = useStore();
  const [at, setAt] = useState(route);
  const first = useRef(true);
  useEffect(() => {
    const f = () => setAt(route());
    addEventListener("hashchange", f);
    return () => removeEventListener("hashchange", f);
  }, []);
  const where = at.page + "/" + (at.page === "run" ? at.rest.join("/") : "");
  useLayoutEffect(() => { // before a key event can arrive
    document.title = (at.page === "run" ? plain(at.rest[0] || "") : places.find((p) => p.id === at.page)?.title || "Not found") + " · pawl";
    if (!first.current) document.querySelector("main h1")?.focus({ preventScroll: true });
    if (!first.current) scrollTo(0, 0);
    first.current = false;
  }, [where]);
  const waiting = s.waiting.reduce((n, w) => n + w.pending.length, 0);
  const Page = { runs: Runs, inbox: Inbox, compare: Compare, memory: Memory, try: Try, run: RunPage }[at.page];
  const props = { runs: {}, inbox: {}, memory: {}, compare: { a: at.rest[0], b: at.rest[1] }, try: { what: at.rest[0], name: at.rest[1] }, run: { key: at.rest[0], id: at.rest[0], query: at.query } }[at.page];
  return html`
    <a class="skip" href="#main" onClick=${(e) => (e.preventDefault(), document.getElementById("main").focus())}>To the content</a>
    <header class="top">
      <a class="logo" href="#/runs" aria-label="pawl, all runs"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M5 24h4l3-5v5h4l3-5v5h4l3-5v5M8 9l11 7" /><circle cx="8" cy="9" r="2.4" /></svg><span>pawl</span></a>
      <nav aria-label="Pages">${places.map((p) => html`<a key=${p.id} href=${"#/" + p.id} aria-current=${at.page === p.id || (p.id === "runs" && at.page === "run") ? "page" : undefined}><${Icon} name=${p.icon} /><span>${p.title}</span>${p.id === "inbox" && waiting > 0 ? html`<span class="count" aria-label=${waiting + " waiting"}>${waiting}</span>` : ""}</a>`)}</nav>
      <div class="tools">
        <span class=${"link " + s.link} title=${linkWords[s.link]}><span class="hide">${linkWords[s.link]}</span></span>
        ${hasToken() && html`<button class="icononly" onClick=${logout} aria-label="Forget the token" title="Forget the token"><${Icon} name="key" /></button>`}
        <button class="icononly" id="theme" onClick=${nextTheme} aria-label=${"Colours: " + ui.theme} title=${"Colours: " + ui.theme}><${Icon} name=${{ auto: "auto", light: "sun", dark: "moon" }[ui.theme]} /></button>
        <button class="icononly" onClick=${() => ((ui.help = true), changed())} aria-label="Help and keys" title="Help and keys (?)"><span class="q">?</span></button>
      </div>
    </header>
    ${s.link === "lost" && html`<div class="away" role="alert">The server does not answer. Trying again… <span class="muted">What you see may be old.</span></div>`}
    <main id="main" tabindex="-1">
      ${s.login ? html`<${Login} fault=${s.login} />` : html`
        ${s.fault && html`<${Trouble} fault=${s.fault} onAgain=${follow} />`}
        ${Page ? html`<${Page} ...${props} />` : html`<section class="page"><div class="pagehead"><h1 tabindex="-1">There is no such page</h1></div><p><a href="#/runs">All runs</a></p></section>`}`}
    </main>
    <div class="hide" aria-live="polite" role="status">${visible(s.says)}</div>
    ${ui.help && html`<${Help} />`}`;
}

const linkWords = { connecting: "Connecting…", open: "Live: changes are shown as they happen", lost: "The server does not answer", denied: "Not let in", ended: "The server has ended the stream" };

function Login({ fault }) {
  const [token, setToken] = useState("");
  const input = useRef();
  useLayoutEffect(() => input.current?.focus(), []);
  const wrong = fault.code === "wrong_token";
  return html`<section class="page login" aria-labelledby="h-login"><form class="card" onSubmit=${(e) => (e.preventDefault(), token.trim() && login(token.trim()))}>
    <h1 id="h-login" tabindex="-1">A token, please</h1>
    <p>This server requires a token: a token that <code>pawl serve</code> got with <code>--token-env</code> or <code>--tokens</code>.</p>
    ${wrong && html`<p class="wrong" role="alert">The token is unknown.</p>`}
    <label class="field"><span class="fieldname">Token</span><input ref=${input} type="password" name="token" autocomplete="off" spellcheck="false" value=${token} onInput=${(e) => setToken(e.target.value)} aria-invalid=${wrong ? "true" : "false"} /></label>
    <p class="muted">It is kept for this tab alone, until it is closed, and never part of an address.</p>
    <button class="primary" type="submit" disabled=${!token.trim()}>Let me in</button>
  </form></section>`;
}

function Help() {
  const [on, setOn] = useState(keysOn());
  return html`<${Dialog} title="Keys" onClose=${() => ((ui.help = false), changed())}>
    <div class="keys">${keys.map(([title, list]) => html`<section><h3>${title}</h3><dl>${list.map(([k, does]) => html`<div><dt>${k.split(" ").map((x) => html`<kbd>${x}</kbd> `)}</dt><dd>${does}</dd></div>`)}</dl></section>`)}</div>
    <label class="field check"><input type="checkbox" checked=${on} onChange=${(e) => (setOn(e.target.checked), setKeys(e.target.checked))} /> <span class="fieldname">Keys of a single letter</span></label>
  </${Dialog}>`;
}

listen({ go, theme: nextTheme, help: () => ((ui.help = true), changed()) });
follow();
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
