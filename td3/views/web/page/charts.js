// Curves: the names of metrics, how points are stored, smoothed and averaged, and how Plotly plots them.

import { throttled, colour, element, get, setAttribute, theme } from "./shared.js";

/** Every curve a page can show: its words, what its axis says, and the group it is listed in, if in any. */
export const METRICS = {
  "eval/mean_return": { words: "Evaluation return", axis: "mean return" },
  "rollout/ep_return": { words: "Training return", axis: "return of an episode" },
  "rollout/ep_length": { words: "Episode length", axis: "steps in an episode" },
  "train/critic_loss": { words: "Critic loss", axis: "critic loss" },
  "train/actor_loss": { words: "Actor loss", axis: "actor loss" },
  "train/q1_mean": { words: "Q1", axis: "mean value" },
  "train/q2_mean": { words: "Q2", axis: "mean value" },
  "train/target_mean": { words: "Target", axis: "mean value" },
  "eval/predicted_q": { words: "Predicted Q of the first action", axis: "discounted return" },
  "eval/discounted_return": { words: "Discounted evaluation return", axis: "discounted return" },
  "eval/std_return": { words: "Spread of the evaluation return", axis: "standard deviation" },
  "time/steps_per_second": { words: "Steps per second", axis: "steps per second" },
  "time/updates_per_second": { words: "Updates per second", axis: "updates per second" },
  "health/one_end": { words: "Actions at one end", axis: "share at one end", group: "Health" },
  "health/actor_gradient": { words: "Actor gradient", axis: "length of the gradient", group: "Health" },
  "health/residual_variance": { words: "Unexplained variance", axis: "share of the variance", group: "Health" },
  "health/dead_units": { words: "Dead units", axis: "share of the units", group: "Health" },
  "health/q_size": { words: "Size of the values", axis: "mean size of Q1", group: "Health" },
  "health/target_std": { words: "Spread of the targets", axis: "standard deviation", group: "Health" },
  "eval/value_error": { words: "Error of the predicted return", axis: "predicted − actual", group: "Health" },
  "health/reward_mean": { words: "Mean reward", axis: "mean reward", group: "Health" },
  "health/reward_std": { words: "Spread of the rewards", axis: "standard deviation", group: "Health" },
  "health/reward_size": { words: "Largest reward", axis: "largest size", group: "Health" },
  "eval/late_share": { words: "Rewards at an episode’s end", axis: "share in the last tenth", group: "Health" },
  "health/image_change": { words: "Change of the images", axis: "share of the bytes", group: "Health" },
};

/** A metric's words; one that is not known, which the address may name, is called by its name. */
export function metricOf(name) {
  return Object.hasOwn(METRICS, name) ? METRICS[name] : { words: name, axis: name };
}

export const COLOURS = 8;
const DASHES = ["solid", "dash", "dot", "dashdot"];

// ── Points ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Points in the order of their steps; a null is a gap. Of a long series the server sends the lowest and the
 * highest point of each stretch, so that no spike is lost; averages use its `mean` then, the mean of each stretch.
 * @typedef {{step: number[], value: (number | null)[], mean?: Series | null}} Series
 */

/** What may be averaged. @param {Series} series @returns {Series} */
function means(series) {
  return series.mean ?? series;
}

const MOST_POINTS = 6000; // live points arrive in full; beyond this the server is asked to thin them again

/** One metric of one run: the whole of it, thinned by the server; what arrives live; and the zoomed part in full. */
export class Curve {
  /** @type {Series} */
  whole = { step: [], value: [] };
  /** @type {{from: number, to: number, series: Series} | null} */
  detail = null;

  replace(series) {
    this.whole = copy(series);
  }

  append(series) {
    extend(this.whole, series);
    if (this.detail) extend(this.detail.series, series, this.detail);
  }

  /** Shows a part in full detail, or with null no part. @param {{from: number, to: number} | null} span */
  look(span, series = null) {
    this.detail = span && series ? { ...span, series: copy(series) } : null;
  }

  get isLong() {
    return this.whole.step.length > MOST_POINTS;
  }

  get isEmpty() {
    return !this.whole.value.some((value) => value !== null);
  }

