// The panel's data: the numbers of the recorded update for each step, in cells that hold their exact value.

import { shape } from "./diagram.js";
import { count, element, fixed, number, percent } from "./shared.js";
import { discountOf, isNormalised, isNStep, isSkipped, noiseOff, scaleOf } from "./steps-flow.js";
import { framesFigure, sightOf, thumbnail } from "./steps-images.js";

const COLUMNS = 6; // as many dimensions as fit beside each other

/**
 * What step `step` of this update shows.
 * @returns {Node[]}
 */
export function dataOf(step, record, row) {
  const shown = SHOWN[step - 1](record, row);
  return isSkipped(step, record) ? [restingNotice(record), ...shown] : [...shown, ...encoderNotes(step, record)];
}

const SHOWN = [
  memoryFacts,
  actorFacts,
  criticFacts,
  sampledRows,
  nextActions,
  smoothing,
  nextValues,
  smallerValues,
  targets,
  storedValues,
  losses,
  criticSteps,
  actorStep,
  (record) => [followed(record, [["actor", "actor_target", "actor target"]])],
  (record) => [
    followed(record, [
      ["critic1", "critic1_target", "critic target 1"],
      ["critic2", "critic2_target", "critic target 2"],
      ...(record.images ? [["encoder", "encoder_target", "encoder target"]] : []),
    ]),
  ],
];

/** Where there are images: who reads them, and what of them. */
const ENCODER_NOTES = {
  1: () => "Each frame is stored once, however many states contain it.",
  2: (features) => `The actor does not read frames: it reads the ${features} that the critics’ encoder makes of them.`,
  3: (features) =>
    `Both critics share one encoder, which turns an observation into ${features}; their targets share its target.`,
  5: (features) => `The critic targets’ encoder turns s′ into ${features}; the actor target reads those.`,
  7: (features) => `Both read the same ${features}, which the encoder they share made of s′ in step 5.`,
  10: (features) => `The critics’ encoder turns s into ${features}; both critics read those and the action.`,
  12: () => "The encoder learns from the loss of both critics, and from nothing else.",
  13: (features) =>
    `The actor reads the ${features} that the critics’ encoder made of s in step 10. Its own loss does not change ` +
    "the encoder.",
};

function encoderNotes(step, { images }) {
  if (!images || !ENCODER_NOTES[step]) return [];
  return [note(ENCODER_NOTES[step](images.features === 1 ? "one number" : `${count(images.features)} numbers`))];
}

// ── 1 to 3: what was built ───────────────────────────────────────────────────────────────────────────────────────────

function memoryFacts(record) {
  const { memory, fill: { written, places } } = record;
  const end = places < memory.capacity ? " that this run will write" : "";
  // Where each frame or observation is stored once, an episode has one row more than transitions.
  const unit = record.images || record.history ? "rows" : "transitions";
  return [
    bar(written / places, `${count(written)} of ${count(places)} rows${end} are written`),
    facts([
      ["room for", "capacity", memory.capacity, `${count(memory.capacity)} rows`],
      ["rows held", "memory_rows", memory.rows, count(memory.rows)],
      ["mean age of the rows in this batch", "mean_age", memory.mean_age, `${count(memory.mean_age)} ${unit}`],
      ["age of the oldest row held", "oldest_age", memory.oldest_age, `${count(memory.oldest_age)} ${unit}`],
      ...(record.images || record.history ? [["one observation", "sight", sightOf(record), sightOf(record)]] : []),
      transitionFact(record),
    ]),
  ];
}

function transitionFact(record) {
  const { images, history, observation_size: observed, action_size: acted } = record;
  const once = images ?? history; // each frame or observation is stored once, with its links
  const words = !once && isNStep(record) ? "one transition, besides its links to others" : "one transition";
  const bytes = once?.transition_bytes ?? 4 * (2 * observed + acted + 1) + 1;
  const sum = once ? "" : `4 · (${observed} + ${acted} + 1 + ${observed}) + 1 = `;
  return [words, "transition_bytes", bytes, `${sum}${count(bytes)} bytes`];
}

/** How many numbers the actor and the critics get of a state: its own, or the features of the encoder. */
function inputSize({ images, features, observation_size: observed }) {
  return images?.features ?? features ?? observed;
}

