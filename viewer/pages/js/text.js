// Text of people and programs as nodes that cannot deceive: invisible characters, and characters
// that change the text direction, become visible marks.
import { html, useLayoutEffect, useState } from "../vendor/htm-preact.js";

// Control characters except line ends and tabs; characters without a shape: bidi marks, zero width,
// fillers, tags, selectors; marks without a base; halves of surrogate pairs. A joiner or a selector
// inside an emoji does not count.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029\u2800\u{1d159}]|\r(?!\n)|(?<!\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)\u200d|(?<!\p{Extended_Pictographic})\ufe0f|(?![\u200d\ufe0f])[\p{Cf}\p{Default_Ignorable_Code_Point}\ufff0-\ufffb\u{e0000}-\u{e0fff}]|(?<=^|\s)\p{M}|\p{Surrogate}/gu;

const c0 = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

const names = {
  0xad: "SHY", 0x61c: "ALM", 0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0x7f: "DEL", 0xfeff: "BOM",
};

function mark(char) {
  const n = char.codePointAt(0);
  const code = "U+" + n.toString(16).toUpperCase().padStart(4, "0");
  const sign = c0[n] || names[n] || code;
  return html`<span class="ctl" title=${"invisible character " + code}>${sign}</span>`;
}

// hides reports whether text contains invisible characters.
export const hides = (text) => text.search(unseen) >= 0;

// visible returns text as children of an element.
export function visible(text) {
  const out = [];
  let from = 0;
  for (const m of String(text).matchAll(unseen)) {
    if (m.index > from) out.push(text.slice(from, m.index));
    out.push(mark(m[0]));
    from = m.index + m[0].length;
  }
  if (from === 0) return [String(text)];
  out.push(text.slice(from));
  return out;
}

// plain returns text with the same marks, for places that allow text only: titles, labels.
export function plain(text) {
  return String(text).replace(unseen, (c) => {
    const n = c.codePointAt(0);
    return "\u27e8" + (c0[n] || names[n] || "U+" + n.toString(16).toUpperCase()) + "\u27e9";
  });
}

// line returns the beginning of text on one line.
export function line(text, most = 160) {
  const s = plain(String(text).slice(0, most * 2).replace(/\s+/g, " ").trim());
  return s.length > most ? s.slice(0, most - 1) + "\u2026" : s;
}

const first = 4000; // characters shown without a click
const more = 1 << 20; // characters that a click adds
const chunk = 16384; // characters laid out together

function chunks(text) {
  const out = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + chunk);
    const nl = text.lastIndexOf("\n", end);
    if (end < text.length && nl > at + chunk / 2) end = nl + 1;
    else if (end < text.length && text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) <= 0xdfff) end++;
    out.push(text.slice(at, end));
    at = end;
  }
  return out;
}

// Long shows text, shortened if it is long. kind is json, prose, or neither. onRest is called with
// the number of characters that are not shown.
export function Long({ text, kind = "", label = "", onRest }) {
  const [upto, setUpto] = useState(first);
  text = String(text ?? "");
  const shown = text.length > upto + 200 ? text.slice(0, upto) : text;
  const rest = text.length - shown.length;
  useLayoutEffect(() => {
    onRest?.(rest);
  }, [rest]);
  const body = shown.length <= first * 3 ? (kind === "json" ? coloured(shown) : visible(shown)) : chunks(shown).map((c) => html`<span class="chunk">${visible(c)}</span>`);
  return html`<div class="long">
    <pre class=${"text " + kind} dir=${kind === "prose" ? "auto" : "ltr"} tabindex="0" role="region" aria-label=${label || "text"}>${text === "" ? html`<span class="muted">(empty)</span>` : body}</pre>
    ${rest > 0 && html`<div class="cutline">
      <span>${size(rest)} more</span>
      <button class="small" onClick=${() => setUpto(upto === first && text.length <= more ? text.length : upto + more)}>${text.length - upto <= more ? "Show all" : "Show 1 MB more"}</button>
    </div>`}
    ${rest <= 0 && upto > first && html`<div class="cutline"><button class="small" onClick=${() => setUpto(first)}>Show less</button></div>`}
  </div>`;
}

const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g;

function coloured(text) {
  const out = [];
  let from = 0;
  for (const m of text.matchAll(token)) {
    out.push(text.slice(from, m.index));
    const css = m[2] !== undefined ? "k" : m[1] !== undefined ? "s" : "n";
    out.push(html`<span class=${css}>${visible(m[1] ?? m[0])}</span>`, m[2] ?? "");
    from = m.index + m[0].length;
  }
  out.push(...visible(text.slice(from)));
  return out;
}

// size returns the size of text in words.
export function size(n) {
  return n < 1000 ? n + " characters" : n < 1e6 ? (n / 1000).toFixed(n < 1e4 ? 1 : 0) + " kB" : (n / 1e6).toFixed(1) + " MB";
}

// span returns a duration in words: 320 ms, 4.1 s, 3 min 20 s, 2 d 4 h.
export function span(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  const s = ms / 1000;
  if (s < 60) return (s < 10 ? s.toFixed(1) : Math.round(s)) + " s";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const i = parts.findIndex(([, n]) => s >= n);
  const [unit, n] = parts[i];
  const whole = Math.floor(s / n);
  const rest = Math.floor((s - whole * n) / parts[i + 1][1]);
  return whole + " " + unit + (rest ? " " + rest + " " + parts[i + 1][0] : "");
}

// count returns a number for people.
export function count(n) {
  n = n || 0;
  return n < 10000 ? n.toLocaleString("en") : n < 1e6 ? (n / 1000).toFixed(n < 1e5 ? 1 : 0) + " k" : (n / 1e6).toFixed(1) + " M";
}

export const money = (n) => (!n ? "" : n < 0.0001 ? "<$0.0001" : "$" + n.toFixed(n < 0.1 ? 4 : 2));

export const plural = (n, one, many = one + "s") => n + " " + (n === 1 ? one : many);

// ago returns a moment in everyday words.
export function ago(ms, now = Date.now()) {
  const d = now - ms;
  if (!(ms > 0)) return "";
  if (d < -5000) return "in " + span(-d);
  if (d < 5000) return "just now";
  if (d < 60000) return Math.floor(d / 1000) + " s ago";
  if (d < 3600000) return Math.floor(d / 60000) + " min ago";
  if (d < 86400000) return Math.floor(d / 3600000) + " h ago";
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short", year: d > 3e10 ? "numeric" : undefined });
}

export const moment = (ms) => (ms > 0 ? new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }) : "");
