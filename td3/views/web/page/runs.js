// The page of all runs: a live table, and the curves of the picked runs in one chart.

import {
  Curve, METRICS, average, band, draw, faintLine, fetchSeries, line, lineColour, lineDash, metricOf, onZoom, smooth,
  smoothAverage,
} from "./charts.js";
import { countWords } from "./findings.js";
import {
  ago, address, arrange, throttled, count, element, get, listen, moment, number, onTheme, ready, setAttribute, setText,
  showNotice, showTop, speed,
} from "./shared.js";

const find = (id) => document.getElementById(id);
const DEFAULT_METRIC = "eval/mean_return";
const FIRST_PICKED = 6; // so many of the newest runs are picked for a reader who has not picked any

// ── The view, as in the address ──────────────────────────────────────────────────────────────────────────────────────

/**
 * @typedef {object} View
 * @property {string[] | null} picked ids in the order of picking; null: the reader has not picked, so the newest are
 * @property {string} metric
 * @property {boolean} group seeds of one setting become a mean and a band
 * @property {number} smoothing weight of the past, 0 is off
 * @property {string} filter
 * @property {string} sort a column
 * @property {boolean} descending
 */

/** @returns {View} */
function readView() {
  const query = new URLSearchParams(location.search);
  const sort = query.get("sort") ?? "state";
  const column = sort.replace(/^-/, "");
  const smoothing = Number(query.get("smoothing"));
  return {
    picked: query.has("picked") ? query.get("picked").split(",").filter(Boolean) : null,
    metric: query.get("metric") || DEFAULT_METRIC,
    group: query.get("group") === "1",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    filter: query.get("filter") ?? "",
    sort: Object.hasOwn(COLUMNS, column) ? column : "state",
    descending: sort.startsWith("-"),
  };
}

/** Where this view is found again; a view to share names its picks even if nobody has picked. */
function viewAddress(toShare = false) {
  return address("/", {
    picked: view.picked || toShare ? picked().join(",") : null,
    metric: view.metric === DEFAULT_METRIC ? null : view.metric,
    group: view.group ? 1 : null,
    smoothing: view.smoothing || null,
    filter: view.filter || null,
    sort: view.sort === "state" && !view.descending ? null : `${view.descending ? "-" : ""}${view.sort}`,
  }).replaceAll("%2C", ",").replaceAll("%2F", "/");
}

const writeView = throttled(() => history.replaceState(null, "", viewAddress()), 200);

// ── Data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const STATES = ["live", "broken", "failed", "stopped", "finished"]; // what wants attention first

/** How each column compares runs; and whether its first click puts the largest on top. */
const COLUMNS = {
  state: { key: (run) => STATES.indexOf(run.state) },
  name: { key: (run) => run.name },
  env: { key: (run) => run.env },
  seed: { key: (run) => run.seed },
  step: { key: (run) => run.step, largestFirst: true },
  best: { key: (run) => run.best, largestFirst: true },
  last: { key: (run) => run.last, largestFirst: true },
  speed: { key: (run) => run.speed, largestFirst: true },
  changed: { key: (run) => run.changed, largestFirst: true },
};

/** @type {Map<string, object>} every run by its id */
const runs = new Map();
/** @type {Map<string, Row>} */
const rows = new Map();
/** @type {Map<string, Curve>} curves of the chosen metric by run */
const curves = new Map();
/** @type {{from: number, to: number} | null} the steps the reader has zoomed to */
let span = null;
/** @type {Map<string, number>} the colour of each picked run or group, by number: kept for as long as it is picked */
const colours = new Map();
/** @type {Set<string>} runs whose curve must be fetched */
const stale = new Set();
/** @type {View} */
const view = readView();
let served = null; // the folder whose runs are shown
let command = null; // what shows them again
let automatic = []; // what is picked while the reader has not

/** The ids of the picked runs that are there. */
function picked() {
  return (view.picked ?? automatic).filter((id) => runs.has(id));
}

/** While the reader has not picked: the newest of one environment, because returns of two do not share an axis. */
function pickAutomatically() {
  if (view.picked) return;
  const kept = automatic.filter((id) => runs.has(id));
  const others = [...runs.values()].filter((run) => run.state !== "broken" && !kept.includes(run.id));
  others.sort((a, b) => b.changed - a.changed);
  const env = (runs.get(kept[0]) ?? others[0])?.env;
  automatic = [...kept, ...others.filter((run) => run.env === env).map((run) => run.id)].slice(0, FIRST_PICKED);
}

