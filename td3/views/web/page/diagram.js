// The diagram: memory, six networks, two optimisers and the small operations between them, drawn as SVG and lit up.

import { count, fixed, number } from "./shared.js";
import { kindOf } from "./steps-flow.js";

const SPACE = "http://www.w3.org/2000/svg";

/** Kind, name, and what stands below it; the upright diagram has shorter names. */
const PARTS = {
  environment: { kind: "environment", form: "box", name: "environments", short: "envs" },
  memory: { kind: "environment", form: "memory", name: "memory", short: "replay memory" },
  actor: { kind: "learned", form: "network", name: "actor", detail: "π(s)" },
  actor_target: { kind: "target", form: "network", name: "actor target", detail: "π′(s′)" },
  noise: { kind: "noise", form: "value", name: "noise ε" },
  plus: { kind: "noise", form: "circle", name: "+" },
  critic1: { kind: "learned", form: "network", name: "critic 1", detail: "Q₁(s, a)" },
  critic1_target: {
    kind: "target",
    form: "network",
    name: "critic target 1",
    short: "target 1",
    detail: "Q₁′(s′, a′)",
  },
  critic2_target: {
    kind: "target",
    form: "network",
    name: "critic target 2",
    short: "target 2",
    detail: "Q₂′(s′, a′)",
  },
  critic2: { kind: "learned", form: "network", name: "critic 2", detail: "Q₂(s, a)" },
  min: { kind: "number", form: "value", name: "min" },
  target: { kind: "number", form: "value", name: "y" },
  loss: { kind: "number", form: "value", name: "loss" },
  actor_optimizer: { kind: "optimiser", form: "optimiser", name: "Adam", detail: "of the actor" },
  critics_optimizer: { kind: "optimiser", form: "optimiser", name: "Adam", detail: "of the critics" },
};

export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function text(x, y, words, style) {
  return shape("text", { x, y, class: style }, words);
}

/** The whole picture in one layout; knows its parts and links, and lights them. */
export class Diagram {
  constructor(place, layout) {
    this.layout = layout;
    this.links = new Map(Object.entries(layout.links).map(([name, link]) => [name, drawLink(name, ...link)]));
    this.parts = new Map(Object.entries(layout.parts).map(([name, box]) => [name, drawPart(name, box, layout)]));
    this.lit = shape("g");
    this.labels = shape("g", { class: "labels" });
    this.packets = shape("g", { class: "packets" });
    const groups = [...this.links.values()].map((link) => link.group);
    this.svg = shape(
      "svg",
      { viewBox: `0 0 ${layout.width} ${layout.height}`, class: `drawn ${layout.name}`, role: "img" },
      shape("g", {}, ...groups),
      shape("g", {}, ...this.parts.values()),
      this.lit,
      this.labels,
      this.packets,
    );
    place.replaceChildren(this.svg);
  }

  /** Lights the flow's parts and links; a resting flow has parts and no waves. `fresh` numbers fade in. */
  show(flow, numbers, record, title, fresh) {
    const journeys = flow.waves.flat();
    const resting = journeys.length === 0;
    this.svg.setAttribute("aria-label", title);
    for (const [name, part] of this.parts) {
      const involved = flow.parts.includes(name);
      part.classList.toggle("active", involved && !resting);
      part.classList.toggle("resting", involved && resting);
      say(part, numbers[name], fresh);
    }
    this.#fillMemory(record);
    this.#lightLinks(journeys);
    this.labelOf = new Map(journeys.map((journey) => [journey.link, this.#label(journey)]));
    this.labels.replaceChildren(...[...this.labelOf.values()].filter(Boolean));
  }

  #lightLinks(journeys) {
    const byLink = new Map(journeys.map((journey) => [journey.link, journey]));
    for (const [name, link] of this.links) {
      const journey = byLink.get(name);
      link.group.classList.toggle("active", Boolean(journey));
      link.group.classList.toggle("dropped", Boolean(journey?.dropped));
      if (journey) this.lit.append(link.group);
      else if (link.group.parentNode === this.lit) this.svg.firstChild.append(link.group);
    }
  }

  #label({ link, words, kind, dropped }) {
    const { path, labelAt } = this.links.get(link);
    if (labelAt === null || !words) return null;
    const at = labelAt.x ? labelAt : path.getPointAtLength(path.getTotalLength() * labelAt);
    return pill(at, words, `label ${kind}${dropped ? " dropped" : ""}`);
  }

  #fillMemory({ memory: { rows }, fill: { written, places } }) {
    const memory = this.parts.get("memory");
    memory.querySelector(".fill").setAttribute("stroke-dasharray", `${Math.max((100 * written) / places, 1.5)} 200`);
    memory.querySelector(".value-text").textContent = `${count(rows)} rows`;
  }
}

