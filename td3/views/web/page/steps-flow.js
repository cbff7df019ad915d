// What each step animates: the parts that light up, and the data that moves along the links, wave after wave.

/** What kind of thing travels along a link. Everything not named here is data. */
const KINDS = {
  "noise-plus": "noise",
  "loss-critics_optimizer": "gradient",
  "critics_optimizer-critic1": "gradient",
  "critics_optimizer-critic2": "gradient",
  "critic1-actor_optimizer": "gradient",
  "actor_optimizer-actor": "gradient",
  "actor-actor_target": "copy",
  "critic1-critic1_target": "copy",
  "critic2-critic2_target": "copy",
};

export function kindOf(link) {
  return KINDS[link] ?? "data";
}

export const PHASES = [
  { name: "build", first: 1, last: 3, words: "Built once, at the start" },
  { name: "sample", first: 4, last: 4, words: "In every update" },
  { name: "target", first: 5, last: 9, words: "In every update: the target of the critics" },
  { name: "critics learn", first: 10, last: 12, words: "In every update: the critics learn" },
  { name: "delayed", first: 13, last: 15, words: "Only in delayed updates" },
];

export function phaseWords(step, record) {
  const phase = PHASES.find(({ last }) => step <= last);
  return phase.name === "delayed" && !isDelaying(record) ? "In every update: the actor and the targets" : phase.words;
}

/** Whether the actor waits for some updates of the critics. */
export function isDelaying({ settings }) {
  return settings.policy_delay !== 1;
}

const ORDINALS = { one: "st", two: "nd", few: "rd", other: "th" };
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });

/**
 * A step's explanation, adapted to this run: it is written for policy_delay 2, noise on target actions, 1-step returns,
 * rewards and states as they are stored, and no images.
 */
export function explanationOf(step, record) {
  const changes = [
    ...forDelay(record),
    ...forNoise(record),
    ...forNStep(record),
    ...forScale(record),
    ...forReading(record),
    ...(record.images ? FOR_IMAGES : []),
  ];
  const adapted = (words = "") => changes.reduce((text, [from, to]) => text.replaceAll(from, to), words);
  return {
    ...step,
    title: adapted(step.title),
    sentence: adapted(step.sentence),
    why: adapted(step.why),
    formula: adapted(step.formula),
  };
}

function forDelay({ settings: { policy_delay: delay } }) {
  if (delay === 2) return [];
  if (delay === 1) return WITHOUT_DELAY;
  return [
    ["every second update", `every ${delay}${ORDINALS[ordinals.select(delay)]} update`],
    ["twice as fast", `${delay} times as fast`],
  ];
}

const WITHOUT_DELAY = [
  ["but only on every second update", "here on every update"],
  ["every second update", "every update"],
  [
    "The critics settle a little before the actor follows them; the gradient",
    "With policy_delay 1 the actor follows the critics at once; with a larger one they would settle a little first. The " +
      "gradient",
  ],
  [
    "They too move only in delayed updates; in every update they would move twice as fast.",
    "With policy_delay 1 they move in every update; with policy_delay 2 they would move half as fast.",
  ],
];

/** The setting that switches target smoothing off, or null. */
export function noiseOff({ settings }) {
  return ["target_noise", "noise_clip"].find((name) => settings[name] === 0) ?? null;
}

function forNoise(record) {
  const off = noiseOff(record);
  if (!off) return [];
  return [
    ["Target smoothing", "Target smoothing, switched off"],
    [
      "Clipped Gaussian noise is added to every dimension of a′, and the sum is clamped to [−1, 1].",
      `No noise is added in this run, because ${off} is 0: a′ stays as it is.`,
    ],
    ["The target becomes an average", "With noise the target would be an average"],
    ["smoothed next action", "next action"],
    ["a′ ← clip(a′ + clip(ε, −c, c), −1, 1)    ε ~ N(0, σ²)", `a′ ← a′    ${off === "noise_clip" ? "c" : "σ"} = 0`],
  ];
}

/** What rewards are multiplied by before they are stored. */
export function scaleOf({ settings: { reward_scale: scale = 1 } }) {
  return scale;
}