  /** The whole, with the zoomed part in full detail put in its place. @returns {Series} */
  get points() {
    if (!this.detail) return this.whole;
    const { series, ...span } = this.detail;
    return { ...patched(this.whole, series, span), mean: patched(means(this.whole), means(series), span) };
  }
}

function copy({ step, value, mean }) {
  return { step: [...step], value: [...value], mean: mean ? copy(mean) : null };
}

/** `whole` with `part` in place of what it has from `from` to `to`. */
function patched(whole, part, { from, to }) {
  const before = slice(whole, (step) => step < from);
  const after = slice(whole, (step) => step > to);
  return {
    step: [...before.step, ...part.step, ...after.step],
    value: [...before.value, ...part.value, ...after.value],
  };
}

function last(list) {
  return list.length ? list[list.length - 1] : -Infinity;
}

function slice(series, wanted) {
  const places = series.step.flatMap((step, place) => (wanted(step) ? [place] : []));
  return { step: places.map((place) => series.step[place]), value: places.map((place) => series.value[place]) };
}

/** Appends what is new. A fetch and an event may both bring a point: at the last known step, equal values are one. */
function extend(known, arriving, { from = 0, to = Infinity } = {}) {
  const newest = last(known.step);
  const same = new Set(slice(known, (step) => step === newest).value);
  arriving.step.forEach((step, place) => {
    const value = arriving.value[place];
    if (step < newest || step < from || step > to || (step === newest && same.has(value))) return;
    for (const one of known.mean ? [known, known.mean] : [known]) {
      one.step.push(step);
      one.value.push(value);
    }
  });
}

/**
 * Exponential moving average, freed from the bias of its beginning; a gap stays a gap. No weight changes nothing.
 * @param {Series} series
 * @param {number} weight of the past, from 0 (none) to below 1
 * @returns {Series}
 */
