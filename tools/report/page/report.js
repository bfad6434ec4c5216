// The page of a report. Its data are in the document, compressed; texts are inflated when they are shown.
"use strict";

const $ = (id) => document.getElementById(id);
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const link = (kind, name, text = name) => `<a href="#${kind}/${encodeURIComponent(name)}">${escaped(text)}</a>`;
const PREFIXES = [["G", 1e9], ["M", 1e6], ["k", 1e3]];
function scaled(value) {
  if (typeof value !== "number") return value ?? "";
  const found = PREFIXES.find(([, unit]) => value >= unit);
  return found ? `${(value / found[1]).toFixed(1)} ${found[0]}` : value.toFixed(value < 10 && value % 1 ? 1 : 0);
}
const memoryText = (bytes) => bytes >= 1 << 20 ? `${(bytes / (1 << 20)).toFixed(1)} MiB` : bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`;
const short = (value) => String(+value.toPrecision(2));
const micros = (seconds) => seconds == null ? "" : (seconds * 1e6).toFixed(1);
const percent = (share) => share == null ? "" : `${(share * 100).toFixed(1)}%`;

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

let data;
const kernels = new Map(), callsOf = new Map(), nodeCalls = new Map(), readers = new Map();
const packs = new Map();

/** A text and the numbers of places of its lines. */
async function textOf(number) {
  const [name, pack, index] = data.texts[number];
  if (!packs.has(pack)) packs.set(pack, inflated(document.querySelectorAll("script.pack")[pack].textContent));
  const [text, runs] = (await packs.get(pack))[index];
  return { name, text, runs };
}

/** The names of the model's nodes that a line comes from. */
function placeOf(runs, line) {
  for (let i = 0, at = line; i < runs.length; i += 2) {
    if ((at -= runs[i]) <= 0) return data.places[runs[i + 1]];
  }
  return [];
}

// ---- code -------------------------------------------------------------------------------------------------------------------------------

const { EditorState, EditorView, StreamLanguage, Plot } = lib;
const MLIR = StreamLanguage.define(lib.simpleMode({ start: [
  { regex: /\/\/.*/, token: "comment" },
  { regex: /"[a-z_]\w*\.[\w.]+"(?=\()/, token: "keyword" },
  { regex: /"(?:[^\\"]|\\.)*"/, token: "string" },
  { regex: /%[\w$.-]+(?:[:#]\d+)?/, token: "variableName" },
  { regex: /@[\w$.-]+/, token: "def" },
  { regex: /[#^][\w$.-]+/, token: "labelName" },
  { regex: /![\w.]+|\b(?:tensor|memref|vector|index|none|array|bf16|f\d+|[su]?i\d+)\b/, token: "typeName" },
  { regex: /[a-z_]\w*\.[\w.]+|\b(?:func|return|module|private|attributes|to|step|ins|outs)\b/, token: "keyword" },
  { regex: /0x[\da-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/, token: "number" },
  { regex: /\w+/, token: null },
] }));
const ASSEMBLY = StreamLanguage.define(lib.simpleMode({ start: [
  { regex: /(?:#|\/\/).*/, token: "comment" },
  { regex: /\S+:$/, token: "def", sol: true },
  { regex: /\s+[\da-f]+(?=\s)/, token: "comment", sol: true },
  { regex: /[%.][\w.$]+/, token: "variableName" },
  { regex: /\$?-?(?:0x[\da-fA-F]+|\d+)\b/, token: "number" },
  { regex: /[a-z][\w.]*/, token: "keyword" },
] }));
const PYTHON = StreamLanguage.define(lib.python);
const style = (name, tag) => ({ tag, color: `var(--${name})` });
const { tags } = lib;
const COLOURS = lib.HighlightStyle.define([
  style("keyword", tags.keyword), style("string", tags.string), style("value", tags.variableName), style("number", tags.number),
  style("type", tags.typeName), style("type", tags.labelName), style("accent", tags.definition(tags.variableName)), style("dim", tags.comment),
]);

const MARGIN = 3; // equal lines that are shown around those that differ
const withoutNumbers = (line) => line.trim().replace(/[%#][\w.$#:-]+/g, "%");

/** The lines of a text, those of one place of the model together. */
function runsOf({ text, runs }) {
  const lines = text ? text.split("\n") : [], found = [];
  for (let i = 0, at = 0; i < runs.length; at += runs[i], i += 2) found.push({ place: runs[i + 1], lines: lines.slice(at, at + runs[i]) });
  return found;
}

/** What is in two lists as [kind, item of the old list, item of the new list]; all of both where that takes too long to find out. */
function compared(old, now, key) {
  const parts = lib.diffArrays(old.map(key), now.map(key), { timeout: 2000 }) ?? [{ removed: true, count: old.length }, { added: true, count: now.length }];
  let i = 0, j = 0;
  return parts.flatMap(({ added, removed, count }) => Array.from({ length: count },
    () => removed ? ["removed", old[i++]] : added ? ["added", undefined, now[j++]] : ["", old[i++], now[j++]]));
}

/** The lines of two texts as rows [class, line, number in the new text]. Names of values do not count: every pass numbers them anew. The
 * nodes that lines come from are matched first, then the lines of each: whole programs have too many lines alike. */
function difference(before, after) {
  let number = 0;
  const rows = compared(runsOf(before), runsOf(after), (run) => run.place)
    .flatMap(([, old, now]) => compared(old?.lines ?? [], now?.lines ?? [], withoutNumbers))
    .map(([kind, old, now]) => [kind, now ?? old, now === undefined ? "" : ++number]);
  const isNear = rows.map(() => false);
  rows.forEach(([kind], i) => { if (kind) isNear.fill(true, Math.max(i - MARGIN, 0), i + MARGIN + 1); });
  let left = 0;
  return rows.flatMap((row, i) => {
    if (!isNear[i]) left += 1;
    const told = left && (isNear[i] || i + 1 === rows.length) ? [["equal", `${left} equal lines`, ""]] : [];
    if (told.length) left = 0;
    return isNear[i] ? [...told, row] : told;
  });
}

/** Shows a text, or rows of a difference; `onLine` is called with the number of a line that is clicked. */
function showCode(parent, text, { language = MLIR, rows = null, onLine = null, line = 0 } = {}) {
  parent.editor?.destroy();
  const numberOf = (n) => rows ? rows[n - 1]?.[2] : n;
  const extensions = [
    EditorState.readOnly.of(true), lib.lineNumbers({ formatNumber: (n) => String(numberOf(n) ?? n) }), lib.highlightActiveLine(), language,
    lib.syntaxHighlighting(COLOURS), lib.search({ top: true }), lib.keymap.of(lib.searchKeymap),
    EditorView.domEventHandlers({ click: (event, view) => {
      const at = view.posAtCoords(event), number = at == null ? 0 : numberOf(view.state.doc.lineAt(at).number);
      if (onLine && number) onLine(number);
    } }),
  ];
  const doc = EditorState.create({ doc: rows ? rows.map(([, one]) => one).join("\n") : text }).doc;
  if (rows) {
    const marks = rows.flatMap(([kind], i) => kind ? [lib.Decoration.line({ class: `line-${kind}` }).range(doc.line(i + 1).from)] : []);
    extensions.push(EditorView.decorations.of(lib.Decoration.set(marks)));
  }
  parent.editor = new EditorView({ parent, state: EditorState.create({ doc, extensions }) });
  if (line) {
    const { from } = doc.line(line);
    parent.editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }
}

/** The calls that a node of the model became: its own, or where a pass took it up into another node, those of the nodes that read it. */
function callsOfNode(name) {
  const seen = new Set([name]);
  for (const at of seen) {
    const calls = nodeCalls.get(at);
    if (calls) return { calls, at };
    for (const value of data.nodes[at]?.[2] ?? []) for (const reader of readers.get(value) ?? []) seen.add(reader);
  }
  return { calls: [], at: name };
}

/** Says what nodes of the model something comes from, and which kernels those became. */
function showOrigin(section, what, names) {
  const box = section.querySelector(".origin");
  const rows = names.map((name) => {
    const [operator] = data.nodes[name] ?? [];
    const { calls, at } = callsOfNode(name), into = [...new Set(calls.map((call) => call.kernel))];
    return `${link("node", name)}${operator ? ` (${escaped(operator)})` : ""}${at !== name ? ` → ${link("node", at)}` : ""}${into.length ? ` → ${into.map((k) => link("kernel", k)).join(", ")}` : ""}`;
  });
  box.innerHTML = `${escaped(what)}: ${rows.join("; ") || "no node of the model"}`;
  box.hidden = false;
}

// ---- overview ---------------------------------------------------------------------------------------------------------------------------

const facts = (rows) => rows.filter(([, text]) => text).map(([name, text]) => `<dt>${escaped(name)}</dt><dd>${text}</dd>`).join("");

function showOverview() {
  $("facts").innerHTML = facts(data.facts.map(([name, text]) => [name, escaped(text)]));
  const passes = data.steps.map(([name, stage, seconds]) => ({ name, stage, ms: seconds * 1e3 })).filter((p) => p.ms > 0);
  const slow = [...passes].sort((a, b) => b.ms - a.ms).slice(0, 12);
  $("stages").replaceChildren(Plot.plot({
    marginLeft: 170, height: 40 + 22 * slow.length, width: 560, x: { label: "ms", grid: true }, y: { label: null },
    color: { legend: true, scheme: "tableau10", domain: ["relay", "te", "tir", "llvm"] },
    marks: [Plot.barX(slow, Plot.groupY({ x: "sum" }, { x: "ms", y: "name", fill: "stage", sort: { y: "-x" }, tip: true }))],
  }));
  $("roofline").replaceChildren(roofline());
  const slowest = [...data.sites].sort((a, b) => b.seconds - a.seconds).slice(0, 10);
  showCalls($("slowest"), slowest);
}

function roofline() {
  const peak = data.peak;
  const points = data.sites.filter((s) => s.seconds && s.flops && s.bytes).map((s) => ({ ...s, intensity: s.flops / s.bytes, rate: s.flops / s.seconds / 1e9 }));
  if (!peak || !points.length) return document.createTextNode(data.peak ? "No kernel has floating-point operations." : "The program was not timed.");
  const xs = points.map((p) => p.intensity), knee = peak.gflops / peak.gbytes;
  const low = Math.min(...xs, knee) / 2, high = Math.max(...xs, knee) * 2;
  const roof = [low, knee, high].map((x) => ({ x, y: Math.min(peak.gflops, x * peak.gbytes) }));
  const plot = Plot.plot({
    width: 560, height: 340, marginLeft: 55, grid: true,
    x: { type: "log", label: "FLOP per byte of memory", ticks: 6, tickFormat: short }, y: { type: "log", label: "GFLOP/s", ticks: 6, tickFormat: short }, r: { range: points.length > 200 ? [1.5, 7] : [2.5, 14] },
    marks: [
      Plot.line(roof, { x: "x", y: "y", stroke: "var(--hot)", strokeWidth: 2 }),
      Plot.dot(points, { x: "intensity", y: "rate", r: "share", fill: "var(--accent)", fillOpacity: .45, stroke: "var(--accent)",
        channels: { kernel: "kernel", time: (p) => `${micros(p.seconds)} us`, "of roofline": (p) => percent(p.roof) }, tip: true }),
    ],
  });
  plot.addEventListener("click", () => plot.value && go("kernel", plot.value.kernel));
  return plot;
}

// ---- kernels ----------------------------------------------------------------------------------------------------------------------------

const COLUMNS = [
  ["kernel", (s) => s.kernel, (s) => kernels.has(s.kernel) ? link("kernel", s.kernel) : escaped(s.kernel), "text"],
  ["nodes", (s) => s.sources.join(), (s) => s.sources.map((n) => link("node", n)).join(", "), "text"],
  ["where", (s) => s.where, (s) => escaped(s.where), "text"],
  ["strategy", (s) => kernels.get(s.kernel)?.strategy ?? "", (s) => escaped(kernels.get(s.kernel)?.strategy ?? ""), "text"],
  ["calls", (s) => s.calls], ["us", (s) => s.seconds, (s) => micros(s.seconds)], ["share", (s) => s.share, (s) => percent(s.share), "share"],
  ["FLOP", (s) => s.flops, (s) => s.flops ? scaled(s.flops) : ""], ["bytes", (s) => s.bytes, (s) => scaled(s.bytes)],
  ["GFLOP/s", (s) => s.seconds ? s.flops / s.seconds / 1e9 : null, (s) => s.seconds && s.flops ? scaled(s.flops / s.seconds / 1e9) : ""],
  ["GB/s", (s) => s.seconds ? s.bytes / s.seconds / 1e9 : null, (s) => s.seconds ? scaled(s.bytes / s.seconds / 1e9) : ""],
  ["of roofline", (s) => s.roof, (s) => percent(s.roof)],
];

/** A table of call sites; a click on a heading sorts by it. */
function showCalls(table, rows, by = null, up = false) {
  const columns = COLUMNS.filter(([name, value]) => name !== "where" || rows.some((s) => value(s) !== "main"));
  const column = columns.find(([name]) => name === by);
  const ordered = column ? [...rows].sort((a, b) => { const x = column[1](a) ?? -1, y = column[1](b) ?? -1; return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); }) : rows;
  const cell = (s, [, value, text, kind]) => `<td class="${kind ?? ""}"${kind === "share" ? ` style="--part:${percent(s.share)}"` : ""}${kind === "text" ? ` title="${escaped(value(s))}"` : ""}>${text ? text(s) : escaped(value(s))}</td>`;
  const head = columns.map(([name, , , kind]) => `<th class="${kind ?? ""}">${name}${name === by ? (up ? " ↑" : " ↓") : ""}</th>`).join("");
  table.innerHTML = `<thead><tr>${head}</tr></thead><tbody>${ordered.map((s) => `<tr>${columns.map((c) => cell(s, c)).join("")}</tr>`).join("")}</tbody>`;
  table.querySelectorAll("th").forEach((th, i) => { th.onclick = () => showCalls(table, rows, columns[i][0], columns[i][0] === by && !up); });
}

function showKernels() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = data.sites.filter((s) => {
    const text = `${s.kernel} ${s.sources.join(" ")} ${kernels.get(s.kernel)?.ops} ${kernels.get(s.kernel)?.strategy}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  $("count").textContent = `${rows.length} of ${data.sites.length} calls`;
  showCalls($("calls"), rows);
}

