// The charts of a run's health: what findings point at, in a folded group below the others.

import { metricOf } from "./charts.js";
import { element } from "./shared.js";

const SHARE = "%{y:.1%}";
const FROM_ZERO = { rangemode: "tozero" };

/** A chart of one metric. */
function single(name, row = {}, look = {}, more = {}) {
  const { axis } = metricOf(name);
  const rows = [{ title: axis, ...row }];
  return { name, metrics: [name], rows, lines: [[name, axis, 0, look]], legend: false, ...more };
}

/** A chart of one share, from 0 to 1. */
function share(name, more = {}) {
  return single(name, { format: ".0%", range: [-0.02, 1.02] }, { hover: SHARE }, more);
}

/**
 * `lines` are arguments of `lines` in run.js; a chart that is `optional` is not shown while it is empty.
 * @type {{name: string, words?: string, metrics: string[], rows: object[], lines: any[][], legend?: boolean,
 *   optional?: boolean}[]}
 */
export const HEALTH = [
  share("health/one_end"),
  single("health/actor_gradient", FROM_ZERO),
  single("health/residual_variance", { ...FROM_ZERO, reference: 1 }),
  share("health/dead_units"),
  {
    name: "health/q_size",
    words: "Size of the values",
    metrics: ["health/q_size", "health/target_std"],
    rows: [{ title: "values", ...FROM_ZERO }],
    lines: [["health/q_size", "mean size of Q1", 0], ["health/target_std", "std of the targets", 5, { dash: "dot" }]],
  },
  single("eval/value_error", { reference: 0 }),
  {
    name: "health/reward_mean",
    words: "Rewards",
    metrics: ["health/reward_mean", "health/reward_std", "health/reward_size"],
    rows: [{ title: "reward" }],
    lines: [
      ["health/reward_mean", "mean", 0],
      ["health/reward_std", "standard deviation", 1, { dash: "dash" }],
      ["health/reward_size", "largest size", 5, { dash: "dot" }],
    ],
  },
  share("eval/late_share"),
  single("rollout/ep_length", FROM_ZERO),
  share("health/image_change", { optional: true }),
];

export const HEALTH_METRICS = HEALTH.flatMap((chart) => chart.metrics);

/** What a chart's metrics mean, as the record's documentation says it. */
function sentence({ metrics }, meanings) {
  const text = metrics.map((name) => meanings[name] ?? name).join("; ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Makes a card for each chart. @param {HTMLElement} place @param {Object<string, string>} meanings by metric */
export function makeCards(place, meanings) {
  if (place.childElementCount) return;
  const cards = HEALTH.map((chart) =>
    element(
      "section",
      { class: "card", "data-card": chart.name, hidden: Boolean(chart.optional) },
      element("header", {}, element("h3", {}, chart.words ?? metricOf(chart.name).words)),
      element("p", { class: "sentence" }, sentence(chart, meanings)),
      element("div", { class: "chart short", "data-chart": chart.name }),
      element("p", { class: "nothing", hidden: true }, "Nothing yet: it has not been measured."),
    ),
  );
  place.replaceChildren(...cards);
}
