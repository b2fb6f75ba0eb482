// JSON with exact numbers: numbers that JavaScript cannot represent keep their digits, and no depth
// or size breaks the page.

const wide = /[\d.eE+-]{16,}/;

// parse parses JSON. Long numbers keep their spelling, so that a person approves exactly the amount
// shown.
export function parse(text) {
  if (wide.test(text) && JSON.rawJSON) {
    try {
      return JSON.parse(text, (_, v, at) => (typeof v === "number" && at && String(v) !== at.source && at.source.length > 15 ? JSON.rawJSON(at.source) : v));
    } catch (e) {
      if (!(e instanceof RangeError)) throw e; // otherwise it is nested too deeply
    }
  }
  return JSON.parse(text);
}

const deepest = 64;
const longest = 32 << 20;

// pretty returns a value as indented text. Values nested too deeply to read are left out with a
// note.
export function pretty(value) {
  let left = longest;
  const out = [];
  const put = (s) => {
    left -= s.length;
    out.push(s);
  };
  const write = (v, pad, depth) => {
    if (left < 0) return;
    if (v === null || typeof v !== "object" || isRaw(v)) return put(JSON.stringify(v) ?? "null");
    const list = Array.isArray(v);
    const keys = list ? v : Object.keys(v);
    if (keys.length === 0) return put(list ? "[]" : "{}");
    if (depth >= deepest) return put(list ? "[ \u2026deeper ]" : "{ \u2026deeper }");
    const inner = pad + "  ";
    put(list ? "[" : "{");
    for (let i = 0; i < keys.length && left >= 0; i++) {
      put((i ? "," : "") + "\n" + inner);
      if (!list) put(JSON.stringify(keys[i]) + ": ");
      write(list ? v[i] : v[keys[i]], inner, depth + 1);
    }
    put("\n" + pad + (list ? "]" : "}"));
  };
  write(value, "", 0);
  if (left < 0) out.push("\n\u2026 cut here");
  return out.join("");
}

export const isRaw = (v) => !!(JSON.isRawJSON && JSON.isRawJSON(v));

// argsOf returns the text of a call's arguments: indented if they are JSON, otherwise as the model
// wrote them.
export function argsOf(call) {
  if (!call) return "";
  if (call.args_text !== undefined) return call.args_text;
  return call.args === undefined ? "" : pretty(call.args);
}

// resultText returns the text of a result.
export function resultText(result) {
  return (result?.parts || []).map((p) => (p.type === "text" ? p.text : p.type === "media" ? "[" + p.mime + (p.url ? " " + p.url : "") + "]" : "")).join("\n");
}
