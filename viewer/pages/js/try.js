// A place to try an agent or a tool.
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { get, post, runPath } from "./api.js";
import { parse, pretty, resultText } from "./json.js";
import { Badge, Empty, go, Icon, runLink, Skeleton, Tabs, Trouble } from "./parts.js";
import { Question } from "./question.js";
import { Args } from "./schema.js";
import { useStore } from "./store.js";
import { Long, line, plain, span, visible } from "./text.js";

export function Try({ what, name }) {
  const s = useStore();
  const tab = what === "tool" ? "tool" : "agent";
  return html`<section class="page" aria-labelledby="h-try">
    <div class="pagehead"><h1 id="h-try" tabindex="-1">Try</h1></div>
    <${Tabs} label="What to try" now=${tab} onPick=${(t) => go("#/try/" + t)} tabs=${[{ id: "agent", title: "An agent" }, { id: "tool", title: "A tool", count: s.tools?.length }]} />
    <div role="tabpanel" aria-labelledby=${"tab-" + tab}>
      ${!s.agents ? s.link !== "denied" && html`<${Skeleton} rows=${4} />` : tab === "agent" ? html`<${TryAgent} s=${s} />` : html`<${TryTool} s=${s} picked=${name} />`}
    </div>
  </section>`;
}

function TryAgent({ s }) {
  const [agent, setAgent] = useState("");
  const [input, setInput] = useState("");
  const [id, setID] = useState("");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const chosen = agent || s.agents[0]?.name || "";
  const info = s.agents.find((a) => a.name === chosen);
  const start = async (e) => {
    e?.preventDefault();
    if (!input.trim() || busy) return;
    setBusy(true);
    setFault(null);
    try {
      const run = await post("/v1/runs", { agent: chosen, input, id: id.trim() || undefined });
      go(runLink(run.id, "?tab=transcript"));
    } catch (e) {
      setFault(e);
      setBusy(false);
    }
  };
  if (!s.agents.length) return html`<${Empty} icon="try" title="No agent is served" />`;
  return html`<form class="card tryform" onSubmit=${start}>
    <label class="field"><span class="fieldname">Agent</span><select id="agent" value=${chosen} onChange=${(e) => setAgent(e.target.value)}>${s.agents.map((a) => html`<option value=${a.name}>${plain(a.name)}</option>`)}</select></label>
    <label class="field"><span class="fieldname">What should it do?</span><textarea id="input" rows="5" value=${input} onInput=${(e) => setInput(e.target.value)} onKeyDown=${(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && start(e)} /></label>
    <details><summary>More</summary><label class="field"><span class="fieldname">The run's id</span><span class="help">The same request with the same id is the same run.</span><input value=${id} onInput=${(e) => setID(e.target.value)} autocomplete="off" placeholder="one is made" /></label></details>
    <${Trouble} fault=${fault} />
    <div class="actions"><button class="primary" id="start" type="submit" disabled=${busy || !input.trim()}><${Icon} name="play" /> ${busy ? "Starting…" : "Start"}</button><span class="muted"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span></div>
    ${info?.tools?.length > 0 && html`<p class="muted tools">It may call ${info.tools.map((t) => html`<a class="chip mono" href=${"#/try/tool/" + encodeURIComponent(chosen + "/" + t)}>${visible(t)}</a>`)}</p>`}
  </form>`;
}

function TryTool({ s, picked }) {
  const [search, setSearch] = useState("");
  const list = s.tools.filter((t) => (t.name + " " + t.description + " " + t.agent).toLowerCase().includes(search.toLowerCase()));
  const tool = s.tools.find((t) => t.agent + "/" + t.name === picked) || (picked ? undefined : s.tools[0]);
  if (!s.tools.length) return html`<${Empty} icon="call" title="No agent has a tool" />`;
  return html`<div class="split">
    <nav class="card toollist" aria-label="Tools">
      <label class="search"><span class="hide">Search tools</span><input type="search" placeholder="Search tools…" value=${search} onInput=${(e) => setSearch(e.target.value)} /></label>
      <ul data-list="tools">${list.slice(0, 300).map((t) => html`<li key=${t.agent + "/" + t.name}><a data-item href=${"#/try/tool/" + encodeURIComponent(t.agent + "/" + t.name)} aria-current=${t === tool ? "true" : undefined}>
        <span class="mono">${visible(t.name)}</span><span class=${"effect " + t.effect}>${t.effect}</span><span class="sub">${line(t.description || "", 90)}</span></a></li>`)}</ul>
      ${list.length === 0 && html`<p class="muted pad">No tool fits.</p>`}
    </nav>
    ${tool ? html`<${ToolForm} key=${tool.agent + "/" + tool.name} tool=${tool} />` : html`<${Empty} icon="call" title="There is no such tool" />`}
  </div>`;
}

