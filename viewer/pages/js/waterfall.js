// A run over time: a row for each request, call and nested run.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { Badge, Icon } from "./parts.js";
import { count, plain, span, visible } from "./text.js";

// axis maps moments to a line from 0 to 1. Long silences, such as the days until a person answers,
// are short on it.
export function axis(times) {
  times = [...times];
  const busy = [];
  for (const t of times) {
    if (!t.from) continue;
    let from = t.from;
    for (const w of t.waits) {
      busy.push([from, w.from]);
      from = w.to || t.to || w.from;
    }
    if (t.to >= from && (t.to || !t.waits.length)) busy.push([from, t.to || from]);
  }
  busy.sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [a, b] of busy) {
    const last = merged[merged.length - 1];
    if (last && a <= last[1]) last[1] = Math.max(last[1], b);
    else merged.push([a, Math.max(a, b)]);
  }
  if (!merged.length) return null;
  const work = merged.reduce((n, [a, b]) => n + b - a, 0);
  const bound = Math.max(1500, work / 3);
  const pieces = [];
  let at = 0;
  merged.forEach(([a, b], i) => {
    if (i > 0) {
      const gap = a - merged[i - 1][1];
      const wide = gap > bound ? Math.max(work / 12, 100) : gap;
      pieces.push({ from: merged[i - 1][1], to: a, x: at, w: wide, gap: gap > bound ? gap : 0 });
      at += wide;
    }
    pieces.push({ from: a, to: b, x: at, w: b - a, gap: 0 });
    at += b - a;
  });
  if (times.some((t) => t.open && t.waits.some((w) => !w.to))) { // an open wait extends to the end of the line
    const last = merged[merged.length - 1][1];
    pieces.push({ from: last, to: Infinity, x: at, w: Math.max(work / 10, 100), gap: 0 });
    at += Math.max(work / 10, 100);
  }
  const whole = Math.max(at, 1);
  const x = (t) => {
    if (t === Infinity) return 1;
    let lo = 0;
    let hi = pieces.length - 1;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (pieces[mid].to < t) lo = mid + 1;
      else hi = mid;
    }
    const p = pieces[lo];
    const part = p.to > p.from ? Math.min(1, Math.max(0, (t - p.from) / (p.to - p.from))) : 0;
    return (p.x + part * p.w) / whole;
  };
  return { x, whole, gaps: pieces.filter((p) => p.gap).map((p) => ({ x: p.x / whole, w: p.w / whole, ms: p.gap })), from: merged[0][0] };
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5];

function ticks(ax) {
  if (!ax || ax.gaps.length) return [];
  const each = steps.find((s) => ax.whole / s <= 6) || ax.whole / 5;
  const out = [];
  for (let t = each; t < ax.whole * 0.97; t += each) out.push({ x: t / ax.whole, text: span(t) });
  return out;
}

