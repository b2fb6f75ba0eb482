// The details of one request, call or nested run.
import { html, useState } from "../vendor/htm-preact.js";
import { argsOf, pretty, resultText } from "./json.js";
import { diff, near } from "./linediff.js";
import { Markdown } from "./markdown.js";
import { Badge, Diffed, Icon, Stat, Time } from "./parts.js";
import { Question } from "./question.js";
import { transcript } from "./fold.js";
import { MessageView } from "./transcript.js";
import { ResultView } from "./try.js";
import { nameOf, outcomeOf, stepOf } from "./waterfall.js";
import { count, Long, money, moment, plural, span, visible } from "./text.js";

export function Detail({ n, run, given, t, pending, watch, onFork, onClose, onReplay }) {
  const View = { request: RequestDetail, call: CallDetail, run: InnerDetail }[n.kind];
  const outcome = outcomeOf(n);
  return html`<section class="detail card" id="detail" tabindex="-1" aria-label=${"Details of " + nameOf(n)}>
    <header>
      <span class=${"kindicon " + n.kind}><${Icon} name=${n.kind === "request" ? "model" : n.kind === "run" ? "run" : "call"} /></span>
      <div class="grow"><h2 class=${n.kind === "request" ? "" : "mono"}>${visible(nameOf(n))}</h2><p class="sub mono">${visible(n.key)}</p></div>
      ${outcome && outcome !== "none" ? html`<${Badge} state=${outcome} />` : ""}
      <button class="icononly" onClick=${onClose} aria-label="Close details"><${Icon} name="no" /></button>
    </header>
    <${View} n=${n} run=${run} given=${given} t=${t} pending=${pending} watch=${watch} onFork=${onFork} />
    ${onReplay && html`<p class="replayhere"><button class="small" onClick=${() => onReplay(n)}>Replay from here</button></p>`}
  </section>`;
}