function pick(ids, wanted) {
  const others = picked().filter((id) => !ids.includes(id));
  view.picked = wanted ? [...picked(), ...ids.filter((id) => !picked().includes(id))] : others;
  showPicks();
}

function showPicks() {
  writeView();
  showRows();
  showCurves();
}

// ── The table ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One line of the table; its nodes stay the same while it lives, so focus and selection do too. */
class Row {
  constructor(id) {
    const cell = (name, kind, ...children) => element("td", { "data-cell": name, class: kind }, ...children);
    this.box = element("input", { type: "checkbox", onchange: () => pick([id], this.box.checked) });
    this.state = element("span", { class: "state" });
    this.name = element("a", { href: address("/run", { id }) });
    this.findings = element("a", { class: "mark", href: `${address("/run", { id })}#findings` });
    this.problem = element("span", { class: "row-problem", hidden: true });
    this.reason = element("span", { class: "row-reason", hidden: true });
    this.progress = element("progress", { max: 1 });
    this.steps = element("span", { class: "steps" });
    this.environment = cell("env", null);
    this.seed = cell("seed", "number");
    this.best = cell("best", "number");
    this.last = cell("last", "number");
    this.speed = cell("speed", "number");
    this.changed = cell("changed", "number quiet");
    this.node = element(
      "tr",
      { "data-run": id },
      cell("pick", "pick", this.box),
      cell("state", null, this.state),
      cell("name", null, this.name, this.problem, this.reason),
      this.environment,
      this.seed,
      cell("step", null, element("div", { class: "progress" }, this.progress, this.steps)),
      this.best,
      this.last,
      this.speed,
      this.changed,
    );
  }

  show(run, isPicked, colour) {
    setAttribute(this.node, "data-state", run.state);
    setAttribute(this.state, "data-state", run.state);
    setText(this.state, run.state);
    setText(this.name, run.name);
    this.showFindings(run);
    setText(this.problem, run.problem ?? "");
    this.problem.hidden = !run.problem;
    setText(this.reason, run.reason ? `Stopped by itself: ${run.reason}` : "");
    this.reason.hidden = !run.reason;
    setText(this.environment, run.env ?? "–");
    setText(this.seed, run.seed === null ? "–" : String(run.seed));
    setText(this.best, number(run.best));
    setText(this.last, number(run.last));
    setText(this.speed, speed(run.speed, "").trim());
    this.showProgress(run);
    this.showPick(run, isPicked, colour);
    this.showChanged(run);
  }

  showFindings(run) {
    setText(this.findings, countWords(run.findings));
    setAttribute(this.findings, "title", run.finding);
    if (!run.findings) this.findings.remove();
    else if (!this.findings.isConnected) this.name.after(this.findings);
  }

  showProgress(run) {
    const share = run.goal ? Math.min(1, run.step / run.goal) : 0;
    this.progress.hidden = !run.goal;
    if (this.progress.value !== share) this.progress.value = share;
    setAttribute(this.progress, "aria-label", `Progress of ${run.name}`);
    setText(this.steps, run.goal ? `${count(run.step)} / ${count(run.goal)}` : count(run.step));
  }

  showPick(run, isPicked, colour) {
    if (this.box.checked !== isPicked) this.box.checked = isPicked;
    setAttribute(this.box, "aria-label", `Pick ${run.name}`);
    setAttribute(this.node, "data-picked", isPicked ? "true" : null);
    this.box.style.accentColor = colour ?? "";
  }

  showChanged(run) {
    setText(this.changed, ago(run.changed));
    setAttribute(this.changed, "title", moment(run.changed));
  }
}

