// The band of findings on a run's page: what the diagnosis saw, what to try first, and where to look.

import { metricOf } from "./charts.js";
import { arrange, count, element, setText } from "./shared.js";

const OPEN = 3; // the worst ones; the others are folded

const find = (name) => document.getElementById(name);

/**
 * @typedef {{name: string, step: number, seen: string, advice: string, chart: string, command: string | null}} Finding
 * @type {Finding[]}
 */
let findings = [];
let nodes = new Map(); // by the finding as text: one that stays keeps its node, and so a reader's focus and selection

/** How many there are, in words. */
export function countWords(many) {
  return `${count(many)} ${many === 1 ? "finding" : "findings"}`;
}

/** The steps at which something was found that one of these metrics shows. */
export function foundAt(metrics) {
  return [...new Set(findings.filter(({ chart }) => metrics.includes(chart)).map(({ step }) => step))];
}

/**
 * Shows these findings, the worst first, in place of those before.
 * @param {Finding[]} found
 * @param {{chart: (metric: string) => any, news: boolean}} options what a link to a chart calls; whether those that
 *   were not there before are news, which a screen reader says
 * @returns {string[]} metrics with charts that have something else to show now
 */
export function showFindings(found, { chart, news }) {
  const before = findings;
  findings = found;
  const made = new Map(found.map((one) => [JSON.stringify(one), one]));
  const fresh = [...made.keys()].filter((key) => !nodes.has(key));
  nodes = new Map([...made].map(([key, one]) => [key, nodes.get(key) ?? item(one, chart)]));
  const items = [...nodes.values()];
  arrange(find("findings-worst"), items.slice(0, OPEN));
  arrange(find("findings-others"), items.slice(OPEN));
  find("findings").hidden = !items.length;
  find("findings-fold").hidden = items.length <= OPEN;
  setText(find("findings-count"), countWords(items.length));
  setText(find("findings-more"), `${count(items.length - OPEN)} more`);
  if (news && fresh.length) setText(find("findings-news"), fresh.map((key) => `Found: ${made.get(key).seen}`).join(" "));
  return [...before, ...found].map((one) => one.chart);
}

/** @param {Finding} finding */
function item(finding, showChart) {
  const where = [];
  if (finding.chart) {
    const onclick = (event) => {
      event.preventDefault();
      showChart(finding.chart);
    };
    where.push(element("a", { href: `#${finding.chart}`, onclick }, `Chart: ${metricOf(finding.chart).words}`));
  }
  if (finding.command) where.push(element("code", {}, finding.command));
  return element(
    "li",
    { "data-finding": finding.name },
    element("p", { class: "when" }, `Step ${count(finding.step)}`),
    element(
      "div",
      {},
      element("p", { class: "seen" }, finding.seen),
      finding.advice ? element("p", { class: "advice" }, element("b", {}, "Try first: "), finding.advice) : null,
      where.length ? element("p", { class: "where" }, ...where) : null,
    ),
  );
}
