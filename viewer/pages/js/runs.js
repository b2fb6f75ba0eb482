// The list of runs, live.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { serverNow } from "./api.js";
import { Badge, Empty, go, Icon, runLink, Skeleton, stateOf, Time, useTick } from "./parts.js";
import { classOf, toneOf } from "./states.js";
import { useStore } from "./store.js";
import { count, line, money, plain, plural, span, visible } from "./text.js";

const filters = [
  { id: "", title: "All", has: () => true },
  { id: "running", title: "Running", has: (r) => r.state === "running" },
  { id: "waiting", title: "Waiting", has: (r) => r.state === "waiting" },
  { id: "failed", title: "Failed", has: (r) => r.state === "failed" || (r.state === "over" && !!r.stop && classOf(r.stop) === "failed") },
  { id: "over", title: "Done", has: (r) => r.state === "over" },
];

// while the page exists
const kept = { filter: "", search: "", agent: "", marked: [], calls: false };

export function Runs() {
  const s = useStore();
  const [filter, setFilter] = useState(kept.filter);
  const [search, setSearch] = useState(kept.search);
  const [agent, setAgent] = useState(kept.agent);
  const [marked, setMarked] = useState(kept.marked);
  const [calls, setCalls] = useState(kept.calls);
  const [most, setMost] = useState(100);
  const list = useRef();
  Object.assign(kept, { filter, search, agent, marked, calls });
  useTick(1000, s.runs.size > 0);

  const all = [...s.runs.values()].filter((r) => calls || !isCall(r));
  const found = useMemo(() => {
    const needles = search.toLowerCase().split(/\s+/).filter(Boolean);
    const f = filters.find((f) => f.id === filter);
    return all
      .filter((r) => f.has(r) && (!agent || r.agent === agent) && needles.every((n) => (r.id + " " + r.agent + " " + r.task + " " + r.state + " " + (r.stop || "")).toLowerCase().includes(n)))
      .sort((a, b) => (a.created < b.created ? 1 : a.created > b.created ? -1 : a.id < b.id ? -1 : 1));
  });
  const agents = [...new Set(all.map((r) => r.agent))].sort();
  const mark = (id) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m, id].slice(-2)));
  const hidden = [...s.runs.values()].filter(isCall).length;

  useLayoutEffect(() => {
    const key = (e) => {
      const el = document.activeElement?.closest?.("[data-run]");
      if (e.detail === "mark" && el) mark(el.dataset.run);
    };
    addEventListener("pawl-key", key);
    return () => removeEventListener("pawl-key", key);
  }, []);

  return html`<section class="page" aria-labelledby="h-runs">
    <div class="pagehead"><h1 id="h-runs" tabindex="-1">Runs</h1><a class="button primary" href="#/try"><${Icon} name="play" /> New run</a></div>
    <div class="filters" role="search">
      <label class="search"><span class="hide">Search runs</span><input id="search" type="search" placeholder="Search task, id, agent…" value=${search} onInput=${(e) => setSearch(e.target.value)} /><kbd aria-hidden="true">/</kbd></label>
      <div class="chips" role="group" aria-label="State">
        ${filters.map((f) => html`<button key=${f.id} class="pill" aria-pressed=${filter === f.id ? "true" : "false"} onClick=${() => setFilter(f.id)}>${f.title} <span class="num">${all.filter((r) => f.has(r) && (!agent || r.agent === agent)).length}</span></button>`)}
      </div>
      ${agents.length > 1 && html`<label class="pick"><span class="hide">Agent</span><select value=${agent} onChange=${(e) => setAgent(e.target.value)}><option value="">All agents</option>${agents.map((a) => html`<option value=${a}>${plain(a)}</option>`)}</select></label>`}
      ${hidden > 0 && html`<label class="field check"><input type="checkbox" checked=${calls} onChange=${(e) => setCalls(e.target.checked)} /> <span class="fieldname">tried calls (${hidden})</span></label>`}
    </div>
    ${marked.length > 0 && html`<div class="marked" role="status">
      <span>${marked.length === 1 ? html`<span class="mono">${visible(marked[0])}</span> is marked. Mark another to compare.` : html`<span class="mono">${visible(marked[0])}</span> and <span class="mono">${visible(marked[1])}</span> are marked.`}</span>
      ${marked.length === 2 && html`<a class="button primary" href=${"#/compare/" + marked.map(encodeURIComponent).join("/")}><${Icon} name="compare" /> Compare</a>`}
      <button class="small" onClick=${() => setMarked([])}>Clear</button>
    </div>`}
    ${!s.listed
      ? s.link === "denied" ? null : html`<${Skeleton} rows=${6} />`
      : found.length === 0
        ? all.length === 0
          ? html`<${Empty} icon="runs" title="No runs yet"><p>Begin one on the page <a href="#/try">Try</a>, or with <code>curl ${location.origin}/v1/runs -H 'Content-Type: application/json' -d '${'{"input":"Hello"}'}'</code></p></${Empty}>`
          : html`<${Empty} icon="runs" title="No run fits"><button onClick=${() => (setFilter(""), setSearch(""), setAgent(""))}>Show all ${all.length}</button></${Empty}>`
        : html`<div class="rowhead" aria-hidden="true"><span></span><span>State</span><span>Task</span><span>Agent</span><span class="r">Began</span><span class="r">Time</span><span class="r">Tokens</span><span class="r">Cost</span></div>
          <ul class="rows" ref=${list} data-list="runs" aria-label=${plural(found.length, "run")}>
            ${found.slice(0, most).map((r) => html`<${Row} key=${r.id} r=${r} marked=${marked.includes(r.id)} onMark=${() => mark(r.id)} />`)}
          </ul>
          ${found.length > most && html`<p class="center"><button onClick=${() => setMost(most + 200)}>Show ${Math.min(200, found.length - most)} more of ${found.length - most}</button></p>`}`}
  </section>`;
}

const isCall = (r) => (r.agent || "").endsWith("/call");

function Row({ r, marked, onMark }) {
  const u = r.spent?.usage || {};
  const began = Date.parse(r.created);
  const took = (r.state === "running" ? serverNow() : Date.parse(r.updated)) - began;
  const state = stateOf(r);
  return html`<li class=${"row " + toneOf(state)} data-run=${r.id}>
    <input type="checkbox" class="mark" checked=${marked} onChange=${onMark} aria-label=${"Mark " + plain(r.id) + " to compare"} />
    <span class="c-state"><${Badge} state=${state} />${r.waits > 0 && r.state === "waiting" ? html`<span class="chip">${r.waits}</span>` : ""}${r.outage ? html`<span class="chip" title=${plain(r.cause || "")}>${visible(r.outage.provider || "model")} is away</span>` : ""}</span>
    <a class="c-task" data-item href=${runLink(r.id)}><span class="task">${r.task ? line(r.task) : html`<span class="muted">no task</span>`}</span><span class="sub mono">${visible(r.id)}</span></a>
    <span class="c-agent">${visible(r.agent || "")}</span>
    <span class="c-when r"><${Time} at=${r.created} /></span>
    <span class="c-took r">${span(took)}</span>
    <span class="c-tokens r" title=${"in " + count(u.input) + ", out " + count(u.output)}>${u.input || u.output ? count((u.input || 0) + (u.output || 0)) : ""}</span>
    <span class="c-cost r">${money(u.cost)}</span>
  </li>`;
}