function matches(run) {
  const mark = run.findings ? countWords(run.findings) : "";
  const text = [run.name, run.env, run.state, `seed ${run.seed}`, mark].join(" ").toLowerCase();
  return view.filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function compare(a, b) {
  const { key } = COLUMNS[view.sort];
  const [left, right] = [key(a), key(b)];
  if ((left === null) !== (right === null)) return left === null ? 1 : -1; // what is not known is always last
  const order = typeof left === "string" ? natural(left, right) : left - right;
  return (view.descending ? -order : order) || natural(a.name, b.name) || natural(a.id, b.id);
}

const { compare: natural } = new Intl.Collator("en", { numeric: true });

function shownRuns() {
  return [...runs.values()].filter(matches).sort(compare);
}

function showRows() {
  const shown = shownRuns();
  const ids = new Set(picked());
  for (const run of shown) {
    if (!rows.has(run.id)) rows.set(run.id, new Row(run.id));
    rows.get(run.id).show(run, ids.has(run.id), ids.has(run.id) ? lineColour(colourOf(keyOf(run))) : null);
  }
  arrange(find("rows"), shown.map((run) => rows.get(run.id).node));
  showAround(shown, ids);
}

function showAround(shown, ids) {
  const pickedShown = shown.filter((run) => ids.has(run.id)).length;
  const all = find("pick-all");
  all.checked = shown.length > 0 && pickedShown === shown.length;
  all.indeterminate = pickedShown > 0 && pickedShown < shown.length;
  const total = `${count(runs.size)} ${runs.size === 1 ? "run" : "runs"}`;
  const words = shown.length < runs.size ? `${count(shown.length)} of ${total}` : total;
  setText(find("count"), `${words}, ${count(ids.size)} picked`);
  find("pick-none").disabled = ids.size === 0;
  find("no-match").hidden = shown.length > 0;
  for (const head of document.querySelectorAll("th[data-column]")) {
    const sorted = head.dataset.column === view.sort;
    setAttribute(head, "aria-sort", sorted ? (view.descending ? "descending" : "ascending") : null);
  }
  find("empty").hidden = runs.size > 0;
  find("runs").hidden = find("overlay").hidden = runs.size === 0;
}

function sortBy(column) {
  view.descending = view.sort === column ? !view.descending : Boolean(COLUMNS[column].largestFirst);
  view.sort = column;
  writeView();
  showRows();
}

// ── The curves ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What shares a colour: a run, or, when seeds are grouped, its group. */
function keyOf(run) {
  return view.group ? `group ${run.group}` : run.id;
}

/** The lowest number not in use; a curve keeps its own while it is picked. */
function colourOf(key) {
  if (!colours.has(key)) {
    const used = new Set(colours.values());
    let free = 0;
    while (used.has(free)) free += 1;
    colours.set(key, free);
  }
  return colours.get(key);
}

function forgetColours() {
  const keys = new Set(picked().map((id) => keyOf(runs.get(id))));
  for (const key of colours.keys()) if (!keys.has(key)) colours.delete(key);
  for (const key of keys) colourOf(key);
}

/** Whether a curve is known as far as it has grown, and the zoomed part of it in full detail. */
function isKnown(id) {
  const detail = curves.get(id)?.detail;
  return curves.has(id) && !stale.has(id) && detail?.from === span?.from && detail?.to === span?.to;
}

/** Fetches the curves that are wanted and not known; then draws. */
async function showCurves() {
  const [metric, part] = [view.metric, span];
  await Promise.all(picked().filter((id) => !isKnown(id)).map((id) => fetchCurve(id, metric, part)));
  if (metric === view.metric) await drawCurves();
  if (part === span) setAttribute(find("chart"), "data-detail", part && `${part.from}-${part.to}`);
}

async function fetchCurve(id, metric, part) {
  stale.delete(id);
  try {
    const asked = part ? [null, part] : [null];
    const [whole, detail] = await Promise.all(asked.map((within) => fetchSeries(id, [metric], within ?? {})));
    if (metric !== view.metric) return;
    if (!curves.has(id)) curves.set(id, new Curve());
    curves.get(id).replace(whole[metric]);
    if (part === span) curves.get(id).look(part, detail?.[metric]);
  } catch {
    stale.add(id); // a run may vanish, or be written this moment: its next change asks again
  }
}

/** Fetches the visible part in full detail. */
function zoom(wanted) {
  span = wanted;
  if (!span) curves.forEach((curve) => curve.look(null));
  return showCurves();
}

const refresh = throttled(showCurves, 1000);

/** The picked runs that have points, by what shares a colour. */
function bundles() {
  const found = new Map();
  for (const id of picked()) {
    const curve = curves.get(id);
    if (!curve || curve.isEmpty) continue;
    const key = keyOf(runs.get(id));
    if (!found.has(key)) found.set(key, { key, index: colourOf(key), runs: [], curves: [] });
    found.get(key).runs.push(runs.get(id));
    found.get(key).curves.push(curve.points);
  }
  const list = [...found.values()];
  list.forEach((bundle) => (bundle.name = bundleName(bundle, list)));
  return list;
}

/** A group is called what its runs have in common; two that are called alike also get their hash. */
function bundleName(bundle, all) {
  if (!view.group) return bundle.runs[0].name;
  const name = stem(bundle);
  const alike = all.filter((other) => other !== bundle && stem(other) === name).length > 0;
  return `${name}${alike ? ` · ${bundle.runs[0].group.slice(0, 4)}` : ""} (n = ${bundle.runs.length})`;
}

function stem({ runs: grouped }) {
  const [first, ...others] = grouped.map(withoutSeed);
  let shared = first;
  for (const name of others) while (!name.startsWith(shared)) shared = shared.slice(0, -1);
  if (others.some((name) => name !== first)) shared = shared.replace(/[-_/. ]*(seed)?[-_/. =]*$/i, "");
  return shared || grouped[0].env || grouped[0].name;
}

/** A run's name without the seed at its end: `Hopper-v5/author` of `Hopper-v5/author/seed-0`. */
function withoutSeed({ name, seed }) {
  const end = /([-_/. ]+(seed|s)?|^seed)[-_/. =]*0*(\d+)$/i.exec(name);
  return end && Number(end[3]) === seed ? name.slice(0, end.index) : name;
}

function traces(bundle) {
  const look = { name: bundle.name, index: bundle.index };
  if (!view.group) {
    const drawn = line(smooth(bundle.curves[0], view.smoothing), look);
    return view.smoothing ? [faintLine(bundle.curves[0], look), drawn] : [drawn];
  }
  const raw = average(bundle.curves, span);
  const behind = view.smoothing ? [faintLine({ step: raw.step, value: raw.mean }, look)] : [];
  return [...behind, ...groupTraces(smoothAverage(raw, bundle.curves, view.smoothing), look, bundle.curves.length)];
}

/** The mean is solid where every seed is in it and dotted where some are not yet, or no longer. */
function groupTraces(mean, look, seeds) {
  const low = mean.mean.map((value, place) => (mean.seeds[place] > 1 ? value - mean.spread[place] : null));
  const high = mean.mean.map((value, place) => (mean.seeds[place] > 1 ? value + mean.spread[place] : null));
  const isFull = (place) => mean.seeds[place] === seeds;
  const full = mean.mean.map((value, place) => (isFull(place) ? value : null));
  const isInside = (place) => isFull(place - 1) && isFull(place) && isFull(place + 1);
  const part = mean.mean.map((value, place) => (isInside(place) ? null : value));
  const made = seeds > 1 ? [band(mean.step, low, high, look)] : [];
  const spread = (place) => (mean.spread[place] === null ? "" : ` ± ${number(mean.spread[place])}`);
  const hover = { customdata: mean.step.map((_, place) => `${spread(place)}, n = ${mean.seeds[place]}`) };
  const words = "%{y:,.5~r}%{customdata}";
  const solid = line({ step: mean.step, value: full }, look);
  made.push({ ...solid, ...hover, hovertemplate: solid.hovertemplate.replace(/^[^<]*/, words) });
  if (mean.seeds.some((many) => many > 0 && many < seeds)) {
    const dotted = faintLine({ step: mean.step, value: part }, { ...look, dash: "dot" });
    made.push({ ...dotted, opacity: 0.9, line: { ...dotted.line, width: 1.5 } });
  }
  return made;
}

async function drawCurves() {
  forgetColours();
  const found = bundles();
  const metric = metricOf(view.metric);
  setText(find("overlay-title"), metric.words);
  setText(find("chart-nothing"), picked().length
    ? `Nothing yet: the picked runs have no ${metric.words.toLowerCase()} so far.`
    : "Pick runs in the table to lay their curves over one another.");
  setAttribute(find("chart"), "data-metric", view.metric);
  showLegend(found);
  await draw(find("chart"), found.flatMap(traces), { rows: [{ title: metric.axis }], legend: false });
  onZoom(find("chart"), zoom);
}

function showLegend(found) {
  const items = found.map((bundle) => {
    const swatch = element("span", { class: `swatch ${lineDash(bundle.index)}`, "aria-hidden": "true" });
    swatch.style.borderTopColor = lineColour(bundle.index);
    if (view.group) return element("li", { "data-group": bundle.runs[0].group }, swatch, bundle.name);
    const link = element("a", { href: address("/run", { id: bundle.key }) }, bundle.name);
    return element("li", { "data-legend": bundle.key }, swatch, link);
  });
  const words = "mean ± standard deviation (n − 1) over n seeds";
  if (view.group && items.length) items.push(element("li", { class: "quiet" }, words));
  const text = (nodes) => nodes.map((node) => node.outerHTML).join("");
  const legend = find("legend");
  if (text([...legend.children]) !== text(items)) legend.replaceChildren(...items);
}

// ── The tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

function showTools() {
  const names = Object.keys(METRICS);
  if (!names.includes(view.metric)) names.push(view.metric);
  const options = (group) => names.filter((name) => metricOf(name).group === group).map(
    (name) => element("option", { value: name }, metricOf(name).words),
  );
  find("metric").replaceChildren(...options(undefined), element("optgroup", { label: "Health" }, ...options("Health")));
  find("metric").value = view.metric;
  find("group").checked = view.group;
  find("smoothing").value = view.smoothing;
  find("filter").value = view.filter;
  showSmoothing();
}

function showSmoothing() {
  setText(find("smoothing-value"), view.smoothing ? view.smoothing.toFixed(2) : "off");
}

const drawSoon = throttled(drawCurves, 60);

function connectTools() {
  find("metric").addEventListener("change", (event) => {
    view.metric = event.target.value;
    curves.clear();
    showPicks();
  });
  find("group").addEventListener("change", (event) => {
    view.group = event.target.checked;
    colours.clear();
    forgetColours();
    showPicks();
  });
  find("smoothing").addEventListener("input", (event) => {
    view.smoothing = Number(event.target.value);
    showSmoothing();
    writeView();
    drawSoon();
  });
  find("filter").addEventListener("input", (event) => {
    view.filter = event.target.value.trim();
    writeView();
    showRows();
  });
  find("pick-all").addEventListener("change", (event) => pick(shownRuns().map((run) => run.id), event.target.checked));
  find("pick-none").addEventListener("click", () => pick(picked(), false));
  find("copy").addEventListener("click", copyLink);
  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => sortBy(button.dataset.sort));
  }
}