/** A number in a rounded frame, its middle at this point. */
export function pill(at, words, style) {
  const narrow = [...words].filter((letter) => "₁₂′,. ".includes(letter)).length;
  const wide = 8.6 * (words.length - narrow) + 4.6 * narrow + 14;
  return shape(
    "g",
    { class: `pill ${style}`, transform: `translate(${at.x} ${at.y})` },
    shape("rect", { x: -wide / 2, y: -11, width: wide, height: 22, rx: 11 }),
    text(0, 5, words, "middle"),
  );
}

function say(part, value, fresh) {
  const place = part.querySelector(".value-text");
  if (!place || part.dataset.part === "memory") return;
  const words = value === undefined ? "" : Array.isArray(value) ? vector(value, part) : number(value);
  if (place.textContent === words) return;
  place.textContent = words;
  place.classList.remove("fresh");
  if (words && fresh) requestAnimationFrame(() => place.classList.add("fresh"));
}

/** As many of a vector's first numbers as there is room for. */
function vector(values, part) {
  const room = Number(part.dataset.room);
  const shown = values.slice(0, room).map((value) => fixed(value, 2));
  return shown.join(" ") + (values.length > room && part.classList.contains("network") ? "…" : "");
}

// ── Parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function drawPart(name, box, layout) {
  const part = PARTS[name];
  const words = layout.name === "tall" ? (part.short ?? part.name) : part.name;
  return shape(
    "g",
    { class: `part ${part.kind} ${part.form}`, "data-part": name, "data-room": layout.name === "tall" ? 1 : 2 },
    ...FORMS[part.form](box, words, part, layout.name === "tall"),
  );
}

const FORMS = {
  box: (box, words) => [frame(box), text(box[0], box[1] + 5, words, "name middle")],
  circle: drawCircle,
  memory: (box, words, part, tall) => (tall ? lyingMemory(box, words) : standingMemory(box, words)),
  network: (box, words, part, tall) => (tall ? smallNetwork(box, words, part) : largeNetwork(box, words, part)),
  optimiser: drawOptimiser,
  value: drawValue,
};

function frame([x, y, width, height], radius = 12) {
  return shape("rect", { class: "frame", x: x - width / 2, y: y - height / 2, width, height, rx: radius });
}

function drawCircle([x, y, width], words, part, tall) {
  const drawn = [shape("circle", { class: "frame", cx: x, cy: y, r: width / 2 }), text(x, y + 6, words, "name middle")];
  return tall ? drawn : [...drawn, text(x, y + width / 2 + 20, "", "value-text middle")];
}

function drawValue(box, words) {
  const [x, y] = box;
  const height = box[3];
  return [
    frame(box),
    text(x, y - height / 2 + 0.36 * height + 3, words, "name middle"),
    text(x, y + 0.28 * height + 4, "", "value-text middle"),
  ];
}

function drawOptimiser(box, words, part, tall) {
  const [x, y] = box;
  if (tall) return [frame(box, 9), text(x, y + 5, words, "name middle")];
  return [frame(box), text(x, y - 2, words, "name middle"), text(x, y + 14, part.detail, "detail middle")];
}