function actorSizes(record) {
  const { actor_hidden: own, hidden } = record.settings;
  return [inputSize(record), ...(own ?? hidden), record.action_size];
}

function criticSizes(record) {
  const { critic_hidden: own, hidden } = record.settings;
  return [inputSize(record) + record.action_size, ...(own ?? hidden), 1];
}

function actorFacts(record) {
  const sizes = actorSizes(record);
  return [
    layers(sizes, record.images ? "features" : "state", "action"),
    facts([
      ["parameters, and as many in the target", "actor_parameters", parameters(sizes), count(parameters(sizes))],
      ["distance from its target at the start", "initially_apart", 0, "0: equal"],
      ["distance now, after this update", "apart_actor", record.apart.actor, number(record.apart.actor)],
    ]),
  ];
}

function criticFacts(record) {
  const { apart, images } = record;
  const sizes = criticSizes(record);
  const all = 2 * parameters(actorSizes(record)) + 4 * parameters(sizes) + 2 * (images?.parameters ?? 0);
  const together = images ? "parameters of all six networks and both encoders" : "parameters of all six networks";
  return [
    layers(sizes, images ? "features and action" : "state and action", "value"),
    facts([
      ["parameters of each critic", "critic_parameters", parameters(sizes), count(parameters(sizes))],
      ...(images
        ? [["parameters of the encoder", "encoder_parameters", images.parameters, count(images.parameters)]]
        : []),
      [together, "all_parameters", all, count(all)],
      [
        "mean |Q₁ − Q₂| of the batch",
        "twin_gap",
        record.batch.twin_gap,
        number(record.batch.twin_gap),
      ],
      ["distance of critic 1 and its target now", "apart_critic1", apart.critic1, number(apart.critic1)],
      ["distance of critic 2 and its target now", "apart_critic2", apart.critic2, number(apart.critic2)],
      ...(images
        ? [["distance of the encoder and its target now", "apart_encoder", apart.encoder, number(apart.encoder)]]
        : []),
    ]),
  ];
}

/** Weights and biases of a perceptron with layers of these sizes. */
export function parameters(sizes) {
  return sizes.slice(1).reduce((sum, outputs, n) => sum + (sizes[n] + 1) * outputs, 0);
}

function layers(sizes, input, output) {
  const words = (n) => (n === 0 ? input : n === sizes.length - 1 ? output : "hidden");
  const drawn = sizes.map((size, n) => element("li", {}, element("b", {}, count(size)), element("span", {}, words(n))));
  return element("ol", { class: "layers", "aria-label": `${input} to ${output}` }, ...drawn);
}

// ── 4 to 9: the target ───────────────────────────────────────────────────────────────────────────────────────────────

function sampledRows(record, row) {
  const { rows, memory, images } = record;
  const body = rows.reward.map((_, n) => [
    cell("row", n, rows.row[n], count(rows.row[n])),
    ...(images?.frames ? [glance("s", "observation", record, n), glance("s′", "next_observation", record, n)] : []),
    cell("reward", n, rows.reward[n], fixed(rows.reward[n], digits(rows.reward))),
    ending(rows, n),
  ]);
  return [
    positions(rows.row, memory.oldest_age + 1, row),
    table(
      row,
      ["index", ...(images?.frames ? ["s", "s′"] : []), rewardWords(record), "terminated d"],
      body,
      `${rows.row.length} of the ${count(record.settings.batch_size)} sampled rows`,
    ),
    ...observed("state s", "observation", record, row),
    strip("action a", "action", record, row, record.action_size),
    ...observed("next state s′", "next_observation", record, row),
    ...(images?.random_shift ? [shifting(images)] : []),
    ...preparing(record),
  ];
}

function rewardWords(record) {
  return `${scaleOf(record) === 1 ? "" : "scaled "}${isNStep(record) ? "n-step " : ""}reward r`;
}