function forScale(record) {
  if (scaleOf(record) === 1) return [];
  return [
    ["state, action, reward, next state", "state, action, reward times reward_scale, next state"],
    ["is the reward plus", "is the scaled reward plus"],
    ["discounted sum of k rewards", "discounted sum of k scaled rewards"],
  ];
}

export function isNormalised({ settings: { normalize_observations: normalised } }) {
  return normalised === true;
}

/** What is done with a stored state before a network reads it. */
function forReading(record) {
  const done = [
    ...(isNormalised(record) ? ["normalised"] : []),
    ...(record.images?.random_shift ? ["its frames shifted at random"] : []),
  ];
  if (!done.length) return [];
  return [
    [
      "the state and the action exactly as they are stored in the memory",
      `the stored state, ${done.join(" and ")}, and the action exactly as it is stored in the memory`,
    ],
  ];
}

/** Whether any row has an n-step return with n > 1. */
export function isNStep(record) {
  return record.rows.reward.some((_, row) => discountOf(record, row).power !== "γ");
}

function forNStep(record) {
  if (!isNStep(record)) return [];
  return [
    ["is the reward plus the discounted future", "is the discounted sum of k rewards plus the discounted future after them"],
    ["only the reward is left", "only the rewards are left"],
    ["r + γ · (1 − d)", "r + γᵏ · (1 − d)"],
  ];
}

const FOR_IMAGES = [
  ["every weight of both critics", "every weight of both critics and of the encoder they share"],
  ["Only the two critics move here", "Only the two critics and their encoder move here"],
  ["towards its own critic", "towards its own critic, and the encoder’s target towards the encoder"],
];

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * The discount of a row's future: γ, or γᵏ for a return of k steps.
 * @returns {{discount: number, steps: number, power: string}}
 */
export function discountOf({ rows, settings: { gamma } }, row) {
  const discount = rows.discount?.[row] ?? gamma; // an older record has 1-step returns
  const steps = Math.round(Math.log(discount) / Math.log(gamma));
  if (steps > 1 && Math.abs(gamma ** steps / discount - 1) < 1e-5) {
    return { discount, steps, power: `γ${String(steps).replace(/\d/g, (digit) => RAISED[digit])}` };
  }
  return { discount, steps: 1, power: Math.abs(discount - gamma) <= 1e-6 ? "γ" : "γᵏ" };
}

/** A journey: which link, the words on it, and the recorded number that travels there, if it is one number a row. */
const to = (link, words = "", value = null) => ({ link, words, value });

const CRITICS = ["critic1", "critic2"];
const CRITIC_TARGETS = ["critic1_target", "critic2_target"];
const NEXT_VALUES = [to("critic1_target-min", "Q₁′", "next_q1"), to("critic2_target-min", "Q₂′", "next_q2")];
const VALUES = [to("critic1-loss", "Q₁", "q1"), to("critic2-loss", "Q₂", "q2")];

