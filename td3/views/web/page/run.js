// The page of one run: figures, live curves, newest actions, film and settings.

import {
  Curve, draw, faint, fetchSeries, interpolate, line, lineColour, onZoom, smooth, spreadBand, zoomed,
} from "./charts.js";
import { foundAt, showFindings } from "./findings.js";
import { HEALTH, HEALTH_METRICS, makeCards } from "./health.js";
import {
  address, ago, throttled, colour, count, duration, element, get, listen, memoryFill, moment, number, onTheme,
  parameter, percent, ready, setAttribute, setText, showNotice, showTop, speed, whyGone,
} from "./shared.js";

const id = parameter("id");
const find = (name) => document.getElementById(name);
const chartPlace = (name) => document.querySelector(`[data-chart="${name}"]`);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);

// ── Data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const FROM_METRICS = [
  "eval/mean_return", "eval/std_return", "eval/predicted_q", "eval/discounted_return", "rollout/ep_return",
  "train/critic_loss", "train/actor_loss", "train/q1_mean", "train/q2_mean", "train/target_mean",
  "time/steps_per_second", "time/updates_per_second",
];
const FROM_UPDATES = ["twin_gap", "q1_smaller", "saturated", "memory_rows", "mean_age"];

/** @type {Map<string, Curve>} */
const curves = new Map(
  [...FROM_METRICS, ...HEALTH_METRICS, ...FROM_UPDATES].map((name) => [name, new Curve()]),
);
let run = null;
let served = null; // the folder whose server answers
let command = null; // what shows this run again
let isLoaded = false; // everything so far has been fetched: from now on events are enough
let updates = null;
let wanted = location.hash.slice(1); // the metric that the address points at, until it is shown
let isHealthLoaded = false; // its metrics are fetched when its group is first opened

const points = (name) => curves.get(name).points;
const isThere = (name) => !curves.get(name).isEmpty;

/** A line for each of these metrics that has points. */
function lines(...wanted) {
  return wanted
    .filter(([name]) => isThere(name))
    .map(([name, words, index, look]) => line(points(name), { name: words, index, ...look }));
}

// ── The charts ───────────────────────────────────────────────────────────────────────────────────────────────────────

const SMOOTHING = 0.9;
const SHARE = "%{y:.1%}";

/**
 * Each chart: where it is, what it is made of, and how.
 * @typedef {{name: string, metrics: string[], rows: object[], traces: () => object[], legend?: boolean,
 *   group?: string, optional?: boolean}} Chart
 * @type {Chart[]}
 */
const CHARTS = [
  {
    name: "eval/mean_return",
    metrics: ["eval/mean_return", "eval/std_return"],
    rows: [{ title: "mean return" }],
    legend: false,
    traces: () => [
      ...(isThere("eval/std_return") && isThere("eval/mean_return")
        ? [spreadBand(points("eval/mean_return"), points("eval/std_return"), { name: "mean return" })]
        : []),
      ...lines(["eval/mean_return", "mean return", 0]),
    ],
  },
  {
    name: "rollout/ep_return",
    metrics: ["rollout/ep_return"],
    rows: [{ title: "return of an episode" }],
    legend: false,
    traces: () => {
      if (!isThere("rollout/ep_return")) return [];
      const every = points("rollout/ep_return");
      const look = { index: 0 };
      return [
        { ...line(every, { ...look, name: "episode", width: 1 }), opacity: 0.35 },
        { ...line(smooth(every, SMOOTHING), { ...look, name: "moving average" }), mode: "lines" },
      ];
    },
  },
  {
    name: "eval/predicted_q",
    metrics: ["eval/predicted_q", "eval/discounted_return"],
    rows: [{ title: "discounted return" }],
    traces: () => lines(
      ["eval/predicted_q", "predicted by critic 1", 1, { dash: "dash" }],
      ["eval/discounted_return", "actual", 0],
    ),
  },
  {
    name: "train/critic_loss",
    metrics: ["train/critic_loss", "train/actor_loss"],
    rows: [{ title: "critic loss" }, { title: "actor loss" }],
    traces: () => lines(["train/critic_loss", "critic loss", 0], ["train/actor_loss", "actor loss", 1, { row: 2 }]),
    legend: false,
  },
  {
    name: "train/q1_mean",
    metrics: ["train/q1_mean", "train/q2_mean", "train/target_mean"],
    rows: [{ title: "mean value" }],
    traces: () => lines(
      ["train/target_mean", "target", 5, { dash: "dot" }],
      ["train/q1_mean", "Q1", 0],
      ["train/q2_mean", "Q2", 1, { dash: "dash" }],
    ),
  },
  {
    name: "twin_gap",
    metrics: ["twin_gap", "q1_smaller"],
    rows: [
      { title: "mean |Q1 − Q2|", rangemode: "tozero" },
      { title: "Q1 smaller", format: ".0%", range: [0, 1], reference: 0.5 },
    ],
    traces: () => lines(
      ["twin_gap", "mean |Q1 − Q2|", 0],
      ["q1_smaller", "Q1 is the smaller", 2, { row: 2, hover: SHARE }],
    ),
    legend: false,
  },
  {
    name: "saturated",
    metrics: ["saturated"],
    rows: [{ title: "at the bounds", format: ".0%", rangemode: "tozero" }],
    traces: () => lines(["saturated", "share at the bounds", 1, { hover: SHARE }]),
    legend: false,
  },
  {
    name: "memory_rows",
    metrics: ["memory_rows", "mean_age"],
    rows: [{ title: "transitions", format: "~s", rangemode: "tozero" }],
    traces: () => lines(["memory_rows", "held", 0, { fill: true }], ["mean_age", "mean age", 4, { dash: "dash" }]),
  },
  {
    name: "time/steps_per_second",
    metrics: ["time/steps_per_second", "time/updates_per_second"],
    rows: [{ title: "per second", rangemode: "tozero" }],
    traces: () => lines(
      ["time/steps_per_second", "steps", 0],
      ["time/updates_per_second", "updates", 1, { dash: "dash" }],
    ),
  },
  ...HEALTH.map((chart) => ({ ...chart, group: "health", traces: () => lines(...chart.lines) })),
];