/** What was done with rewards and states, where it is not obvious that it was. */
function preparing(record) {
  const most = record.settings.n_step;
  const notes = [];
  if (isNStep(record)) {
    const several = most > 1 ? `up to ${count(most)}` : "several";
    notes.push(
      `n-step: r is the discounted sum of ${several} rewards, s′ the state after them, and d whether the episode ` +
        "terminated within them.",
    );
  }
  if (scaleOf(record) !== 1) {
    notes.push(`Rewards are stored times reward_scale ${scaleOf(record)}: r, Q and y are all on that scale.`);
  }
  if (isNormalised(record)) {
    notes.push(
      "Normalised: the networks read each number of s and s′ minus its running mean, divided by its standard " +
        "deviation. The memory stores them as they were.",
    );
  }
  return notes.map(note);
}

function glance(words, name, record, n) {
  return element("td", { class: "glance" }, thumbnail(words, name, record, n));
}

function shifting({ random_shift: most }) {
  const pixels = most === 1 ? "1 pixel" : `${count(most)} pixels`;
  return note(`As the networks read them: shifted at random by up to ${pixels} each way, s and s′ separately.`);
}

/** The observation of a row: its frames, if there are images, and its numbers. */
function observed(words, name, record, row) {
  if (!record.images) return observedNumbers(words, name, record, row);
  const numbers = `${words}, the numbers beside the frames`;
  return [
    framesFigure(words, name, record, row),
    ...(record.rows[name][row].length ? observedNumbers(numbers, name, record, row) : []),
  ];
}

/** The numbers of a row: one strip, or one for each recorded observation of those that are joined, the oldest first. */
function observedNumbers(plain, name, record, row) {
  const words = isNormalised(record) ? `${plain}, normalised` : plain;
  const { history, observation_size: size } = record;
  const each = size / (history?.observations ?? 1);
  if (!history || !Number.isInteger(each)) return [strip(words, name, record, row, size)];
  const shown = Math.max(1, Math.floor(record.rows[name][row].length / each));
  return Array.from({ length: shown }, (_, index) => {
    const number = history.observations - shown + index + 1;
    const which = `${words}, observation ${number} of ${history.observations}`;
    return strip(which, name, record, row, each, index * each);
  });
}

function nextActions(record, row) {
  return [
    matrix("target_action", record, row, "a′ by dimension"),
    ...observed("next state s′", "next_observation", record, row),
  ];
}

function smoothing(record, row) {
  const { rows, settings } = record;
  const silent = noiseOff(record) === "target_noise";
  const clipped = (n, column) => rows.drawn_noise[n][column] !== rows.noise[n][column];
  const found = rows.drawn_noise.flatMap((drawn, n) => drawn.map((_, column) => clipped(n, column))).filter(Boolean);
  return [
    facts([
      ["standard deviation σ", "target_noise", settings.target_noise, String(settings.target_noise)],
      ["clip c", "noise_clip", settings.noise_clip, `±${settings.noise_clip}`],
    ]),
    noiseTable(record, row),
    matrix("drawn_noise", record, row, "ε before clipping", (n, column) => clipped(n, column) && "clipped"),
    note(
      found.length
        ? `Struck through: beyond ±${settings.noise_clip}, so it was clipped.`
        : silent
          ? "Every ε is 0."
          : "None of these had to be clipped.",
    ),
  ];
}

/** The chosen row, dimension by dimension: from the action of the actor target to the smoothed one. */
function noiseTable({ rows, settings }, row) {
  const line = (_, column) => {
    const drawn = rows.drawn_noise[row][column];
    const kept = rows.noise[row][column];
    const before = rows.target_action[row][column];
    const after = rows.next_action[row][column];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, String(column + 1)),
      cell("target_action", row, before, fixed(before, 2), { column }),
      cell("noise", row, kept, fixed(kept, 2), { column, mark: drawn !== kept && "limited" }),
      cell("next_action", row, after, fixed(after, 2), { column, mark: Math.abs(after) === 1 && "limited" }),
      element("td", { class: "picture" }, noisePicture(before, after, settings.noise_clip)),
    );
  };
  return framed(
    `Row ${row + 1}, dimension by dimension`,
    ["", "π′(s′)", "ε clipped", "a′", "from −1 to 1"],
    rows.target_action[row].map(line),
  );
}

