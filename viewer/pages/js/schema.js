// A form for a value with a JSON schema. Parts that a form cannot represent are edited as JSON.
import { html, useRef, useState } from "../vendor/htm-preact.js";
import { hides, visible, plain } from "./text.js";
import { isRaw, parse, pretty } from "./json.js";

const most = 40; // fields

// kindOf returns how a schema is filled in; "" means as JSON only.
function kindOf(s) {
  if (!s || typeof s !== "object") return "";
  if (Array.isArray(s.enum) && s.enum.length <= 200 && s.enum.every((v) => v === null || typeof v !== "object")) return "enum";
  if (s.$ref || s.allOf || s.oneOf || s.not || s.if) return "";
  if (s.anyOf) {
    const some = s.anyOf.filter((o) => o?.type !== "null");
    return some.length === 1 ? kindOf(some[0]) : "";
  }
  const types = [].concat(s.type || (s.properties ? "object" : [])).filter((t) => t !== "null");
  if (types.length !== 1) return "";
  const t = types[0];
  if (t === "object") return s.properties && Object.keys(s.properties).length <= most ? "object" : "";
  if (t === "array") return ["string", "number", "integer"].includes(kindOf(s.items)) ? "list" : "";
  return ["string", "number", "integer", "boolean"].includes(t) ? t : "";
}

const own = (o, k) => (o !== null && typeof o === "object" && Object.hasOwn(o, k) ? o[k] : undefined);

// inner returns the schema without a wrapper that allows null.
const inner = (s) => (s?.anyOf ? s.anyOf.find((o) => o?.type !== "null") : s);

// hasForm reports whether a schema can be filled in by form.
export const hasForm = (s) => kindOf(s) === "object";

// put returns an object with one member changed; undefined removes it. Members keep the order in
// which they first appeared.
function put(o, k, v, seen) {
  const copy = Object.create(null);
  if (!seen.includes(k)) seen.push(k);
  for (const key of seen) if (key === k ? v !== undefined : Object.hasOwn(o, key)) copy[key] = key === k ? v : o[key];
  return copy;
}

let ids = 0;

// Args edits arguments: text is JSON, onText gets each change. The form and the JSON are two views
// of one text.
export function Args({ schema, text, onText, label }) {
  const form = hasForm(schema);
  const [raw, setRaw] = useState(!form);
  const [id] = useState(() => "args" + ++ids);
  let value;
  let wrong = "";
  try {
    value = parse(text || "{}");
  } catch (e) {
    wrong = e.message;
  }
  const fits = form && value !== null && typeof value === "object" && !Array.isArray(value);
  return html`<div class="args" role="group" aria-label=${label}>
    ${form && html`<div class="switch" role="group" aria-label="How to edit">
      <button class="small" aria-pressed=${raw ? "false" : "true"} onClick=${() => setRaw(false)} disabled=${!fits}>Form</button>
      <button class="small" aria-pressed=${raw ? "true" : "false"} onClick=${() => setRaw(true)}>JSON</button>
    </div>`}
    ${raw || !fits
      ? html`<label class="field"><span>Arguments as JSON</span>
          <textarea id=${id} class="mono" dir="ltr" rows=${Math.min(16, Math.max(4, (text || "").split("\n").length + 1))} spellcheck="false" value=${text} onInput=${(e) => onText(e.target.value)} aria-invalid=${wrong ? "true" : "false"} aria-describedby=${id + "w"} /></label>
          ${hides(text) && html`<p class="help wrap">With what a field does not show: ${visible(text)}</p>`}
          <p class="wrong" id=${id + "w"} role="status">${wrong && visible("No JSON: " + wrong)}</p>`
      : html`<${Fields} schema=${schema} value=${value} onValue=${(v) => onText(pretty(v))} />`}
  </div>`;
}

function Fields({ schema, value, onValue }) {
  const s = inner(schema);
  const seen = useRef([]).current;
  for (const key of Object.keys(value)) if (!seen.includes(key)) seen.push(key);
  const required = Array.isArray(s.required) ? s.required : [];
  const names = Object.keys(s.properties || {});
  if (names.length === 0) return html`<p class="muted">It takes no arguments.</p>`;
  return html`<div class="fields">${names.map((name) => html`<${Field} key=${name} name=${name} schema=${s.properties[name]} value=${own(value, name)} required=${required.includes(name)} onValue=${(v) => onValue(put(value, name, v, seen))} />`)}</div>`;
}