/** @param {Chart} chart */
async function drawChart(chart) {
  if (chart.group && !find(chart.group).open) return; // drawn when it is opened
  const place = chartPlace(chart.name);
  const traces = chart.traces();
  if (chart.optional) place.parentElement.hidden = !traces.length;
  await draw(place, traces, { ...chart, marks: foundAt(chart.metrics) });
  onZoom(place, (span) => zoom(chart, span));
}

const dirty = new Set();

const drawDirty = throttled(async () => {
  const wanted = CHARTS.filter((chart) => dirty.has(chart.name));
  dirty.clear();
  for (const chart of wanted) await drawChart(chart);
  showOverestimation();
}, 300);

function changed(metrics) {
  for (const chart of CHARTS) if (chart.metrics.some((name) => metrics.includes(name))) dirty.add(chart.name);
  if (dirty.size) drawDirty();
}

async function drawAll() {
  for (const chart of CHARTS) await drawChart(chart);
  await drawActions();
  showOverestimation();
}

// ── Zooming: the visible part is fetched in full detail ──────────────────────────────────────────────────────────────

const asking = new Map();

/** @param {Chart} chart @param {{from: number, to: number} | null} span */
async function zoom(chart, span) {
  asking.get(chart.name)?.abort();
  const metrics = chart.metrics.filter((name) => !FROM_UPDATES.includes(name));
  if (!metrics.length) return;
  if (!span) {
    metrics.forEach((name) => curves.get(name).look(null));
    setAttribute(chartPlace(chart.name), "data-detail", null);
    await drawChart(chart);
    return;
  }
  const control = new AbortController();
  asking.set(chart.name, control);
  try {
    const found = await fetchSeries(id, metrics, span, control.signal);
    for (const name of metrics) curves.get(name).look(span, found[name]);
    await drawChart(chart);
    setAttribute(chartPlace(chart.name), "data-detail", `${span.from}-${span.to}`);
  } catch (error) {
    if (error.name !== "AbortError") showProblem(error.message);
  }
}

// ── Findings, and the charts they point at ───────────────────────────────────────────────────────────────────────────

function onFindings(findings, news = true) {
  changed(showFindings(findings, { chart: showChart, news }));
}

/** Shows the chart of a metric, wherever it is folded away, and moves the focus to it. */
async function showChart(metric) {
  const chart = CHARTS.find(({ metrics }) => metrics.includes(metric));
  if (!chart) return;
  history.replaceState(null, "", `#${metric}`); // to be shared
  if (chart.group) {
    find(chart.group).open = true;
    await showHealth();
  }
  const card = chartPlace(chart.name).closest(".card");
  document.querySelector(".card.pointed")?.classList.remove("pointed");
  card.classList.add("pointed");
  card.tabIndex = -1;
  card.scrollIntoView({ block: "center" });
  card.focus({ preventScroll: true });
}