/** From −1 to 1: the action before, the range of the noise, and the action after. */
function noisePicture(before, after, clip) {
  const x = (value) => 50 + 46 * Math.min(Math.max(value, -1), 1);
  return shape(
    "svg",
    { viewBox: "0 0 100 16", class: "noise-picture", "aria-hidden": "true" },
    shape("line", { class: "track", x1: 4, x2: 96, y1: 8, y2: 8 }),
    shape("line", { class: "reach", x1: x(before - clip), x2: x(before + clip), y1: 8, y2: 8 }),
    shape("line", { class: "shift", x1: x(before), x2: x(after), y1: 8, y2: 8 }),
    shape("circle", { class: "before", cx: x(before), cy: 8, r: 3 }),
    shape("circle", { class: "after", cx: x(after), cy: 8, r: 3.6 }),
  );
}

function nextValues(record, row) {
  const { rows, batch } = record;
  const places = digits([...rows.next_q1, ...rows.next_q2]);
  const body = rows.next_q1.map((q1, n) => [
    cell("next_q1", n, q1, fixed(q1, places)),
    cell("next_q2", n, rows.next_q2[n], fixed(rows.next_q2[n], places)),
    cell("next_gap", n, q1 - rows.next_q2[n], fixed(q1 - rows.next_q2[n], places), { mark: "soft" }),
  ]);
  const means = [mean("next_q1", batch.next_q1, places), mean("next_q2", batch.next_q2, places), element("td")];
  return [
    table(row, ["Q₁′", "Q₂′", "Q₁′ − Q₂′"], body, "Both targets on the same (s′, a′)", means),
    ...(record.images ? observed("next state s′", "next_observation", record, row) : []),
  ];
}

function smallerValues(record, row) {
  const { rows, batch } = record;
  const places = digits([...rows.next_q1, ...rows.next_q2]);
  const smaller = (own, other) => (own <= other ? "smaller" : "larger");
  const body = rows.next_q.map((value, n) => [
    cell("next_q1", n, rows.next_q1[n], fixed(rows.next_q1[n], places), {
      mark: smaller(rows.next_q1[n], rows.next_q2[n]),
    }),
    cell("next_q2", n, rows.next_q2[n], fixed(rows.next_q2[n], places), {
      mark: smaller(rows.next_q2[n], rows.next_q1[n]),
    }),
    cell("next_q", n, value, fixed(value, places), { mark: "result" }),
  ]);
  return [
    table(row, ["Q₁′", "Q₂′", "min"], body, "The smaller value of each row is marked"),
    bar(
      batch.q1_smaller,
      `critic target 1 gave the smaller value in ${percent(batch.q1_smaller)} of the batch`,
      "q1_smaller",
    ),
  ];
}

function targets(record, row) {
  const { rows } = record;
  const places = digits([...rows.target, ...rows.next_q]);
  const body = rows.target.map((value, n) => [
    cell("reward", n, rows.reward[n], fixed(rows.reward[n], digits(rows.reward))),
    ending(rows, n),
    cell("next_q", n, rows.next_q[n], fixed(rows.next_q[n], places), { mark: rows.terminated[n] && "unused" }),
    cell("target", n, value, fixed(value, places), { mark: "result" }),
  ]);
  const means = [element("td"), element("td"), element("td"), mean("target", record.batch.target, places)];
  return [
    arithmetic(record, row),
    table(row, ["r", "d", "min", "y"], body, "The targets, row by row", means),
    endings(record),
    ...preparing(record).slice(0, isNormalised(record) ? -1 : undefined), // of states nothing is shown here
  ];
}

/** The chosen row's sum, spelled out with its own numbers. */
function arithmetic(record, row) {
  const { rows } = record;
  const { discount, steps, power } = discountOf(record, row);
  const ended = Boolean(rows.terminated[row]);
  const term = (words, value, style = "") =>
    element("span", { class: `term ${style}` }, element("b", {}, value), element("small", {}, words));
  const sign = (words) => element("span", { class: "sign" }, words);
  const scaled = scaleOf(record) === 1 ? "" : "scaled ";
  const pieces = [
    term(steps > 1 ? `${scaled}r of ${steps} steps` : `${scaled}r`, exact(rows.reward[row])),
    sign("+"),
    term(power, String(discount), ended ? "gone" : ""),
    sign("·"),
    term("1 − d", ended ? "0" : "1", ended ? "end" : ""),
    sign("·"),
    term("min", exact(rows.next_q[row]), ended ? "gone" : ""),
    sign("="),
    term("y", exact(rows.target[row]), "result"),
  ];
  const kind = ended ? "Terminated: only the reward counts." : "Not terminated: the future counts.";
  const ahead = `n-step return: r is the discounted sum of ${steps} rewards, and s′ the state after them.`;
  const attributes = {
    class: "arithmetic",
    "data-name": "arithmetic",
    "data-row": row,
    "data-value": rows.target[row],
  };
  return element(
    "div",
    attributes,
    element("p", { class: "caption" }, `Row ${row + 1}. ${kind}${steps > 1 ? ` ${ahead}` : ""}`),
    element("p", { class: "terms" }, ...pieces),
  );
}

