// The animation: a dot for each recorded row moves along the lit links, wave after wave, as a function of time alone.

import { pill, shape } from "./diagram.js";
import { number } from "./shared.js";

const WAVE = 1.3; // seconds that one wave travels
const PAUSE = 0.7; // seconds of rest after the last wave
const SPREAD = 0.055; // how far behind each other the rows travel
const READING = 5; // seconds that a step lasts at least

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Animation {
  constructor(diagram) {
    this.diagram = diagram;
    this.packets = [];
    this.waves = 0;
  }

  /** Prepares the packets of a flow; `row` is the one that is marked among `rows`. */
  prepare(flow, rows, row) {
    this.waves = flow.waves.length;
    this.packets = calm.matches
      ? []
      : flow.waves.flatMap((wave, n) => wave.map((journey) => new Packet(this.diagram, journey, n, rows, row)));
    this.diagram.packets.replaceChildren(...this.packets.map((packet) => packet.group));
    this.diagram.svg.dataset.waves = this.waves;
  }

  /** How long one passage through all waves takes, in seconds. */
  get passage() {
    return this.waves * WAVE + PAUSE;
  }

  /** How long the step is shown while playing: whole passages, and long enough to read. */
  get duration() {
    return this.packets.length ? Math.ceil(READING / this.passage) * this.passage : READING;
  }

  /** Puts everything where it is this many seconds after the step began. */
  draw(seconds) {
    const now = seconds % this.passage;
    for (const packet of this.packets) packet.draw(now / WAVE - packet.wave);
  }

  /** Nothing moves. */
  rest() {
    for (const packet of this.packets) packet.hide();
  }
}

/** What travels along one link: a dot for each row, and the number of the chosen one. */
class Packet {
  constructor(diagram, journey, wave, rows, row) {
    this.wave = wave;
    this.dropped = journey.dropped;
    this.path = diagram.links.get(journey.link).path;
    this.length = this.path.getTotalLength();
    this.group = shape("g", { class: `packet ${journey.kind}` });
    this.movers = dotsOf(journey, rows, row);
    this.label = null; // makes room while a number passes
    if (journey.number !== null) {
      this.movers.push(numberOf(journey));
      this.label = journey.link === "min-target" ? null : diagram.labelOf.get(journey.link);
    }
    this.group.append(...this.movers.map((mover) => mover.node));
    this.hide();
  }

  /** `share` runs from 0, when the wave sets out, to 1, when it has arrived. */
  draw(share) {
    if (share <= 0 || share >= 1) return this.hide();
    this.group.removeAttribute("display");
    this.label?.setAttribute("display", "none");
    for (const { node, behind } of this.movers) {
      const own = Math.min(Math.max((share - behind) / (1 - 6 * SPREAD), 0), 1);
      const at = this.path.getPointAtLength(this.length * eased(own) * (this.dropped ? 0.6 : 1));
      node.setAttribute("transform", `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})`);
      node.setAttribute("opacity", this.#opacity(own).toFixed(2));
    }
    return undefined;
  }

  #opacity(share) {
    const appearing = Math.min(share * 12, 1);
    return this.dropped ? appearing * Math.max(1 - share * share, 0) : Math.min(appearing, (1 - share) * 12);
  }

  hide() {
    this.group.setAttribute("display", "none");
    this.label?.removeAttribute("display");
  }
}

function dotsOf(journey, rows, row) {
  if (journey.kind === "gradient" || journey.kind === "copy") {
    return [0, 1, 2, 3].map((n) => ({ node: shape("circle", { class: "dot", r: 4 }), behind: n * SPREAD }));
  }
  const order = [row, ...Array.from({ length: rows }, (_, n) => n).filter((n) => n !== row)];
  return order
    .map((_, n) => ({
      node: shape("circle", { class: n === 0 ? "dot chosen" : "dot", r: n === 0 ? 6 : 3.6 }),
      behind: n * SPREAD,
    }))
    .reverse();
}

function numberOf(journey) {
  return { node: pill({ x: 0, y: 0 }, number(journey.number), `value ${journey.kind}`), behind: 0 };
}

function eased(share) {
  return share * share * (3 - 2 * share);
}