// Usage shows the figures of a reply.
export function Usage({ u, t }) {
  if (!u) return null;
  const hit = u.input ? Math.round((100 * (u.cache_read || 0)) / u.input) : 0;
  return html`<dl class="stats">
    ${t?.from && t.to ? html`<${Stat} name="Time" hint=${moment(t.from)}>${span(t.to - t.from)}<//>` : ""}
    <${Stat} name="In">${count(u.input)}<//>
    <${Stat} name="Out">${count(u.output)}${u.reasoning ? html` <span class="muted">${count(u.reasoning)} thought</span>` : ""}<//>
    ${u.input ? html`<${Stat} name="Cache hit" hint=${count(u.cache_read) + " read, " + count(u.cache_write) + " written"}>${hit}%<//>` : ""}
    ${u.cost ? html`<${Stat} name="Cost">${money(u.cost)}<//>` : ""}
  </dl>`;
}

function Notices({ list }) {
  if (!list?.length) return null;
  return html`<h3>Notices</h3><ul class="notices">${list.slice(0, 100).map((x) => html`<li><span class="chip">${visible(x.code || "notice")}</span> ${visible(x.text || "")}${x.data !== undefined ? html`<details><summary>data</summary><${Long} text=${pretty(x.data)} kind="json" label="data of the notice" /></details>` : ""}</li>`)}</ul>`;
}

function RequestDetail({ n, run, given, t, onFork }) {
  const step = stepOf(n.key);
  const parts = n.response?.message?.parts || [];
  const live = !n.response;
  const text = live ? n.text : parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  const thought = live ? n.reasoning : parts.filter((p) => p.type === "reasoning").map((p) => p.text).join("\n");
  const calls = live ? [...n.deltas.values()].map((d) => ({ name: d.name, args_text: d.text.join("") })) : parts.filter((p) => p.type === "tool_call");
  const [raw, setRaw] = useState(false);
  const root = n.run === "run";
  const before = root ? transcript(run, given) : [];
  const upto = before.findIndex((x) => x.request === n);
  const last = before.slice(0, Math.max(0, upto)).map((x) => !!x.request).lastIndexOf(true);
  const sent = n.messages ?? (upto < 0 ? undefined : new Set(before.slice(0, upto).map((x, i) => (x.call ? "results" + x.step : i))).size); // results of a step are one message
  const fresh = upto < 0 ? [] : before.slice(last + 1, upto);
  return html`
    <${Usage} u=${n.response?.usage} t=${t} />
    <h3>Request</h3>
    <p class="facts">Step ${step}${sent !== undefined ? html` · ${plural(sent, "message")}` : ""}${n.tools !== undefined ? html` · ${plural(n.tools, "tool")} offered` : ""}${n.choice && n.choice !== "auto" ? html` · choice <code>${typeof n.choice === "string" ? n.choice : pretty(n.choice)}</code>` : ""}</p>
    ${root && fresh.length > 0 && html`<details><summary>New in it: ${fresh.length === 1 ? "1 message or result" : fresh.length + " messages and results"}${last >= 0 ? html` <span class="muted">(before them, ${upto - fresh.length} more)</span>` : ""}</summary>
      <div class="thread">${fresh.map((x) => html`<${MessageView} x=${x} brief=${true} />`)}</div></details>`}
    ${thought && html`<details open=${live}><summary>Reasoning <span class="muted">${thought.length > 80 ? plural(thought.split(/\s+/).length, "word") : ""}</span></summary><${Long} text=${thought} kind="prose" label="reasoning" /></details>`}
    ${(text || (!calls.length && !live)) && html`<div class="h3row"><h3>Reply</h3><div class="switch"><button class="small" aria-pressed=${raw ? "false" : "true"} onClick=${() => setRaw(false)}>Formatted</button><button class="small" aria-pressed=${raw ? "true" : "false"} onClick=${() => setRaw(true)}>As it is</button></div></div>
      ${raw ? html`<${Long} text=${text} kind="prose" label="reply" />` : html`<${Markdown} text=${text || "(no text)"} />`}`}
    ${calls.length > 0 && html`<h3>${plural(calls.length, "call")}</h3>${calls.map((c, i) => html`<div class="callline" key=${i}><span class="mono">${visible(c.name || "…")}</span><${Long} text=${argsOf(c)} kind="json" label=${"arguments of " + c.name} /></div>`)}`}
    ${n.error && html`<p class="wrong">${visible(n.error.slice(0, 2000))}</p>`}
    ${live && n.running && html`<p class="muted" role="status">The model is writing…</p>`}
    ${n.response && html`<p class="facts muted">Ended with ${visible(n.response.finish || "")}${n.response.id ? html` · <span class="mono">${visible(n.response.id)}</span>` : ""}</p>`}
    <${Notices} list=${n.notices} />
    ${root && n.response && html`<p><button onClick=${() => onFork(step)}><${Icon} name="fork" /> Fork after this reply</button></p>`}`;
}

function CallDetail({ n, run, t, pending, watch }) {
  const x = n.execution;
  const asker = run.asker(n);
  const index = +n.key.slice(n.key.lastIndexOf("/") + 1);
  const asked = (asker?.response?.message?.parts || []).filter((p) => p.type === "tool_call")[index];
  const made = asked && asked.name === (x?.call?.name ?? asked.name) ? asked : n.started || x?.call;
  const ran = x?.call || n.started;
  const before = argsOf(made);
  const after = argsOf(ran);
  const open = pending?.find((w) => w.key === n.key);
  const spent = x?.spent?.usage;
  return html`
    <dl class="stats">
      ${t?.from && t.to ? html`<${Stat} name="Time" hint=${moment(t.from)}>${span(t.to - t.from)}<//>` : ""}
      ${(x?.attempts || n.attempts) > 1 ? html`<${Stat} name="Attempts">${x?.attempts || n.attempts}<//>` : ""}
      ${t?.waits?.length ? html`<${Stat} name="Waited">${span(t.waits.reduce((s, w) => s + (w.to || t.to || w.from) - w.from, 0))}<//>` : ""}
      ${spent?.input || spent?.output ? html`<${Stat} name="Spent inside">${count(spent.input + spent.output)} tok<//>` : ""}
      ${x?.cached ? html`<${Stat} name="Cached">yes<//>` : ""}
    </dl>
    ${n.early && html`<p class="facts"><span class="chip early">early</span> It began while the model was still writing.</p>`}
    ${x?.decision && html`<p class="facts">${x.decision.result ? "Answered" : x.decision.approve ? "Approved" : "Denied"} by <strong>${visible(x.decision.by || "unknown")}</strong>${x.decision.args !== undefined ? " with other arguments" : ""}${x.decision.reason ? html`: “${visible(x.decision.reason)}”` : ""}</p>`}
    ${open && html`<${Question} run=${watch.id} agent=${watch.head?.agent} w=${open} />`}
    ${!open && html`<h3>Arguments</h3>
      ${before !== after ? html`<p class="facts muted">As the model wrote them (−), and as they ran (+):</p><${Diffed} lines=${near(diff(before, after))} label="arguments before and after" /><details><summary>As they ran</summary><${Long} text=${after} kind="json" label="arguments" /></details>` : html`<${Long} text=${after} kind="json" label="arguments" />`}`}
    ${x?.repairs?.length > 0 && html`<h3>Repairs</h3><ul>${x.repairs.map((r) => html`<li>${visible(r)}</li>`)}</ul>`}
    ${n.progress.length > 0 && html`<details open=${n.running}><summary>Progress (${n.progress.length})</summary><ol class="progress">${n.progress.slice(-50).map((p) => html`<li>${visible((p.text || "").slice(0, 500))}</li>`)}</ol></details>`}
    ${n.running && !x && html`<p class="muted" role="status">At work…</p>`}
    ${x && !open && x.outcome !== "pending" && html`<h3>Result</h3><${ResultView} result=${x.result} />`}
    ${x?.error && x.error !== resultText(x.result) && html`<h3>For the record</h3><${Long} text=${x.error} label="error" />`}
    <${Notices} list=${n.notices} />`;
}

function InnerDetail({ n, run }) {
  const u = { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0, cost: 0 };
  for (const m of run.nodes.values()) if (m.key.startsWith(n.key + "/") && m.response?.usage) for (const k of Object.keys(u)) u[k] += m.response.usage[k] || 0;
  return html`<p class="facts">An agent at work inside of the call <span class="mono">${visible(n.key.slice(0, n.key.lastIndexOf("/")))}</span>.</p>
    <${Usage} u=${u} />
    ${n.end?.cause && html`<p>${visible(n.end.cause)}</p>`}${n.error && html`<p class="wrong">${visible(n.error)}</p>`}`;
}