function endings({ batch, settings }) {
  const some = batch.terminated === 1 ? "1 row" : `${count(batch.terminated)} rows`;
  return note(`In this batch of ${count(settings.batch_size)}, ${batch.terminated ? some : "no row"} terminated.`);
}

// ── 10 to 12: the critics ────────────────────────────────────────────────────────────────────────────────────────────

function storedValues(record, row) {
  const { rows, batch } = record;
  const places = digits([...rows.q1, ...rows.q2, ...rows.target]);
  const names = ["q1", "q2", "target"];
  const body = rows.q1.map((_, n) =>
    names.map((name) =>
      cell(name, n, rows[name][n], fixed(rows[name][n], places), { mark: name === "target" && "soft" }),
    ),
  );
  const means = names.map((name) => mean(name, batch[name], places));
  return [
    table(row, ["Q₁", "Q₂", "target y"], body, "Before this update's step", means),
    ...observed("state s", "observation", record, row),
    strip("action a, as played", "action", record, row, record.action_size),
  ];
}

function losses(record, row) {
  const { rows } = record;
  const apart = (name, n) => rows[name][n] - rows.target[n];
  const places = digits(rows.target.flatMap((_, n) => [apart("q1", n), apart("q2", n)]));
  const body = rows.target.map((_, n) =>
    ["q1", "q2"].flatMap((name, critic) => [
      cell(`distance${critic + 1}`, n, apart(name, n), fixed(apart(name, n), places)),
      cell(`square${critic + 1}`, n, apart(name, n) ** 2, number(apart(name, n) ** 2), { mark: "result" }),
    ]),
  );
  return [
    table(row, ["Q₁ − y", "squared", "Q₂ − y", "squared"], body, "How far from the target, row by row"),
    facts([
      [
        `L: both means over all ${count(record.settings.batch_size)} rows, added`,
        "critic_loss",
        record.critic_loss,
        number(record.critic_loss),
      ],
    ]),
  ];
}

function criticSteps(record) {
  const { images } = record;
  const weights = parameters(criticSizes(record));
  const lines = ["critic1", "critic2"].map((name, n) => stepLine(record, name, `critic ${n + 1}`, weights));
  if (images) lines.push(stepLine(record, "encoder", "encoder", images.parameters));
  return [
    framed("One step of Adam", ["", "‖gradient‖", "moved", "a typical weight"], lines),
    facts([["learning rate", "critic_lr", record.settings.critic_lr, number(record.settings.critic_lr)]]),
    note(
      "Moved: the distance between all weights before and after. A typical weight: its root mean square share.",
    ),
  ];
}

function stepLine(record, name, words, weights) {
  const typical = record.moved[name] === null ? null : record.moved[name] / Math.sqrt(weights);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, words),
    cell("gradient", name, record.gradient[name], number(record.gradient[name])),
    cell("moved", name, record.moved[name], number(record.moved[name])),
    cell("typical", name, typical, number(typical), { mark: "soft" }),
  );
}

// ── 13 to 15: delayed ────────────────────────────────────────────────────────────────────────────────────────────────