/** Fetches the curves of the health group when it is opened for the first time; draws them whenever it is opened. */
async function showHealth() {
  if (!isLoaded || !find("health").open) return;
  try {
    if (!isHealthLoaded) {
      const found = await fetchSeries(id, HEALTH_METRICS);
      for (const name of HEALTH_METRICS) {
        const { whole: arrived } = curves.get(name); // live, since the page was opened
        curves.get(name).replace(found[name]);
        curves.get(name).append(arrived);
      }
      isHealthLoaded = true;
    }
    for (const chart of CHARTS.filter(({ group }) => group)) await drawChart(chart);
  } catch (error) {
    showProblem(error.message);
  }
}

// ── Words and figures ────────────────────────────────────────────────────────────────────────────────────────────────

function showProblem(sentence) {
  setText(find("problem"), sentence ?? "");
  find("problem").hidden = !sentence;
}

/** It is not there: it has not begun yet, its folder was deleted meanwhile, or another server answers. */
async function showMissing() {
  isLoaded = false;
  find("absent").hidden = run !== null;
  showProblem(run ? await whyGone(id, served, command) : null);
}

function showRun() {
  find("absent").hidden = true;
  find("run").hidden = false;
  document.title = `${run.env ?? run.name}${run.seed === null ? "" : `, seed ${run.seed}`} · td3`;
  setText(find("name"), run.name);
  setText(find("state"), run.state);
  setAttribute(find("state"), "data-state", run.state);
  setText(find("env"), run.env ?? "unknown environment");
  setText(find("seed"), run.seed === null ? "" : `seed ${run.seed}`);
  setText(find("run-problem"), run.problem ?? "");
  find("run-problem").hidden = !run.problem;
  setText(find("run-reason"), run.reason ? `Stopped by itself at step ${count(run.step)}: ${run.reason}` : "");
  find("run-reason").hidden = !run.reason;
  setText(figure("best"), number(run.best));
  setText(figure("last"), number(run.last));
  setText(figure("speed"), speed(run.speed, "steps/s"));
  showProgress();
  showChanged();
}

function showProgress() {
  const share = run.goal ? Math.min(1, run.step / run.goal) : null;
  setText(figure("progress"), run.goal ? `${count(run.step)} of ${count(run.goal)} steps` : `${count(run.step)} steps`);
  find("progress").hidden = share === null;
  if (share !== null) find("progress").value = share;
  const left = run.state === "live" && run.goal && run.speed ? (run.goal - run.step) / run.speed : null;
  setText(figure("left"), run.state === "finished" ? "done" : duration(left));
}

function showChanged() {
  setText(find("changed"), `changed ${ago(run.changed)}`);
  setAttribute(find("changed"), "title", moment(run.changed));
}

/** One sentence on the newest evaluation: predicted and actual return. */
function showOverestimation() {
  const predictions = curves.get("eval/predicted_q").whole;
  const place = predictions.value.findLastIndex((value) => value !== null);
  const predicted = predictions.value[place];
  const real = curves.get("eval/discounted_return").whole;
  const [actual] = place < 0 ? [null] : interpolate(real, [predictions.step[place]]);
  find("overestimation").hidden = place < 0 || actual === null;
  if (find("overestimation").hidden) return;
  const gap = predicted - actual;
  const comparison = gap > 0 ? `${number(gap)} too high` : `${number(-gap)} too low`;
  const sentence = `At step ${count(predictions.step[place])} critic 1 predicts ${number(predicted)}`;
  setText(find("overestimation"), `${sentence} and the agent gets ${number(actual)}: ${comparison}.`);
  find("overestimation").dataset.gap = String(gap);
}

function showMemory() {
  const { memory_rows: held = [], oldest_age: ages = [], step: steps = [], capacity } = updates?.series ?? {};
  const rows = held.at(-1);
  const known = rows !== undefined && rows !== null && Boolean(capacity);
  find("memory-fill").hidden = !known;
  if (!known) return;
  const { written, places } = memoryFill({ rows, capacity, oldest_age: ages.at(-1) }, steps.at(-1), run);
  const end = places < capacity ? " that this run will store" : "";
  find("memory-fill").value = written / places;
  setText(find("memory-text"), `${count(written)} of ${count(places)}${end} (${percent(written / places)})`);
  setAttribute(find("memory-text"), "title", `Room for ${count(capacity)}`);
}

