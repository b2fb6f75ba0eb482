// Two runs next to each other: their costs, and their differences.
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { get, runPath } from "./api.js";
import { pretty } from "./json.js";
import { diff, near } from "./linediff.js";
import { Badge, Diffed, Empty, go, runLink, Skeleton, stateOf, Trouble } from "./parts.js";
import { useStore } from "./store.js";
import { count, line, money, plain, plural, span, visible } from "./text.js";

export function Compare({ a, b }) {
  const s = useStore();
  const [got, setGot] = useState(null);
  const [fault, setFault] = useState(null);
  const runs = [...s.runs.values()].sort((x, y) => (x.created < y.created ? 1 : -1));
  const load = () => {
    setGot(null);
    setFault(null);
    if (!a || !b) return;
    let gone = false;
    Promise.all([get(runPath(a, "/diff/" + encodeURIComponent(b))), get(runPath(a)), get(runPath(b)), get(runPath(a, "/timeline")), get(runPath(b, "/timeline"))]).then(
      ([d, x, y, tx, ty]) => !gone && setGot({ list: d.differences, sides: [{ ...x, tl: tx }, { ...y, tl: ty }] }),
      (e) => !gone && setFault(e),
    );
    return () => (gone = true);
  };
  useEffect(load, [a, b]);
  const pick = (x, y) => go("#/compare/" + encodeURIComponent(x || "") + (y ? "/" + encodeURIComponent(y) : ""));
  const choose = (label, now, other, on) => html`<label class="field"><span class="fieldname">${label}</span>
    <select value=${now || ""} onChange=${(e) => on(e.target.value)}><option value="">Choose a run…</option>
      ${now && !s.runs.has(now) && html`<option value=${now}>${plain(now)}</option>`}
      ${runs.slice(0, 500).map((r) => html`<option value=${r.id} disabled=${r.id === other}>${line(r.task || "no task", 50)} · ${plain(r.id)}</option>`)}</select></label>`;
  return html`<section class="page" aria-labelledby="h-compare">
    <div class="pagehead"><h1 id="h-compare" tabindex="-1">Compare</h1></div>
    <div class="card pad picktwo">${choose("First", a, b, (v) => pick(v, b))}${choose("Second", b, a, (v) => pick(a, v))}</div>
    ${fault && html`<${Trouble} fault=${fault} onAgain=${load} />`}
    ${!a || !b
      ? html`<${Empty} icon="compare" title="Choose two runs"><p>A run and its fork, or the same task twice. In the list, <kbd>x</kbd> marks runs to compare.</p></${Empty}>`
      : !got && !fault ? html`<${Skeleton} rows=${5} />` : got && html`<${Result} got=${got} />`}
  </section>`;
}

function Result({ got }) {
  const [x, y] = got.sides;
  const u = (r) => r.spent?.usage || {};
  const took = (r) => Date.parse(r.tl?.ended || r.updated) - Date.parse(r.created);
  const rows = [
    ["Outcome", (r) => html`<${Badge} state=${stateOf(r)} />`],
    ["Agent", (r) => visible(r.agent || "")],
    ["Time", (r) => span(took(r)), took],
    ["Requests", (r) => count(r.spent?.requests), (r) => r.spent?.requests],
    ["Calls", (r) => count(r.spent?.calls), (r) => r.spent?.calls],
    ["Tokens in", (r) => count(u(r).input), (r) => u(r).input],
    ["Tokens out", (r) => count(u(r).output), (r) => u(r).output],
    ["Cost", (r) => money(u(r).cost) || "–", (r) => u(r).cost],
  ];
  return html`<div class="scroll" tabindex="0" role="region" aria-label="figures"><table class="figures"><thead><tr><th scope="col"><span class="hide">Figure</span></th>${got.sides.map((r) => html`<th scope="col"><a class="mono" href=${runLink(r.id)}>${visible(r.id)}</a></th>`)}<th scope="col">Change</th></tr></thead>
    <tbody>${rows.map(([name, show, of]) => html`<tr><th scope="row">${name}</th><td>${show(x)}</td><td>${show(y)}</td><td>${of ? delta(of(x), of(y)) : ""}</td></tr>`)}</tbody></table></div>
    <h2>${got.list.length ? plural(got.list.length, "difference") : "No differences"}</h2>
    ${!got.list.length && html`<p class="muted">What was said, called and given is the same, to the byte.</p>`}
    <ol class="differences">${got.list.slice(0, 300).map((d, i) => html`<li key=${i}><${Difference} d=${d} first=${i < 8} /></li>`)}</ol>
    ${got.list.length > 300 && html`<p class="muted">And ${got.list.length - 300} more.</p>`}`;
}

function delta(a, b) {
  if (!a && !b) return "";
  if (a === b) return html`<span class="muted">same</span>`;
  if (!a) return "";
  const p = Math.round(((b || 0) / a - 1) * 100);
  if (p === 0) return html`<span class="muted">about the same</span>`;
  return (p > 0 ? "+" : p < 0 ? "−" : "") + Math.abs(p) + "%";
}

// textOf returns the text of a side to compare: the words and the calls, without the frame around
// them.
const textOf = (v) => (v === undefined || v === null ? "" : pretty(v));

function Difference({ d, first }) {
  const [open, setOpen] = useState(first);
  const side = d.a === undefined ? "only in the second" : d.b === undefined ? "only in the first" : "";
  return html`<details class="card pad" open=${open} onToggle=${(e) => setOpen(e.target.open)}>
    <summary><span class="chip">${visible(d.what)}</span> <span class="mono">${visible(d.key || { messages: "what it was given", end: "how it ended" }[d.what] || "")}</span> <span class="muted">${side}</span></summary>
    ${open && html`<${Diffed} lines=${cut(near(diff(textOf(d.a), textOf(d.b))))} label=${"difference in " + d.what + " " + d.key} />`}
  </details>`;
}

const cut = (lines) => (lines.length > 600 ? [...lines.slice(0, 600), { sign: "…", text: lines.length - 600 + " more lines" }] : lines).map((l) => (l.text.length > 4000 ? { ...l, text: l.text.slice(0, 4000) + "…" } : l));