function largeNetwork(box, words, part) {
  const [x, y, width] = box;
  const left = x - width / 2 + 42;
  return [
    frame(box),
    neurons(x - width / 2 + 22, y, 1.2),
    text(left, y - 14, words, "name"),
    text(left, y + 6, part.detail, "detail"),
    text(left, y + 27, "", "value-text"),
  ];
}

function smallNetwork(box, words, part) {
  const [x, y] = box;
  return [
    frame(box, 10),
    text(x, y - 13, words, "name middle"),
    text(x, y + 4, part.detail, "detail middle"),
    text(x, y + 22, "", "value-text middle"),
  ];
}

/** A tiny network: two, three and one neuron. */
function neurons(x, y, scale) {
  const at = (column, row) => [x + 9 * scale * column, y + 13 * scale * row];
  const layers = [[at(-1, -0.5), at(-1, 0.5)], [at(0, -1), at(0, 0), at(0, 1)], [at(1, 0)]];
  const wires = layers
    .slice(1)
    .flatMap((layer, n) => layer.flatMap((end) => layers[n].map((start) => `M${start}L${end}`)));
  const dots = layers.flat().map(([cx, cy]) => shape("circle", { cx, cy, r: 3.1 }));
  return shape("g", { class: "neurons" }, shape("path", { d: wires.join("") }), ...dots);
}

function standingMemory(box, words) {
  const [x, y] = box;
  return [
    frame(box),
    text(x, y - 100, words, "name middle"),
    ...ring(x, y - 24, 44, 15),
    text(x, y + 62, "", "value-text middle"),
    text(x, y + 90, "s, a, r, s′, d", "detail middle"),
    text(x, y + 110, "d: terminated", "detail middle"),
  ];
}

function lyingMemory(box, words) {
  const [x, y, width] = box;
  const left = x - width / 2;
  return [
    frame(box),
    ...ring(left + 31, y, 15, 7),
    text(left + 60, y - 5, words, "name"),
    text(left + 60, y + 14, "", "value-text"),
    text(left + width - 14, y + 14, "s, a, r, s′, d", "detail end"),
  ];
}

/** All places in a circle; the filled ones dark. The path is 100 long, so shares are lengths. */
function ring(x, y, radius, width) {
  const circle = { cx: x, cy: y, r: radius, "stroke-width": width, pathLength: 100 };
  return [
    shape("circle", { ...circle, class: "places", "stroke-dasharray": "5.25 1" }),
    shape("circle", { ...circle, class: "fill", transform: `rotate(-90 ${x} ${y})` }),
  ];
}

// ── Links ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const HEAD = 10;
const AIR = 3;

function drawLink(name, corners, labelAt) {
  const [before, end] = corners.slice(-2);
  const [dx, dy] = direction(before, end);
  const tip = [end[0] - AIR * dx, end[1] - AIR * dy];
  const base = [tip[0] - HEAD * dx, tip[1] - HEAD * dy];
  const path = shape("path", { class: "line", d: rounded([...corners.slice(0, -1), base]) });
  const wings = [
    [base[0] - 5 * dy, base[1] + 5 * dx],
    [base[0] + 5 * dy, base[1] - 5 * dx],
  ];
  const head = shape("polygon", { class: "head", points: [tip, ...wings].join(" ") });
  return { path, labelAt, group: shape("g", { class: `link ${kindOf(name)}`, "data-link": name }, path, head) };
}

/** Lines are horizontal or vertical. */
function direction([x0, y0], [x1, y1]) {
  return [Math.sign(x1 - x0), Math.sign(y1 - y0)];
}

/** A path whose corners are round. */
function rounded(points, radius = 10) {
  const pieces = [`M${points[0]}`];
  for (let n = 1; n < points.length - 1; n += 1) {
    const corner = points[n];
    pieces.push(`L${towards(corner, points[n - 1], radius)}Q${corner} ${towards(corner, points[n + 1], radius)}`);
  }
  return `${pieces.join("")}L${points.at(-1)}`;
}

function towards(start, end, distance) {
  const length = Math.abs(end[0] - start[0]) + Math.abs(end[1] - start[1]);
  const share = Math.min(distance, length / 2) / length;
  return [start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share];
}