export function smooth(series, weight) {
  if (!weight) return series;
  let sum = 0;
  let mass = 0;
  const { step, value: values } = means(series);
  const value = values.map((one) => {
    if (one === null) return null;
    sum = weight * sum + (1 - weight) * one;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
  return { step, value };
}

/**
 * A series' values at other steps, by straight lines between its points; null outside of them.
 * @param {Series} series
 * @param {number[]} steps in order
 */
export function interpolate(series, steps) {
  const { step, value } = series;
  const known = value.flatMap((one, place) => (one === null ? [] : [place]));
  let at = 0;
  return steps.map((wanted) => {
    while (at + 1 < known.length && step[known[at + 1]] <= wanted) at += 1;
    if (!known.length || wanted < step[known[0]] || wanted > step[known[known.length - 1]]) return null;
    const left = known[at];
    const right = known[Math.min(at + 1, known.length - 1)];
    if (step[left] === wanted || left === right) return value[left];
    const share = (wanted - step[left]) / (step[right] - step[left]);
    return value[left] + share * (value[right] - value[left]);
  });
}

const FINEST_GRID = 2000;

/** The steps any of them has, or a grid where these are too many; the zoomed part has its own and stays fine. */
function commonSteps(several, span) {
  const steps = [...new Set(several.flatMap((series) => series.step))].sort((a, b) => a - b);
  const { from, to } = span ?? { from: -Infinity, to: Infinity };
  const isWithin = [(step) => step < from, (step) => step >= from && step <= to, (step) => step > to];
  return isWithin.flatMap((wanted) => grid(steps.filter(wanted)));
}

function grid(steps) {
  if (steps.length <= FINEST_GRID) return steps;
  const [first, width] = [steps[0], last(steps) - steps[0]];
  return Array.from({ length: FINEST_GRID }, (_, place) => first + (width * place) / (FINEST_GRID - 1));
}

/** The standard deviation of a sample, which one value does not have. */
function deviation(values, mean) {
  if (values.length < 2) return null;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}

/**
 * Mean and standard deviation over several seeds, at the steps any of them has; seeds not there yet, or no longer, are
 * left out, and `seeds` is how many are included.
 * @param {Series[]} several
 * @param {{from: number, to: number} | null} span the zoomed part
 */
export function average(several, span = null) {
  const step = commonSteps(several.map(means), span);
  const curves = several.map((series) => interpolate(means(series), step));
  const columns = step.map((_, place) => curves.map((values) => values[place]).filter((value) => value !== null));
  const mean = columns.map((values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null));
  const spread = columns.map((values, place) => deviation(values, mean[place]));
  return { step, mean, spread, seeds: columns.map((values) => values.length) };
}

/**
 * What `average` made of several, smoothed: the spread stays that of the seeds, for smoothed seeds differ less. Where
 * each has steps of its own there are more points than in any of them, and each counts for less.
 */
export function smoothAverage(averaged, several, weight) {
  const longest = Math.max(...several.map((series) => means(series).step.length));
  const own = weight ** Math.min(1, longest / averaged.step.length);
  const smoothed = (value) => smooth({ step: averaged.step, value }, own).value;
  return { ...averaged, mean: smoothed(averaged.mean), spread: smoothed(averaged.spread) };
}

// ── Traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The colour of curve number `index`, from 0; a curve beyond the eighth differs by its dashes. */
export function lineColour(index) {
  return colour(`--series-${(index % COLOURS) + 1}`);
}

export function lineDash(index) {
  return DASHES[Math.floor(index / COLOURS) % DASHES.length];
}

/** `rgb(…)` with an opacity. */
export function faint(rgb, opacity) {
  return rgb.replace(/^rgba?\(([^,]+),([^,]+),([^,)]+).*$/, `rgba($1,$2,$3, ${opacity})`);
}

/** A name as Plotly shows it: Plotly reads markup and entities in texts, and a name is neither. */
export function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const FEW_POINTS = 30;
const HOVER_VALUE = "%{y:,.5~r}";

/**
 * How a curve looks: its name, its colour's number, the plot it is in, …
 * @typedef {{name: string, index?: number, row?: number, dash?: string, width?: number, fill?: boolean,
 *   hover?: string}} Look
 */

/**
 * A line; few points are marked one by one.
 * @param {Series} series
 * @param {Look} look
 */
export function line(series, look) {
  const { name, index = 0, row = 1, dash = lineDash(index), width, fill = false, hover = HOVER_VALUE } = look;
  const paint = lineColour(index);
  const few = series.step.length <= FEW_POINTS;
  return {
    type: "scatter",
    mode: few ? "lines+markers" : "lines",
    x: series.step,
    y: series.value,
    name: plain(name),
    legendgroup: `${name} ${index}`,
    yaxis: row === 1 ? "y" : `y${row}`,
    line: { color: paint, width: width ?? (few ? 2 : 1.5), dash },
    marker: { color: paint, size: few ? 5 : 3 },
    connectgaps: false,
    fill: fill ? "tozeroy" : "none",
    fillcolor: faint(paint, 0.12),
    hovertemplate: `${hover}<extra>${escapeTemplate(name)}</extra>`,
  };
}

const LONGEST_NAME = 36;

/** A name in a template: there `%{` would begin a variable; and of a long name the end tells it apart. */
function escapeTemplate(name) {
  const short = name.length > LONGEST_NAME ? `…${name.slice(1 - LONGEST_NAME)}` : name;
  return plain(short).replaceAll("%", "&#37;");
}

/** A line behind another: what was, before smoothing; each episode, behind their mean. */
export function faintLine(series, look) {
  const made = line(series, { ...look, width: 1 });
  return { ...made, mode: "lines", opacity: 0.28, showlegend: false, hoverinfo: "skip", hovertemplate: null };
}

/** The area between two curves over the same steps, one piece for each stretch without a gap. */
export function band(step, low, high, { name, index = 0, row = 1 }) {
  const x = [];
  const y = [];
  for (const [from, to] of stretches(low, high)) {
    const places = Array.from({ length: to - from }, (_, place) => from + place);
    const back = [...places].reverse();
    x.push(...places.map((place) => step[place]), ...back.map((place) => step[place]), null);
    y.push(...places.map((place) => high[place]), ...back.map((place) => low[place]), null);
  }
  return {
    type: "scatter",
    mode: "lines",
    x: x.slice(0, -1),
    y: y.slice(0, -1),
    name: plain(`${name}, ± std`),
    legendgroup: `${name} ${index}`,
    yaxis: row === 1 ? "y" : `y${row}`,
    line: { width: 0 },
    fill: "toself",
    fillcolor: faint(lineColour(index), 0.16),
    showlegend: false,
    hoverinfo: "skip",
  };
}

function stretches(low, high) {
  const found = [];
  let from = null;
  for (let place = 0; place <= low.length; place += 1) {
    const there = place < low.length && low[place] !== null && high[place] !== null;
    if (there && from === null) from = place;
    if (!there && from !== null) {
      found.push([from, place]);
      from = null;
    }
  }
  return found;
}

/** A mean ± its spread as a band, the spread being read at the steps of the mean. */
export function spreadBand(middle, spread, look) {
  const { step, value: values } = means(middle);
  const width = interpolate(means(spread), step);
  const moved = (sign) =>
    values.map((value, place) => (value === null || width[place] === null ? null : value + sign * width[place]));
  return band(step, moved(-1), moved(1), look);
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const CONFIGURATION = {
  displaylogo: false,
  showSendToCloud: false, // Plotly would offer to upload a chart, with its data, to its makers' server
  plotlyServerURL: "",
  responsive: true,
  doubleClick: "reset+autosize",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  showTips: false,
};

/**
 * One of the plots that stand above one another in a chart.
 * @typedef {{title: string, format?: string, range?: number[], rangemode?: string, autorange?: string, dtick?: number,
 *   grid?: boolean, reference?: number}} Row
 */

/** Plotly writes powers of ten with a style of its own, which the page forbids, where it has no letter for them. */
function exponents(traces) {
  let largest = 0;
  for (const { y = [] } of traces) for (const value of y) largest = Math.max(largest, Math.abs(value ?? 0));
  return largest >= 1e14 || (largest > 0 && largest < 1e-11) ? "e" : "B";
}

/** @param {Row} row */
function verticalAxis(row, place, rows, look) {
  const share = 1 / rows;
  const top = 1 - place * share;
  return {
    title: { text: plain(row.title), standoff: 10, font: { size: 12, color: look.soft } },
    domain: [place === rows - 1 ? 0 : top - share + 0.05, place === 0 ? 1 : top - 0.05],
    gridcolor: look.grid,
    linecolor: look.line,
    zerolinecolor: look.line,
    zeroline: false,
    tickformat: row.format,
    rangemode: row.rangemode,
    range: row.range,
    autorange: row.autorange,
    dtick: row.dtick,
    showgrid: row.grid ?? true,
    automargin: true,
    nticks: rows > 1 ? 5 : 7,
  };
}

function reference(row, place, look) {
  return {
    type: "line",
    xref: "paper",
    x0: 0,
    x1: 1,
    yref: place === 0 ? "y" : `y${place + 1}`,
    y0: row.reference,
    y1: row.reference,
    line: { color: look.line, width: 1, dash: "dot" },
  };
}

/** A line at a step. */
function mark(step, look) {
  return {
    type: "line",
    x0: step,
    x1: step,
    yref: "paper",
    y0: 0,
    y1: 1,
    line: { color: look.warn, width: 1.5, dash: "dash" },
  };
}

function looks() {
  return {
    ink: colour("--ink"),
    soft: colour("--ink-soft"),
    faint: colour("--ink-faint"),
    grid: colour("--plot-grid"),
    line: colour("--line-strong"),
    surface: colour("--surface"),
    warn: colour("--warn"),
    border: colour("--line"),
  };
}

/** @param {{rows: Row[], legend?: boolean, horizontal?: object, hovermode?: string, marks?: number[]}} options */
function layout({ rows, legend = true, horizontal = {}, hovermode = "x unified", marks = [] }, exponentformat) {
  const look = looks();
  const { title = "step", ...across } = horizontal;
  const made = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: look.soft },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 10, t: legend ? 30 : 8, b: 42 },
    showlegend: legend,
    legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { color: look.soft } },
    hovermode,
    hoverdistance: 20, // pixels: a curve says nothing where it has no point
    hoverlabel: { bgcolor: look.surface, bordercolor: look.border, font: { color: look.ink, size: 12 } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls the page
    uirevision: "the reader's zoom stays",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.ink },
    shapes: [
      ...rows.flatMap((row, place) => (row.reference === undefined ? [] : [reference(row, place, look)])),
      ...marks.map((step) => mark(step, look)),
    ],
    xaxis: {
      title: { text: plain(title), standoff: 8, font: { size: 12, color: look.soft } },
      anchor: rows.length === 1 ? "y" : `y${rows.length}`,
      gridcolor: look.grid,
      linecolor: look.line,
      zeroline: false,
      tickformat: "~s",
      hoverformat: ",.0f",
      unifiedhovertitle: { text: "step %{x:,.0f}" },
      spikecolor: look.line,
      spikethickness: 1,
      spikedash: "solid",
      nticks: 8,
      ...across,
    },
  };
  rows.forEach((row, place) => {
    made[place === 0 ? "yaxis" : `yaxis${place + 1}`] = {
      ...verticalAxis(row, place, rows.length, look),
      exponentformat,
    };
  });
  return made;
}