function ToolForm({ tool }) {
  const [text, setText] = useState("{}");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const [out, setOut] = useState(null);
  const [took, setTook] = useState(0);
  const result = useRef();
  let good = true;
  try {
    JSON.parse(text || "{}");
  } catch {
    good = false;
  }
  const call = async (e) => {
    e?.preventDefault();
    if (e?.submitter?.closest(".question")) return; // its buttons answer the question
    if (busy || !good) return;
    setBusy(true);
    setFault(null);
    setOut(null);
    const began = performance.now();
    try {
      setOut(await post("/v1/tools/" + encodeURIComponent(tool.name) + "/call", `{"agent":${JSON.stringify(tool.agent)},"args":${text.trim() || "{}"}}`));
    } catch (e) {
      setFault(e);
    }
    setTook(performance.now() - began);
    setBusy(false);
  };
  const again = async () => {
    // the call was decided: its run has the result
    for (let i = 0; i < 40; i++) {
      const x = await get(runPath(out.run, "/export"));
      const done = x.calls.find((c) => c.call.id === "call");
      if (done) return setOut({ run: out.run, outcome: done.execution.outcome, result: done.execution.result });
      await new Promise((ok) => setTimeout(ok, 150 + 50 * i));
    }
  };
  return html`<form class="card toolform" onSubmit=${call} aria-label=${"Call " + tool.name}>
    <header><h2 class="mono">${visible(tool.name)}</h2><span class=${"effect " + tool.effect}>${tool.effect}</span><span class="muted">of ${visible(tool.agent)}</span></header>
    <p class="desc">${visible(tool.description || "")}</p>
    ${tool.passive
      ? html`<p class="muted">It is passive: the caller of the agent carries it out, so it cannot be tried here.</p>`
      : html`<${Args} schema=${tool.input} text=${text} onText=${setText} label="Arguments" />
          <div class="actions"><button class="primary" type="submit" id="call" disabled=${busy || !good}><${Icon} name="play" /> ${busy ? "Calling…" : "Call"}</button>
            ${["write", "unstated"].includes(tool.effect) && html`<span class="muted">It acts: what it does is done.</span>`}</div>`}
    <${Trouble} fault=${fault} />
    <div class="result" ref=${result} aria-live="polite">
      ${out && html`<div class="resulthead"><${Badge} state=${out.outcome} /> <span class="muted">${span(took)}</span> <a href=${runLink(out.run)}>its run</a></div>
        ${out.result && html`<${ResultView} result=${out.result} />`}
        ${(out.pending || []).map((w) => html`<${Question} key=${w.key + w.digest} run=${out.run} agent=${tool.agent} w=${w} onDone=${again} />`)}`}
    </div>
    <details><summary>Schema</summary><${Long} text=${pretty(tool.input ?? {})} kind="json" label="schema of the arguments" />${tool.output && html`<p class="muted">Result</p><${Long} text=${pretty(tool.output)} kind="json" label="schema of the result" />`}</details>
  </form>`;
}

const pictures = /^image\/(png|jpeg|gif|webp)$/; // SVG is a document

// ResultView shows the result of a tool.
export function ResultView({ result }) {
  const text = resultText(result);
  let json;
  if (/^\s*[[{]/.test(text) && text.length < 2e6) {
    try {
      json = pretty(parse(text));
    } catch {} // it is text
  }
  const [raw, setRaw] = useState(false);
  const pics = (result?.parts || []).filter((p) => p.type === "media" && p.data && pictures.test(p.mime));
  return html`<div class=${"resultview" + (result?.is_error ? " iserror" : "")}>
    ${json !== undefined && json !== text && html`<div class="switch"><button class="small" aria-pressed=${raw ? "false" : "true"} onClick=${(e) => (e.preventDefault(), setRaw(false))}>Indented</button><button class="small" aria-pressed=${raw ? "true" : "false"} onClick=${(e) => (e.preventDefault(), setRaw(true))}>As it is</button></div>`}
    <${Long} text=${json !== undefined && !raw ? json : text} kind=${json !== undefined && !raw ? "json" : ""} label="result" />
    ${pics.map((p) => html`<img class="pic" alt=${"picture, " + p.mime} src=${"data:" + p.mime + ";base64," + p.data} />`)}
    ${result?.data !== undefined && pretty(result.data) !== json && html`<details><summary>As data</summary><${Long} text=${pretty(result.data)} kind="json" label="result as data" /></details>`}
  </div>`;
}