const table = (title, head, rows) => `<div><h2>${title}</h2><div class="scroll"><table class="rows"><thead><tr>${head.map((h) => `<th class="text">${escaped(h)}</th>`).join("")}</tr></thead>
  <tbody>${rows.map((row) => `<tr>${row.map((c) => `<td class="text">${c}</td>`).join("")}</tr>`).join("")}</tbody></table></div></div>`;

/** The index maps that a function names, which are written before the module. */
async function mapsIn(stage, text) {
  const used = new Set(text.match(/#map\d*\b/g)), last = data.steps.findLast(([, of]) => of === stage);
  if (!used.size || !last) return [];
  return (await textOf(last[3][0])).text.split("\n").filter((line) => used.has(line.split(" = ")[0]));
}

async function showKernel(name) {
  const kernel = kernels.get(name);
  $("kernel-name").textContent = name;
  if (!kernel) return;
  const calls = callsOf.get(name) ?? [];
  $("kernel-facts").innerHTML = facts([
    ["operators", escaped(kernel.ops)], ["inputs", escaped(kernel.inputs.join(", "))], ["outputs", escaped(kernel.outputs.join(", "))],
    ["nodes", [...new Set(calls.flatMap((c) => c.sources))].map((n) => link("node", n)).join(", ")],
    ["calls", calls.map((c) => c.seconds == null ? `${scaled(c.flops)} FLOP, ${scaled(c.bytes)} bytes` : `${micros(c.seconds)} us, ${percent(c.share)} of the time, ${scaled(c.flops)} FLOP, ${scaled(c.bytes)} bytes${c.roof == null ? "" : `, ${percent(c.roof)} of the roofline`}`).join("<br>")],
  ]);
  const marked = (used, values) => values.map((v) => v === used ? `<strong>${escaped(v)}</strong>` : escaped(v)).join(" ");
  const numbers = kernel.numbers.map(([number, used, values]) => [escaped(number), escaped(used), marked(used, values)]);
  $("kernel-tables").innerHTML = (kernel.strategy ? table(`Schedule: ${escaped(kernel.strategy)}`, ["number", "used", "sensible values"], numbers) : "")
    + (kernel.figures.length ? table("Needs of a multiprocessor", ["kernel", ...data.figures], kernel.figures.map((row) => row.map(escaped))) : "");
  const panes = $("panes"), section = $("view-kernel");
  section.querySelector(".origin").hidden = true;
  panes.querySelectorAll(".code").forEach((code) => code.editor?.destroy());
  panes.replaceChildren();
  for (const stage of ["relay", "te", "schedule", "tir", "llvm", "ptx", "assembly"]) {
    if (kernel.texts[stage] == null) continue;
    const pane = document.createElement("div");
    pane.innerHTML = `<h2>${stage}</h2><div class="code" data-stage="${stage}"></div>`;
    panes.append(pane);
    const { text, runs } = await textOf(kernel.texts[stage]);
    const maps = await mapsIn(stage, text);
    if (!pane.isConnected) return; // another kernel is shown by now
    const language = { schedule: PYTHON, ptx: ASSEMBLY, assembly: ASSEMBLY }[stage] ?? MLIR;
    const onLine = (line) => showOrigin(section, `${stage}, line ${line}`, line > maps.length ? placeOf(runs, line - maps.length) : []);
    showCode(pane.lastChild, [...maps, text].join("\n"), { language, onLine });
  }
}

function showNode(name) {
  const [operator, inputs, outputs] = data.nodes[name] ?? [], { calls, at } = callsOfNode(name);
  $("node-name").textContent = name;
  $("node-facts").innerHTML = facts([
    ["operator", operator && escaped(operator)], ["inputs", escaped((inputs ?? []).join(", "))], ["outputs", escaped((outputs ?? []).join(", "))],
    ["taken up", at !== name && `by the kernels of ${link("node", at)}`],
    ["IR", `<a href="#passes/0/${encodeURIComponent(name)}">as it was imported</a>`],
    ["picture", `<a href="#graph/0/${encodeURIComponent(name)}">in the graph</a>`],
  ]);
  showCalls($("node-calls"), calls);
}

// ---- passes -----------------------------------------------------------------------------------------------------------------------------

let step = 0, chosen = "main";
const named = (number) => data.texts[number][0] || "(module)";
const isSame = (i) => i > 0 && String(data.steps[i][3]) === String(data.steps[i - 1][3]);

function listSteps() {
  let stage = "";
  $("steps").innerHTML = data.steps.map(([name, of, seconds], i) => {
    const head = of === stage ? "" : `<h3>${stage = of}</h3>`;
    return `${head}<a href="#passes/${i}" class="${isSame(i) ? "same" : ""}" role="option"><span>${escaped(name)}</span><span>${i ? `${(seconds * 1e3).toFixed(1)} ms` : ""}</span></a>`;
  }).join("");
}

async function showStep(number, node) {
  step = Math.min(Math.max(+number || 0, 0), data.steps.length - 1);
  const [name, stage, seconds, texts, operations] = data.steps[step];
  [...$("steps").querySelectorAll("a")].forEach((a, i) => a.classList.toggle("here", i === step));
  $("step-name").textContent = name;
  const count = operations.reduce((sum, [, n]) => sum + n, 0);
  $("step-facts").textContent = `${stage}, ${(seconds * 1e3).toFixed(2)} ms, ${count} operations${isSame(step) ? ", changed nothing" : ""}`;
  const before = new Map(step ? data.steps[step - 1][4] : []);
  $("operations").innerHTML = operations.map(([op, n]) => {
    const more = n - (before.get(op) ?? 0);
    return `${escaped(op)} ${n}${step && more ? ` <strong>(${more > 0 ? "+" : ""}${more})</strong>` : ""}`;
  }).join(" · ");
  const old = new Set(step ? data.steps[step - 1][3] : []);
  const fewest = texts.map((t) => [t, !old.has(t)]);
  if (node) chosen = await functionOf(texts, node) ?? chosen;
  else if (!texts.some((t) => named(t) === chosen)) chosen = named(texts.find((t) => named(t) === "main") ?? texts.find((t) => !old.has(t)) ?? texts[0]);
  $("function").innerHTML = fewest.map(([t, changed]) => `<option value="${t}"${named(t) === chosen ? " selected" : ""}>${escaped(named(t))} (${data.texts[t][3]} lines)${step && changed ? " *" : ""}</option>`).join("");
  await showFunction(node);
}

/** The function of a step in which a node of the model is. */
async function functionOf(texts, node) {
  for (const number of texts) {
    const { runs } = await textOf(number);
    if (runs.some((place, i) => i % 2 && data.places[place].includes(node))) return named(number);
  }
}

async function showFunction(node = null) {
  const number = +$("function").value, section = $("view-passes");
  chosen = named(number);
  const now = await textOf(number), { text, runs } = now;
  let rows = null, line = 0;
  if (document.querySelector("input[name=form]:checked").value === "diff" && step) {
    const old = data.steps[step - 1][3].find((t) => named(t) === chosen);
    rows = difference(old == null ? { text: "", runs: [] } : await textOf(old), now);
  }
  for (let i = 0, at = 1; node && !rows && !line && i < runs.length; at += runs[i], i += 2) if (data.places[runs[i + 1]].includes(node)) line = at;
  section.querySelector(".origin").hidden = true;
  const onLine = (l) => showOrigin(section, `line ${l}`, placeOf(runs, l));
  showCode($("ir"), text, { rows, line, onLine });
  if (line) onLine(line);
}

// ---- graph ------------------------------------------------------------------------------------------------------------------------------

async function showGraph(number, node) {
  const index = Math.min(+(number ?? data.pictures.length - 1) || 0, data.pictures.length - 1), picture = data.pictures[index];
  $("picture-names").innerHTML = data.pictures.map((p, i) => `<button class="${i === index ? "here" : ""}" data-picture="${i}">${escaped(p.name)}</button>`).join("");
  $("picture-names").querySelectorAll("button").forEach((b) => { b.onclick = () => go("graph", b.dataset.picture); });
  if (!picture) { $("picture").textContent = "There is no picture of this program."; return; }
  const { text } = await textOf(picture.svg);
  $("picture").innerHTML = text;
  const svg = $("picture").querySelector("svg"), width = svg.viewBox.baseVal.width;
  svg.removeAttribute("viewBox");
  const inner = svg.querySelector("g"), outer = document.createElementNS(svg.namespaceURI, "g");
  inner.replaceWith(outer);
  outer.append(inner);
  const zoom = lib.zoom().scaleExtent([.02, 8]).on("zoom", (event) => outer.setAttribute("transform", event.transform));
  const view = lib.select(svg).call(zoom), box = $("picture").getBoundingClientRect();
  const scale = Math.min(1.2, Math.max(.35, box.width / width));
  view.call(zoom.transform, lib.zoomIdentity.translate(Math.max((box.width - width * scale) / 2, 0), 8).scale(scale));
  const boxOf = (element) => picture.boxes[/\bbox(\d+)/.exec(element.getAttribute("class"))?.[1]];
  for (const element of svg.querySelectorAll("g.node")) {
    const [sources, kernel, kind, heat] = boxOf(element) ?? [[], "", "", 0];
    element.classList.add(kind);
    element.style.setProperty("--heat", percent(heat * .8));
    element.onclick = () => kernel ? go("kernel", kernel) : sources.length && go("node", sources[0]);
    if (node && (sources.includes(node) || kernel === node)) {
      element.classList.add("found");
      const r = element.getBBox(), m = inner.getCTM().inverse().multiply(element.getCTM()), t = inner.transform.baseVal.consolidate().matrix;
      const x = r.x + r.width / 2 + m.e + t.e, y = r.y + r.height / 2 + m.f + t.f;
      view.call(zoom.transform, lib.zoomIdentity.translate(box.width / 2 - x, box.height / 2 - y));
    }
  }
}

// ---- memory -----------------------------------------------------------------------------------------------------------------------------

function showMemory() {
  const plan = data.memory[+$("program").value];
  if (!plan) { $("arena").textContent = "Its memory is known only when the program runs."; return; }
  const over = plan.lower ? ` (${percent(plan.peak / plan.lower - 1)} above it)` : "";
  $("memory-facts").textContent = `arena ${memoryText(plan.peak)}, lower bound ${memoryText(plan.lower)}${over}, ${plan.buffers.length} buffers, ${plan.steps.length} calls`;
  const called = new Map(plan.steps);
  const power = plan.peak >= 1 << 20 ? 2 : plan.peak >= 1024 ? 1 : 0, unit = 1024 ** power;
  const buffers = plan.buffers.map(([name, first, last, offset, size]) => ({ name, first, last: last + 1, offset, begin: offset / unit, end: (offset + size) / unit, size }));
  const plot = Plot.plot({
    width: Math.max(320, $("arena").clientWidth || 900), height: 460, marginLeft: 70,
    x: { label: "step of the program", tickFormat: (x) => x % 1 ? "" : String(x) },
    y: { label: `${["bytes", "KiB", "MiB"][power]} of the arena`, grid: true, domain: [0, plan.peak / unit] },
    color: { scheme: "tableau10", type: "categorical" },
    marks: [
      Plot.rect(buffers, { x1: "first", x2: "last", y1: "begin", y2: "end", fill: (_, i) => i % 10, fillOpacity: .6, stroke: "var(--back)", strokeWidth: .5,
        channels: { buffer: "name", size: (b) => memoryText(b.size), "written by": (b) => called.get(b.first) ?? "", "last used by": (b) => called.get(b.last - 1) ?? "" },
        tip: { format: { fill: false } } }),
      Plot.ruleY([plan.peak / unit], { stroke: "var(--hot)" }), Plot.ruleY([plan.lower / unit], { stroke: "var(--hot)", strokeDasharray: "4 3" }),
    ],
  });
  plot.addEventListener("click", () => plot.value && showOrigin($("view-memory"), `${memoryText(plot.value.size)} at byte ${plot.value.offset}`, plot.value.name.split(", ").filter(Boolean)));
  $("arena").replaceChildren(plot);
}

// ---- search, places ---------------------------------------------------------------------------------------------------------------------

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const nodes = new Set([...Object.keys(data.nodes), ...nodeCalls.keys()]);
  const found = words.length ? [
    ...data.kernels.filter((k) => has(`${k.name} ${k.ops} ${k.strategy}`)).map((k) => ["kernel", k.name, k.name]),
    ...data.steps.map(([name], i) => ["passes", i, name]).filter(([, i, name]) => has(name) && !isSame(i)),
    ...[...nodes].filter((n) => has(`${n} ${data.nodes[n]?.[0] ?? ""}`)).map((n) => ["node", n, data.nodes[n] ? `${n} (${data.nodes[n][0]})` : n]),
  ] : [];
  const kinds = { kernel: "kernel", passes: "pass", node: "node" };
  $("found").innerHTML = found.slice(0, 60).map(([kind, name, text]) => `<li><a href="#${kind}/${encodeURIComponent(name)}"><small>${kinds[kind]}</small>${escaped(text)}</a></li>`).join("")
    + (words.length && !found.length ? "<li>nothing found</li>" : found.length > 60 ? `<li>${found.length - 60} more</li>` : "");
  $("found").hidden = !words.length;
}

const go = (...parts) => { location.hash = parts.map(encodeURIComponent).join("/"); };
const VIEWS = {
  overview: showOverview, passes: showStep, graph: showGraph, kernels: showKernels, kernel: showKernel, node: showNode, memory: showMemory,
};

async function route() {
  const shownAt = location.hash;
  const [view, ...parts] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const whole = parts.join("/"), [first, ...rest] = parts; // names may have slashes, and a person may type them
  const name = view in VIEWS ? view : "overview";
  $("found").hidden = true;
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== `view-${name}`;
  const shown = { kernel: "kernels", node: "kernels" }[name] ?? name;
  for (const a of document.querySelectorAll("nav a")) a.classList.toggle("here", a.hash === `#${shown}`);
  scrollTo(0, 0);
  await (name === "kernel" || name === "node" ? VIEWS[name](whole) : VIEWS[name](first, rest.join("/")));
  document.body.dataset.view = shownAt.slice(1) || "overview";
}

async function start() {
  data = await inflated($("data").textContent);
  data.sites = data.sites.map(([kernel, sources, where, calls, seconds, share, flops, bytes, roof]) => ({ kernel, sources, where, calls, seconds, share, flops, bytes, roof }));
  for (const kernel of data.kernels) kernels.set(kernel.name, kernel);
  for (const site of data.sites) {
    callsOf.set(site.kernel, [...callsOf.get(site.kernel) ?? [], site]);
    for (const name of site.sources) nodeCalls.set(name, [...nodeCalls.get(name) ?? [], site]);
  }
  for (const [name, [, inputs]] of Object.entries(data.nodes)) for (const value of inputs) readers.set(value, [...readers.get(value) ?? [], name]);
  listSteps();
  $("program").innerHTML = data.memory.map((plan, i) => `<option value="${i}">${escaped(plan.name)}</option>`).join("");
  $("function").onchange = () => showFunction();
  document.querySelectorAll("input[name=form]").forEach((input) => { input.onchange = () => showFunction(); });
  $("filter").oninput = showKernels;
  $("program").onchange = showMemory;
  $("search").oninput = search;
  $("search").onkeydown = (event) => {
    if (event.key === "Escape") $("found").hidden = true;
    if (event.key === "Enter") $("found").querySelector("a")?.click();
  };
  addEventListener("hashchange", route);
  $("loading").hidden = true;
  await route();
}

start().catch((error) => { $("loading").hidden = false; $("loading").textContent = `The report cannot be shown: ${error}`; console.error(error); });