/**
 * Draws, or draws again, keeping the reader's zoom. Without traces the place says so quietly instead.
 * @param {HTMLElement} place `[data-chart]`; its next sibling is the `.nothing` that speaks for it when it is empty
 * @param {object[]} traces
 * @param {{rows: Row[], legend?: boolean, horizontal?: object, hovermode?: string, marks?: number[]}} options `marks`
 *   are steps to point at
 */
export async function draw(place, traces, options) {
  const empty = traces.length === 0;
  place.hidden = empty;
  if (place.nextElementSibling?.classList.contains("nothing")) place.nextElementSibling.hidden = !empty;
  if (empty) return;
  await plotly();
  const shown = namingSteps(traces, options.hovermode);
  await window.Plotly.react(place, shown, layout(options, exponents(traces)), CONFIGURATION);
  if (!place.dataset.drawn) followSize(place);
  setAttribute(place, "role", "figure");
  setAttribute(place, "aria-label", `Chart of ${options.rows.map((row) => row.title).join(" and ")}`);
  place.dataset.theme = theme();
  place.dataset.drawn = "true";
}

/** @type {Promise<void> | null} */
let library = null;

/** Loads Plotly when the first chart is drawn: it is large, and the page is there before it. */
function plotly() {
  library ??= new Promise((resolve, reject) => {
    const script = element("script", { src: "/static/plotly.js", onload: () => resolve() });
    script.addEventListener("error", () => {
      library = null; // the next chart asks again
      reject(new Error("The charts cannot be drawn: their library did not load."));
    });
    document.head.append(script);
  });
  return library;
}