async function copyLink() {
  const link = new URL(viewAddress(true), location.href).href;
  const copied = await copy(link);
  setText(find("copy"), copied ? "Copied" : "Not copied");
  find("copy").dataset.link = link;
  setTimeout(() => setText(find("copy"), "Copy link"), 1600);
}

/** The clipboard is only open to safe addresses; elsewhere the old way must do. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = element("textarea", { class: "unseen", "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    const copied = document.execCommand("copy");
    box.remove();
    return copied;
  }
}

// ── Beginning, and going on ──────────────────────────────────────────────────────────────────────────────────────────

async function load() {
  try {
    const answer = await get("/api/runs");
    const there = new Set(answer.runs.map((run) => run.id));
    for (const id of [...runs.keys()]) if (!there.has(id)) forget(id);
    answer.runs.forEach(learn);
    setText(find("root"), answer.root);
    if (served && served !== answer.served) showNotice(`This address now shows the runs in “${answer.root}”.`);
    ({ served, watch: command } = answer);
    pickAutomatically();
    forgetColours();
    showRows();
    await showCurves();
    find("problem").hidden = true;
  } catch (error) {
    setText(find("problem"), error.message);
    find("problem").hidden = false;
  }
  ready();
}

function learn(run) {
  const known = runs.get(run.id);
  if (known && (known.step !== run.step || known.last !== run.last || known.changed !== run.changed)) stale.add(run.id);
  runs.set(run.id, run);
}

function forget(id) {
  runs.delete(id);
  curves.delete(id);
  rows.get(id)?.node.remove();
  rows.delete(id);
}

function onRuns({ runs: changed = [], gone = [] }) {
  changed.forEach(learn);
  gone.forEach(forget);
  pickAutomatically();
  forgetColours();
  showRows();
  if (gone.length || !picked().every(isKnown)) refresh();
}

showTop("runs");
showTools();
connectTools();
listen(null, { load, runs: onRuns, command: () => command });
onTheme(() => {
  showRows();
  drawCurves();
});
setInterval(() => rows.forEach((row, id) => row.showChanged(runs.get(id))), 5000);
