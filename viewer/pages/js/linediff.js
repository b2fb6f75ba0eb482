// The lines in which two texts differ, by Myers' algorithm with a limit. Beyond the limit, the
// whole texts are one block each.

const bound = 2000; // edits

// diff returns a list of {sign, text}: " " in both texts, "-" in the first only, "+" in the second
// only.
export function diff(before, after) {
  const a = before === "" ? [] : before.split("\n");
  const b = after === "" ? [] : after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (text) => ({ sign: " ", text });
  return [...a.slice(0, head).map(same), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...a.slice(a.length - tail).map(same)];
}

function middle(a, b) {
  const whole = () => [...a.map((text) => ({ sign: "-", text })), ...b.map((text) => ({ sign: "+", text }))];
  if (!a.length || !b.length) return whole();
  let v = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= Math.min(bound, a.length + b.length); d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? v.get(k + 1) : v.get(k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) x++, y++;
      v.set(k, x);
      if (x >= a.length && y >= b.length) return back(a, b, trace, d);
    }
    if (d > 300 && d * d > 4e5) break; // the traces would take too much memory
  }
  return whole();
}

function back(a, b, trace, d) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (; d > 0; d--) {
    const v = trace[d];
    const k = x - y;
    const from = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? k + 1 : k - 1;
    const px = v.get(from);
    const py = px - from;
    while (x > px && y > py) out.push({ sign: " ", text: a[--x] }), y--;
    if (x > px) out.push({ sign: "-", text: a[--x] });
    else out.push({ sign: "+", text: b[--y] });
  }
  while (x > 0 && y > 0) out.push({ sign: " ", text: a[--x] }), y--;
  return out.reverse();
}

const equal = (n) => (n === 1 ? "1 equal line" : n + " equal lines");

// near leaves out equal lines that are far from every difference.
export function near(lines, around = 3) {
  const keep = new Set();
  lines.forEach((l, i) => {
    if (l.sign !== " ") for (let j = i - around; j <= i + around; j++) keep.add(j);
  });
  const out = [];
  let left = 0;
  lines.forEach((l, i) => {
    if (keep.has(i)) {
      if (left) out.push({ sign: "…", text: equal(left) });
      left = 0;
      out.push(l);
    } else left++;
  });
  if (left && out.length) out.push({ sign: "…", text: equal(left) });
  return out;
}