/** Where curves have steps of their own, each says at which of them its value is: the title names one step alone. */
function namingSteps(traces, hovermode = "x unified") {
  const speaking = traces.filter((trace) => trace.hovertemplate);
  const [first] = speaking;
  const isSame = ({ x }) => x.length === first.x.length && x.every((step, place) => step === first.x[place]);
  if (hovermode !== "x unified" || speaking.every(isSame)) return traces;
  return traces.map((trace) => ({
    ...trace,
    hovertemplate: trace.hovertemplate?.replace("<extra>", " at step %{x:,.0f}<extra>"),
  }));
}

/** A chart grows and shrinks with its card, which may change without the window doing so, or be folded away. */
function followSize(place) {
  const fit = throttled(() => place.checkVisibility() && window.Plotly.Plots.resize(place), 100);
  new ResizeObserver(fit).observe(place);
}

/** The steps a reader has zoomed to, or null when everything is shown. */
export function zoomed(place) {
  const axis = place.layout?.xaxis;
  if (!axis?.range || axis.autorange) return null;
  const [from, to] = axis.range;
  return { from: Math.max(0, Math.floor(from)), to: Math.max(0, Math.ceil(to)) };
}

/** Calls back whenever the reader has zoomed, moved or let go; a chart that is not drawn yet cannot be asked to. */
export function onZoom(place, callback) {
  if (!place.dataset.drawn || place.dataset.zooms) return;
  place.dataset.zooms = "true";
  place.on("plotly_relayout", (change) => {
    if (Object.keys(change).some((name) => name.startsWith("xaxis"))) callback(zoomed(place));
  });
}

/** Whole series of a run by metric. @returns {Promise<Object<string, Series>>} */
export async function fetchSeries(id, metrics, span = {}, signal) {
  const answer = await get("/api/series", { id, metric: metrics, from: span.from, to: span.to }, signal);
  return answer.series;
}