function actorStep(record, row) {
  if (!record.delayed) return [];
  const { rows } = record;
  const places = digits([...rows.own_q1, ...rows.q1]);
  const body = rows.own_q1.map((value, n) => [
    cell("own_q1", n, value, fixed(value, places), { mark: "result" }),
    cell("q1", n, rows.q1[n], fixed(rows.q1[n], places), { mark: "soft" }),
  ]);
  return [
    matrix("own_action", record, row, "π(s) by dimension"),
    table(row, ["Q₁(s, π(s))", "Q₁(s, a) of step 10"], body, "What value critic 1 gives it"),
    facts([["actor loss: −mean Q₁ of the batch", "actor_loss", record.actor_loss, number(record.actor_loss)]]),
    framed(
      "One step of Adam",
      ["", "‖gradient‖", "moved", "a typical weight"],
      [stepLine(record, "actor", "actor", parameters(actorSizes(record)))],
    ),
    ...(record.images ? observed("state s", "observation", record, row) : []),
  ];
}

/** How far each target moved, how far it still has to go; the part of the way is τ. */
function followed(record, pairs) {
  const lines = pairs.map(([network, target, words]) => {
    const moved = record.moved[target];
    const share = moved === null ? null : moved / (moved + record.apart[network]);
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, words),
      cell("moved", target, moved, number(moved)),
      cell("apart", network, record.apart[network], number(record.apart[network])),
      cell("share", target, share, share === null ? "–" : `${fixed(share * 100, 2)} %`, { mark: "result" }),
    );
  });
  const way = record.delayed
    ? pairs.map(([network, target, words]) => wayPicture(record.moved[target], record.apart[network], words))
    : [];
  return element(
    "div",
    { class: "followed" },
    framed("A small part of the way", ["", "moved", "still apart", "part of the way"], lines),
    ...way,
    facts([["τ", "tau", record.settings.tau, String(record.settings.tau)]]),
  );
}

function wayPicture(moved, apart, words) {
  const share = moved + apart > 0 ? moved / (moved + apart) : 0;
  const end = 8 + 384 * share;
  const drawn = shape(
    "svg",
    {
      viewBox: "0 0 400 44",
      class: "way-picture",
      role: "img",
      "aria-label": `${words}: ${percent(share)} of the way`,
    },
    shape("line", { class: "track", x1: 8, x2: 392, y1: 30, y2: 30 }),
    shape("line", { class: "gone", x1: 8, x2: end, y1: 30, y2: 30 }),
    shape("circle", { class: "before", cx: 8, cy: 30, r: 5 }),
    shape("circle", { class: "after", cx: end, cy: 30, r: 5 }),
    shape("circle", { class: "goal", cx: 392, cy: 30, r: 6 }),
    shape("text", { x: 4, y: 16 }, words),
    shape("text", { x: 396, y: 16, class: "end" }, words.replace(" target", "")),
  );
  return drawn;
}

function restingNotice({ update, settings: { policy_delay: delay } }) {
  const next = Math.ceil(update / delay) * delay;
  return element(
    "div",
    { class: "notice resting", id: "resting" },
    element("p", {}, element("b", {}, `Skipped: update ${count(update)} is not a multiple of policy_delay ${delay}.`)),
    element("p", {}, `The actor and all targets stay as they are until update ${count(next)}.`),
    element("button", { type: "button", id: "show-delayed" }, "Show a delayed update"),
  );
}

// ── Pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A cell with its name and its exact value as data. */
function cell(name, row, value, words, { column = null, mark = null } = {}) {
  return element(
    "td",
    { class: mark || null, "data-name": name, "data-row": row, "data-column": column, "data-value": String(value) },
    words,
  );
}

function mean(name, value, places) {
  return element("td", { "data-name": `mean_${name}`, "data-value": String(value) }, fixed(value, places));
}

function ending(rows, n) {
  const ended = Boolean(rows.terminated[n]);
  const made = cell("terminated", n, rows.terminated[n], ended ? "1" : "0", { mark: ended && "ended" });
  if (ended) made.prepend(element("span", { class: "roomy" }, "terminated · "));
  return made;
}

/** A table with a line for each recorded row; choosing one marks it everywhere. */
function table(chosen, heads, body, caption, means = null) {
  const lines = body.map((cells, n) =>
    element("tr", { "data-choose": n, class: n === chosen ? "chosen" : null }, rowHead(n, n === chosen), ...cells),
  );
  const foot = means && element("tr", { class: "means" }, element("th", { scope: "row" }, "batch"), ...means);
  return framed(caption, ["row", ...heads], lines, foot);
}