const FLOWS = [
  { parts: ["environment", "memory"], waves: [[to("environment-memory", "s, a, r, s′, d")]] },
  { parts: ["actor", "actor_target"], waves: [[to("actor-actor_target", "copy")]] },
  {
    parts: [...CRITICS, ...CRITIC_TARGETS],
    waves: [[to("critic1-critic1_target", "copy"), to("critic2-critic2_target", "copy")]],
  },
  {
    parts: ["memory"],
    waves: [
      [
        to("memory-actor", "s"),
        to("memory-critic1", "s, a"),
        to("memory-actor_target", "s′"),
        to("memory-critic1_target"),
        to("memory-critic2_target", "s′"),
        to("memory-target", "r, d"),
        to("memory-critic2", "s, a"),
      ],
    ],
  },
  {
    parts: ["memory", "actor_target"],
    waves: [[to("memory-actor_target", "s′")], [to("actor_target-plus")]],
  },
  {
    parts: ["actor_target", "noise", "plus"],
    waves: [[to("actor_target-plus"), to("noise-plus")]],
  },
  {
    parts: ["memory", "plus", ...CRITIC_TARGETS],
    waves: [
      [
        to("memory-critic1_target"),
        to("memory-critic2_target", "s′"),
        to("plus-critic1_target", "a′"),
        to("plus-critic2_target"),
      ],
      NEXT_VALUES,
    ],
  },
  { parts: [...CRITIC_TARGETS, "min"], waves: [NEXT_VALUES, [to("min-target", "", "next_q")]] },
  {
    parts: ["memory", "min", "target"],
    waves: [[to("memory-target", "r, d", "reward"), to("min-target", "", "next_q")]],
  },
  {
    parts: ["memory", ...CRITICS],
    waves: [[to("memory-critic1", "s, a"), to("memory-critic2", "s, a")], VALUES],
  },
  { parts: [...CRITICS, "target", "loss"], waves: [[...VALUES, to("target-loss", "", "target")]] },
  {
    parts: ["loss", "critics_optimizer", ...CRITICS],
    waves: [
      [to("loss-critics_optimizer", "∇L")],
      [to("critics_optimizer-critic1", "step"), to("critics_optimizer-critic2", "step")],
    ],
  },
  {
    parts: ["memory", "actor", "critic1", "actor_optimizer"],
    waves: [
      [to("memory-actor", "s"), to("memory-critic1", "s")],
      [to("actor-critic1", "π(s)")],
      [to("critic1-actor_optimizer", "∇Q₁")],
      [to("actor_optimizer-actor", "step")],
    ],
  },
  { parts: ["actor", "actor_target"], waves: [[to("actor-actor_target", "τ")]] },
  {
    parts: [...CRITICS, ...CRITIC_TARGETS],
    waves: [[to("critic1-critic1_target", "τ"), to("critic2-critic2_target", "τ")]],
  },
];

/** Steps 13 to 15 are skipped in an update that is not delayed. */
export function isSkipped(step, record) {
  return step >= 13 && !record.delayed;
}

/**
 * The step's parts and its journeys, each with the chosen row's number.
 * `dropped` journeys do not arrive: the larger value in step 8, and the future of a terminated row in step 9.
 */
export function flowOf(step, record, row) {
  const { parts, waves } = FLOWS[step - 1];
  const fill = (journey) => {
    const gone = dropped(step, journey.link, record.rows, row);
    const number = journey.value ? record.rows[journey.value][row] : null;
    const future = step === 9 && journey.link === "min-target";
    return {
      ...journey,
      words: future ? `× ${gone ? "0" : discountOf(record, row).power}` : journey.words,
      kind: kindOf(journey.link),
      number,
      dropped: gone,
    };
  };
  return { parts, waves: isSkipped(step, record) ? [] : waves.map((wave) => wave.map(fill)) };
}

function dropped(step, link, rows, row) {
  if (step === 8 && link === "critic1_target-min") return rows.next_q1[row] > rows.next_q2[row];
  if (step === 8 && link === "critic2_target-min") return rows.next_q2[row] > rows.next_q1[row];
  return step === 9 && link === "min-target" && Boolean(rows.terminated[row]);
}

/** What a part shows from its step on: the number (or the vector) of the chosen row, or of the whole batch. */
const SHOWN_NUMBERS = [
  { part: "actor_target", from: 5, vector: "target_action" },
  { part: "noise", from: 6, vector: "noise" },
  { part: "plus", from: 6, vector: "next_action" },
  { part: "critic1_target", from: 7, value: "next_q1" },
  { part: "critic2_target", from: 7, value: "next_q2" },
  { part: "min", from: 8, value: "next_q" },
  { part: "target", from: 9, value: "target" },
  { part: "critic1", from: 10, value: "q1" },
  { part: "critic2", from: 10, value: "q2" },
  { part: "loss", from: 11, batch: (record) => record.critic_loss },
  { part: "actor", from: 13, vector: "own_action" },
  { part: "critic1", from: 13, until: 13, value: "own_q1" },
];

/** By part: a number, or a list of numbers, that is known at this step. */
export function numbersOf(step, record, row) {
  const numbers = {};
  for (const { part, from, until = 15, vector, value, batch } of SHOWN_NUMBERS) {
    const found = batch ? batch(record) : record.rows[vector ?? value]?.[row];
    if (step >= from && step <= until && found !== null && found !== undefined) numbers[part] = found;
  }
  return numbers;
}