// ── Actions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The middles of equal bins from −1 to 1. */
function middles(bins) {
  return Array.from({ length: bins }, (_, place) => -1 + (2 * place + 1) / bins);
}

function shares(counts) {
  const total = counts.reduce((sum, one) => sum + one, 0);
  return counts.map((one) => (total ? one / total : 0));
}

/** One dimension as bars, several as a strip each, darker where actions are frequent. */
async function drawActions() {
  const histogram = updates?.histogram;
  const counts = histogram?.counts ?? [];
  setText(find("histogram-step"), counts.length ? `newest: step ${count(histogram.step)}` : "");
  const horizontal = { title: "action", tickformat: ".1f", hoverformat: ".2f", range: [-1, 1], showgrid: false };
  const place = chartPlace("histogram");
  if (counts.length > 1) place.style.setProperty("--height", `${Math.min(24 * counts.length + 80, 480)}px`);
  const row = counts.length > 1 ? dimensions(counts.length) : { title: "share", format: ".0%", rangemode: "tozero" };
  await draw(place, counts.length ? [counts.length > 1 ? strips(counts) : bars(counts[0])] : [], {
    rows: [row], legend: false, horizontal, hovermode: "closest",
  });
}

function dimensions(many) {
  return { title: "dimension", autorange: "reversed", grid: false, dtick: many <= 12 ? 1 : undefined };
}

function bars(counts) {
  return {
    type: "bar",
    x: middles(counts.length),
    y: shares(counts),
    width: 2 / counts.length,
    marker: { color: lineColour(0), line: { color: colour("--surface"), width: 1 } },
    hovertemplate: "about %{x:.2f}: %{y:.1%}<extra></extra>",
  };
}

function strips(counts) {
  return {
    type: "heatmap",
    x: middles(counts[0].length),
    y: counts.map((_, dimension) => dimension + 1),
    z: counts.map(shares),
    zmin: 0,
    colorscale: [[0, faint(lineColour(0), 0.06)], [1, lineColour(0)]],
    showscale: false,
    ygap: 3,
    hovertemplate: "dimension %{y}, about %{x:.2f}: %{z:.1%}<extra></extra>",
  };
}

// ── Film and settings ────────────────────────────────────────────────────────────────────────────────────────────────

const prefersStillness = matchMedia("(prefers-reduced-motion: reduce)");

function showFilm(version, source = address("/api/film", { id, v: version })) {
  const film = find("film");
  find("film-card").hidden = false;
  find("film-card").previousElementSibling.classList.add("beside-film");
  film.dataset.version = String(version);
  const play = () => {
    film.src = source;
    film.hidden = false;
    find("film-play").hidden = true;
  };
  if (!prefersStillness.matches) play();
  else {
    find("film-play").hidden = false;
    find("film-play").onclick = play;
  }
}

/** One setting per line; nested ones are named by their path. */
function flatten(settings, path = "") {
  return Object.entries(settings).flatMap(([name, value]) => {
    const isNested = value !== null && typeof value === "object" && !Array.isArray(value);
    return isNested ? flatten(value, `${path}${name}.`) : [[`${path}${name}`, value]];
  });
}

function table(title, settings) {
  const lines = flatten(settings).map(([name, value]) =>
    element(
      "tr",
      { "data-setting": name },
      element("th", { scope: "row" }, name),
      element("td", {}, typeof value === "string" ? value : JSON.stringify(value)),
    ),
  );
  return element("table", { class: "settings" }, element("caption", {}, title), element("tbody", {}, ...lines));
}

/** A table for each group of settings; those of no group come last. */
function tablesOf(config, groups) {
  const grouped = new Set(Object.values(groups).flat());
  const others = Object.keys(config).filter((name) => !grouped.has(name));
  return [...Object.entries(groups), ["Other settings", others]].flatMap(([group, names]) => {
    const present = names.filter((name) => Object.hasOwn(config, name)).map((name) => [name, config[name]]);
    return present.length ? [table(group, Object.fromEntries(present))] : [];
  });
}

function showSettings(config, versions, groups) {
  const noise = config?.exploration_noise === 0 ? "without" : "with exploration";
  setText(find("training-words"), `Each training episode, played ${noise} noise, and the moving average.`);
  const tables = config ? tablesOf(config, groups) : [];
  if (versions) tables.push(table("Versions", versions));
  find("configuration").hidden = tables.length === 0;
  find("configuration").querySelector(".tables").replaceChildren(...tables);
}