function Field({ name, schema, value, required, onValue }) {
  const [id] = useState(() => "field" + ++ids);
  const kind = kindOf(schema);
  const s = inner(schema) || {};
  const help = typeof (schema.description || s.description) === "string" ? schema.description || s.description : "";
  const title = html`<span class="fieldname">${visible(name)}${required ? html`<span class="req" title="required"> required</span>` : ""}</span>`;
  const about = help && html`<span class="help" id=${id + "h"}>${visible(help.slice(0, 600))}</span>`;
  const common = { id, "aria-describedby": help ? id + "h" : undefined, "aria-required": required ? "true" : "false" };
  if (kind === "object") return html`<fieldset><legend>${title}</legend>${about}<${Fields} schema=${s} value=${value && typeof value === "object" ? value : {}} onValue=${onValue} /></fieldset>`;
  if (kind === "boolean")
    return html`<label class="field check"><input type="checkbox" ...${common} checked=${value === true} onChange=${(e) => onValue(e.target.checked || required ? e.target.checked : undefined)} /> ${title}${about}</label>`;
  return html`<label class="field" for=${id}>${title}${about}<${Input} kind=${kind} s=${s} common=${common} name=${name} value=${value} onValue=${onValue} /></label>`;
}

const unpadded = (t) => t.trim().replace(/^(-?)0+(?=\d)/, "$1");

const good = (t) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(t);

function Input({ kind, s, common, value, onValue }) {
  const [draft, setDraft] = useState(null); // typed text that is not a value yet
  if (kind === "enum") {
    const i = s.enum.findIndex((v) => v === value);
    return html`<select ...${common} value=${i} onChange=${(e) => onValue(+e.target.value < 0 ? undefined : s.enum[+e.target.value])}>
      <option value="-1">(not given)</option>${s.enum.map((v, n) => html`<option value=${n}>${plain(String(v))}</option>`)}</select>`;
  }
  if (kind === "number" || kind === "integer") {
    const typed = (t) => { // text that is not a number is sent as typed, and the tool's schema rejects it
      setDraft(t);
      const n = unpadded(t);
      onValue(n === "" ? undefined : good(n) ? parse(n) : t);
    };
    const now = value === undefined ? "" : isRaw(value) ? value.rawJSON : String(value);
    return html`<input ...${common} inputmode="decimal" autocomplete="off" value=${draft ?? now} aria-invalid=${draft && !good(unpadded(draft)) ? "true" : "false"} onInput=${(e) => typed(e.target.value)} />`;
  }
  if (kind === "list" && !(Array.isArray(value) && value.some((v) => typeof v === "string" && (v === "" || v.includes("\n"))))) {
    const lines = Array.isArray(value) ? value.map((v) => (isRaw(v) ? v.rawJSON : String(v))).join("\n") : "";
    const typed = (t) => {
      setDraft(t);
      const items = t.split("\n").filter((l) => l !== "");
      const numbers = kindOf(s.items) !== "string";
      onValue(items.length ? items.map((l) => (numbers && good(l.trim()) ? parse(l.trim()) : l)) : undefined);
    };
    return html`<textarea ...${common} rows="3" placeholder="one a line" value=${draft ?? lines} onInput=${(e) => typed(e.target.value)} />`;
  }
  if (kind === "string") {
    const text = typeof value === "string" ? value : value === undefined ? "" : String(value);
    const tall = text.length > 60 || text.includes("\n") || /(^|_)(text|content|body|message|code|query|prompt|task|command)$/.test(common.name || "");
    const marks = hides(text) && html`<span class="help wrap">With what a field does not show: ${visible(text)}</span>`;
    return html`${marks}${tall
      ? html`<textarea ...${common} rows=${Math.min(12, Math.max(3, text.split("\n").length + 1))} value=${text} onInput=${(e) => onValue(e.target.value)} />`
      : html`<input ...${common} autocomplete="off" spellcheck="false" value=${text} onInput=${(e) => onValue(e.target.value)} />`}`;
  }
  return html`<textarea ...${common} class="mono" rows="3" spellcheck="false" placeholder="JSON" value=${draft ?? (value === undefined ? "" : pretty(value))}
    onInput=${(e) => {
      setDraft(e.target.value);
      try {
        onValue(e.target.value.trim() === "" ? undefined : parse(e.target.value));
      } catch {
        // text, which the tool's schema rejects if it requires another type
        onValue(e.target.value);
      }
    }} />`;
}