function rowHead(n, chosen) {
  const words = `Follow row ${n + 1}`;
  const button = element(
    "button",
    { type: "button", class: "choose", "data-focus": n, "aria-pressed": String(chosen), "aria-label": words },
    String(n + 1),
  );
  return element("th", { scope: "row" }, button);
}

function framed(caption, heads, lines, foot = null) {
  return element(
    "div",
    { class: "table" },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((words) => element("th", { scope: "col" }, words)))),
      element("tbody", {}, ...lines),
      foot && element("tfoot", {}, foot),
    ),
  );
}

/** All recorded rows of a vector, as many dimensions as fit. */
function matrix(name, record, chosen, caption, mark = () => null) {
  const values = record.rows[name];
  const shown = Math.min(values[0].length, COLUMNS);
  const heads = Array.from({ length: shown }, (_, column) => String(column + 1));
  const body = values.map((vector, n) =>
    vector
      .slice(0, shown)
      .map((value, column) => cell(name, n, value, fixed(value, 2), { column, mark: mark(n, column) || null })),
  );
  const more = record.action_size > shown ? ` (the first ${shown} of ${record.action_size})` : "";
  return table(chosen, heads, body, caption + more);
}

/** One vector of the chosen row, from `first` on, as a strip of tiles, each filled as far as its number is large. */
function strip(words, name, record, row, size, first = 0) {
  const all = record.rows[name][row];
  const values = all.slice(first, first + size);
  const largest = Math.max(...all.map(Math.abs), 1e-9);
  const tiles = values.map((value, index) => tile(name, row, first + index, value, value / largest));
  const more = size > values.length ? element("li", { class: "more" }, `… ${count(size - values.length)} more`) : null;
  return element(
    "div",
    { class: "strip" },
    element("p", { class: "caption" }, `${words}, row ${row + 1}`),
    element("ul", {}, ...tiles, more),
  );
}

function tile(name, row, column, value, share) {
  const made = element(
    "li",
    { "data-name": name, "data-row": row, "data-column": column, "data-value": String(value) },
    fixed(value, 2),
  );
  made.style.setProperty("--share", Math.abs(share).toFixed(3));
  made.classList.add(share < 0 ? "negative" : "positive");
  return made;
}

/** Where the sampled rows are in the written part of the memory. */
function positions(rows, size, chosen) {
  const x = (index) => 6 + (388 * index) / Math.max(size - 1, 1);
  const ticks = rows.map((index, n) =>
    shape("line", { class: n === chosen ? "tick chosen" : "tick", x1: x(index), x2: x(index), y1: 4, y2: 24 }),
  );
  return shape(
    "svg",
    { viewBox: "0 0 400 40", class: "places-picture", role: "img", "aria-label": "Where the rows lie in the memory" },
    shape("rect", { class: "track", x: 2, y: 9, width: 396, height: 10, rx: 5 }),
    ...ticks,
    shape("text", { x: 2, y: 38 }, "row 0"),
    shape("text", { x: 398, y: 38, class: "end" }, `row ${count(size - 1)}`),
  );
}

/** Words with exact values beside them. */
function facts(lines) {
  const pairs = lines.map(([words, name, value, shown]) =>
    element(
      "div",
      {},
      element("dt", {}, words),
      element("dd", { "data-name": name, "data-value": String(value) }, shown),
    ),
  );
  return element("dl", { class: "facts" }, ...pairs);
}

function bar(share, words, name = null) {
  return element(
    "div",
    { class: "bar", "data-name": name, "data-value": name && String(share) },
    element("progress", { max: 1, value: share, "aria-label": words }),
    element("p", { class: "caption" }, words),
  );
}

function note(words) {
  return element("p", { class: "small quiet" }, words);
}

/** Decimals that suit a whole column: about four digits for its largest number. */
function digits(values) {
  const largest = Math.max(...values.filter(Number.isFinite).map(Math.abs), 0);
  if (largest >= 1000) return 1;
  if (largest >= 100) return 2;
  if (largest >= 1) return 3;
  return largest >= 0.01 ? 4 : 7;
}

/** Enough digits to do the sum by hand. */
function exact(value) {
  return fixed(value, Math.abs(value) >= 1000 ? 2 : 4);
}