// Waterfall shows the rows. shown is the run as of some moment; times are the times of the whole
// run.
export function Waterfall({ shown, times, selected, onSelect, ordinal }) {
  const [closed, setClosed] = useState(() => new Set());
  const ref = useRef();
  const tree = shown.tree();
  const ax = useMemo(() => axis(times.values()), [times]);
  const beside = together(shown, times);
  const [most, setMost] = useState(400);
  const flat = [];
  const walk = (key, level) => {
    for (const n of tree.get(key) || []) {
      const kids = tree.get(n.key) || [];
      flat.push({ n, level, kids: kids.length });
      if (kids.length && !closed.has(n.key)) walk(n.key, level + 1);
    }
  };
  walk("run", 1);
  const toggle = (key, to) =>
    setClosed((was) => {
      const next = new Set(was);
      if (to ?? next.has(key)) next.delete(key);
      else next.add(key);
      return next;
    });
  const focusOn = (key) => ref.current?.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  const key = (e) => {
    const i = flat.findIndex((f) => f.n.key === e.target.dataset?.key);
    if (i < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    const { n, level, kids } = flat[i];
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, j: i + 1, k: i - 1, Home: 0, End: flat.length - 1 }[e.key];
    if (to !== undefined) {
      const next = flat[Math.max(0, Math.min(flat.length - 1, to))];
      focusOn(next.n.key);
      if (selected) onSelect(next.n.key, true);
    } else if (e.key === "ArrowRight" && kids) closed.has(n.key) ? toggle(n.key, true) : focusOn(flat[i + 1].n.key);
    else if (e.key === "ArrowLeft") {
      if (kids && !closed.has(n.key)) toggle(n.key, false);
      else {
        const up = flat.slice(0, i).reverse().find((f) => f.level < level);
        if (up) focusOn(up.n.key);
      }
    } else if (e.key === "Enter" || e.key === " ") onSelect(n.key);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const current = flat.some((f) => f.n.key === selected) ? selected : flat[0]?.n.key;
  return html`<div class="waterfall" onKeyDown=${key} ref=${ref}>
    <div class="axis" aria-hidden="true"><span></span><div class="lane">
      ${ticks(ax).map((t) => html`<span class="tick" ref=${place(t.x)}>${t.text}</span>`)}
      ${(ax?.gaps || []).map((g) => html`<span class="gapmark" ref=${place(g.x, g.w)} title=${"nothing for " + span(g.ms)}>${span(g.ms)}</span>`)}
    </div><span></span></div>
    <div role="tree" aria-label="Timeline" class="tree">
      ${flat.slice(0, most).map(({ n, level, kids }, i) => html`<${TimeRow} key=${n.key} n=${n} level=${level} kids=${kids} open=${!closed.has(n.key)} t=${times.get(n.key)} ax=${ax} beside=${beside.get(n.key) || 0}
        selected=${n.key === selected} tab=${n.key === current ? 0 : -1} onToggle=${() => toggle(n.key)} onSelect=${() => onSelect(n.key)} index=${i} of=${flat.length} ordinal=${ordinal} />`)}
    </div>
    ${flat.length > most && html`<p class="center"><button onClick=${() => setMost(most + 400)}>Show ${Math.min(400, flat.length - most)} more of ${flat.length - most}</button></p>`}
  </div>`;
}

// together returns, for each call, how many calls of its step were active at once, including
// itself.
function together(shown, times) {
  const steps = new Map();
  for (const n of shown.nodes.values()) {
    const t = times.get(n.key);
    if (n.kind !== "call" || !t?.from) continue;
    const up = n.key.slice(0, n.key.lastIndexOf("/"));
    if (!steps.has(up)) steps.set(up, []);
    steps.get(up).push([n.key, t]);
  }
  const out = new Map();
  for (const calls of steps.values()) for (const [key, t] of calls) out.set(key, calls.filter(([k, o]) => k === key || (t.to > o.from && o.to > t.from)).length);
  return out;
}

// place positions an element through its style object, because the page's policy permits no style
// attributes.
const place = (x, w) => (el) => {
  if (!el) return;
  el.style.left = (x * 100).toFixed(3) + "%";
  if (w !== undefined) el.style.width = (w * 100).toFixed(3) + "%";
};

// nameOf returns the label of a row.
export const nameOf = (n) => (n.kind === "request" ? n.response?.model || n.model || "model" : n.name || "?");

export const outcomeOf = (n) => (n.running ? "running" : n.kind === "call" ? n.execution?.outcome : n.kind === "run" ? n.end?.stop : n.response ? "" : n.error ? "failed" : n.kind === "request" ? "none" : "");

function TimeRow({ n, level, kids, open, t, ax, beside, selected, tab, onToggle, onSelect, index, of, ordinal }) {
  const outcome = outcomeOf(n);
  const ms = t?.from && t.to ? t.to - t.from : 0;
  const calls = (n.response?.message?.parts || []).filter((p) => p.type === "tool_call").length;
  const usage = n.response?.usage;
  const what = { request: "model request", call: "call", run: "agent" }[n.kind];
  const label = [what, plain(nameOf(n)), n.kind === "request" ? "step " + stepOf(n.key) : "", outcome === "none" ? "no reply" : outcome, n.early ? "began early" : "", beside > 1 ? beside + " together" : "", ms ? span(ms) : ""].filter(Boolean).join(", ");
  const x0 = ax && t?.from ? ax.x(t.from) : ordinal ? index / of : 0;
  const end = t?.to || (t?.open && t.waits.some((w) => !w.to) ? Infinity : t?.from);
  const x1 = ax && t?.from ? ax.x(end) : ordinal ? (index + 1) / of : 0;
  return html`<div class=${"trow " + n.kind + " " + (outcome || "") + (t?.copied ? " copied" : "")} role="treeitem" data-key=${n.key} aria-level=${level} aria-label=${label} aria-selected=${selected ? "true" : "false"} aria-expanded=${kids ? (open ? "true" : "false") : undefined} tabindex=${tab} onClick=${onSelect}>
    <div class="tname" ref=${(el) => el && el.style.setProperty("--level", Math.min(level - 1, 8))}>
      <span class=${"twist" + (kids ? "" : " none")} onClick=${kids ? (e) => (e.stopPropagation(), onToggle()) : undefined}>${kids ? html`<${Icon} name="next" />` : ""}</span>
      <span class=${"kindicon " + n.kind}><${Icon} name=${n.kind === "request" ? "model" : n.kind === "run" ? "run" : "call"} /></span>
      <span class="tlabel">${n.kind === "request" ? html`Step ${stepOf(n.key)} <span class="muted">${visible(nameOf(n).slice(0, 80))}</span>` : visible(nameOf(n).slice(0, 80))}</span>
      ${n.kind === "request" && calls > 0 ? html`<span class="chip" title=${calls + " calls"}>${calls} call${calls > 1 ? "s" : ""}</span>` : ""}
      ${n.early ? html`<span class="chip early" title="It began while the model was still writing.">early</span>` : ""}
      ${beside > 1 ? html`<span class="chip" title=${beside + " calls at once"}>∥ ${beside}</span>` : ""}
      ${n.execution?.cached ? html`<span class="chip">cached</span>` : ""}
      ${n.execution?.repairs?.length ? html`<span class="chip warn">repaired</span>` : ""}
      ${t?.copied ? html`<span class="chip">copied</span>` : ""}
      ${n.kind === "call" && outcome && outcome !== "ok" && outcome !== "running" ? html`<${Badge} state=${outcome} />` : ""}
    </div>
    <div class="lane">${x1 > 0 || t?.from || ordinal ? html`<span class=${"bar" + (n.running ? " live" : "")} ref=${place(x0, Math.max(0, x1 - x0))}>
      </span>${(t?.waits || []).map((w) => ax && html`<span class="bar waits" title="waited for a person" ref=${place(ax.x(w.from), Math.max(0, ax.x(w.to || end) - ax.x(w.from)))} />`)}` : ""}</div>
    <div class="ttime">${ms ? span(ms) : n.running ? "…" : ""}${usage ? html`<span class="muted tok">${count(usage.input + usage.output)} tok</span>` : ""}</div>
  </div>`;
}

export const stepOf = (key) => +(/\/(\d+)\/model$/.exec(key)?.[1] ?? -1) + 1;