// ── Loading and live events ──────────────────────────────────────────────────────────────────────────────────────────

async function load() {
  isLoaded = false;
  try {
    const answer = await askForRun();
    if (answer) await showAll(answer);
    else await showMissing();
  } catch (error) {
    showProblem(error.message);
  }
  ready();
}

/** Fetches, before the server ends, what could be looked at afterwards: all curves, and the film. */
async function loadLast() {
  isHealthLoaded = true; // with the other curves
  await load();
  const film = find("film");
  if (find("film-card").hidden) return;
  const answer = await fetch(address("/api/film", { id, v: film.dataset.version }));
  if (answer.ok) showFilm(film.dataset.version, URL.createObjectURL(await answer.blob()));
}

/** What the server knows of the run; null if it is not there. */
async function askForRun() {
  try {
    return await get("/api/run", { id });
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function showAll(answer) {
  if (run && run.begun !== answer.run.begun) showNotice("Another run has begun in this folder: it is shown now.");
  ({ run, served, watch: command } = answer);
  showProblem(null);
  showRun();
  showSettings(answer.config, answer.versions, answer.groups);
  makeCards(find("health-cards"), answer.meanings);
  setText(find("doctor"), answer.doctor);
  onFindings(answer.findings, false);
  find("film-card").hidden = !answer.film;
  if (answer.film) showFilm(answer.film_version);
  await Promise.all([loadSeries(), loadUpdates()]);
  isLoaded = true;
  await drawAll();
  await Promise.all(CHARTS.map(zoomAgain));
  await showHealth();
  if (wanted) showChart(wanted);
  wanted = null;
}

/** A zoomed chart stays zoomed when everything is fetched anew. @param {Chart} chart */
async function zoomAgain(chart) {
  const span = zoomed(chartPlace(chart.name));
  if (span) await zoom(chart, span);
}

async function loadSeries() {
  const names = isHealthLoaded ? [...FROM_METRICS, ...HEALTH_METRICS] : FROM_METRICS;
  const found = await fetchSeries(id, names);
  for (const name of [...FROM_METRICS, ...HEALTH_METRICS]) {
    curves.get(name).replace(found[name] ?? { step: [], value: [] });
  }
}

async function loadUpdates() {
  updates = await get("/api/updates", { id });
  const { series } = updates;
  for (const name of FROM_UPDATES) curves.get(name).replace({ step: series?.step ?? [], value: series?.[name] ?? [] });
  showMemory();
}

const refreshUpdates = throttled(async () => {
  await loadUpdates();
  await drawActions();
  changed(FROM_UPDATES);
}, 1000);

async function refreshSeries() {
  await loadSeries();
  changed([...FROM_METRICS, ...HEALTH_METRICS]);
}

/** A run that has just appeared is fetched as a whole, as if the page had been opened now. */
async function onRuns({ runs = [], gone = [] }) {
  if (gone.includes(id)) await showMissing();
  const own = runs.find((one) => one.id === id);
  if (!own) return;
  if (!isLoaded || own.begun !== run.begun) {
    await load();
    return;
  }
  run = own;
  showProblem(null);
  showRun();
}

async function onPoints({ id: ofRun, series = {}, again = false }) {
  if (ofRun !== id) return;
  const names = Object.keys(series).filter((name) => curves.has(name) && !FROM_UPDATES.includes(name));
  for (const name of names) curves.get(name).append(series[name]);
  changed(names);
  if (again || names.some((name) => curves.get(name).isLong)) await refreshSeries();
}

function start() {
  showTop("run", id);
  if (!id) {
    showProblem("No run is named in the address.");
    ready();
    return;
  }
  find("health").addEventListener("toggle", showHealth);
  find("steps-link").href = address("/steps", { id });
  listen(id, {
    load,
    last: loadLast,
    command: () => command,
    runs: onRuns,
    points: onPoints,
    findings: ({ id: ofRun, findings }) => ofRun === id && onFindings(findings),
    updates: ({ id: ofRun }) => ofRun === id && refreshUpdates(),
    film: ({ id: ofRun, version }) => ofRun === id && showFilm(version),
  });
  onTheme(() => run && drawAll());
  setInterval(() => run && showChanged(), 5000);
}

start();
