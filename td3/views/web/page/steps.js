// The page of the fifteen steps: which update, step and row is shown; the player; and the address.

import { Animation } from "./animation.js";
import { Diagram } from "./diagram.js";
import {
  address, throttled, count, drawing, element, get, listen, memoryFill, parameter, ready, setText, showNotice, showTop,
  whyGone,
} from "./shared.js";
import { flowOf, PHASES, phaseWords, isDelaying, isSkipped, numbersOf, explanationOf } from "./steps-flow.js";
import { imagesOf } from "./steps-images.js";
import { TALL, WIDE } from "./steps-layout.js";
import { dataOf } from "./steps-panel.js";

const LAST = 15;
const FIRST_OF_UPDATE = 4; // 1 to 3 happen once, so the next update begins here
const PICTURES = {
  play: "M4 2.5v11l9.5-5.5Z",
  pause: "M3.5 2.5h3v11h-3Zm6 0h3v11h-3Z",
  previous: "M10.5 2.5v11L3 8Z",
  next: "M5.5 2.5v11L13 8Z",
};

const id = parameter("id");
const narrow = matchMedia("(max-width: 760px)");
const at = (name) => document.getElementById(name);

const state = {
  steps: [], // the fifteen explanations
  run: null, // its row, once it has begun
  config: {}, // its settings; an older record does not have all that are needed
  served: null, // the folder whose server answers
  command: null, // what shows this run again
  recorded: [], // {update, step, delayed} of every recorded update
  record: null, // the one that is shown
  newer: false, // a newer group is shown after step 15
  kept: new Map(), // by update: those that can be shown when the server has ended
  step: bounded(parameter("step"), 1, LAST, 1),
  row: bounded(parameter("row"), 1, 64, 1) - 1,
  following: !Number.isInteger(Number(parameter("update") ?? "newest")),
  playing: false,
  seconds: 0, // since the step began
};
let diagram;
let animation;

function bounded(text, lowest, highest, otherwise) {
  const value = Number.parseInt(text, 10);
  return Number.isNaN(value) ? otherwise : Math.min(Math.max(value, lowest), highest);
}

// ── Loading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function start() {
  showTop("steps", id);
  prepareControls();
  if (!id) return showProblem(new Error("No run is named in the address."));
  return listen(id, {
    load,
    last: loadLast,
    command: () => state.command,
    runs: onRuns,
    updates: throttled(onUpdates, 1500),
  });
}

/** At the start and after every reconnect. The page may have been opened before its run has begun. */
async function load() {
  try {
    if (!state.steps.length) state.steps = (await get("/api/explanation")).steps;
    const { run, config, served, watch } = await get("/api/run", { id });
    const isSame = state.run?.begun === run.begun;
    if (state.run && !isSame) {
      showNotice("Another run has begun in this folder: it is shown now.");
      state.following = true;
    }
    Object.assign(state, { run, config: config ?? {}, served, command: watch });
    if (isSame) return await onUpdates();
    setText(at("run-name"), run.name);
    document.title = `The fifteen steps · ${run.name} · td3`;
    return await refreshFirst();
  } catch (problem) {
    return problem.status === 404 && !state.run ? showWaiting("absent") : showProblem(problem);
  }
}

/** Fetches, before the server ends, the group that plays on afterwards. */
async function loadLast() {
  await load();
  const { recorded } = state;
  const group = recorded.slice(groupBegin(recorded.length - 1)).map(({ update }) => update);
  for (const update of group) state.kept.set(update, await fetched(update));
}

/** The run has begun, or another one has in its place. */
function onRuns({ runs = [] }) {
  const own = runs.find((run) => run.id === id);
  if (own && state.run?.begun !== own.begun) return load();
  state.run = own ?? state.run;
  return undefined;
}

/** The update in the address, or the newest if that one is not there any more. */
async function refreshFirst() {
  if (state.following) return refresh("newest");
  try {
    return await refresh(parameter("update"));
  } catch (problem) {
    state.following = true;
    await refresh("newest");
    return showProblem(problem);
  }
}

/** Fetches the list and one update, and shows them; `again` sets the step in motion once more. */
async function refresh(update, again = true) {
  state.recorded = (await get("/api/updates", { id })).updates;
  if (state.recorded.length === 0) return showWaiting("waiting");
  return show(await fetched(update), again);
}

/** One recorded update, its images unpacked. */
async function fetched(update) {
  if (state.kept.has(update)) return state.kept.get(update);
  const record = await get("/api/update", { id, update });
  const settings = { ...known(state.config), ...record.settings };
  const fill = memoryFill(record.memory, record.step, state.run);
  return { ...record, settings, fill, images: await imagesOf(record) };
}

/** The settings that a run keeps to its end, if they are what they should be. */
function known({ reward_scale: scale, normalize_observations: normalised }) {
  return { reward_scale: Number.isFinite(scale) ? scale : 1, normalize_observations: normalised === true };
}

/** Something was recorded. While playing nothing changes; the newest group follows after step 15. */
async function onUpdates() {
  try {
    if (state.following && !state.playing) return await refresh("newest", !state.record);
    state.recorded = (await get("/api/updates", { id })).updates;
    if (!state.record) return await refresh("newest");
    at("problem").hidden = true;
    state.newer = state.following && state.recorded[groupBegin(state.recorded.length - 1)]?.update > state.record.update;
    fillUpdates();
    showUpdateWords();
  } catch (problem) {
    showProblem(problem);
  }
  return undefined;
}

async function choose(update) {
  try {
    show(await fetched(update));
  } catch (problem) {
    showProblem(problem);
  }
}

async function showProblem(problem) {
  const isGone = problem.status === 404 && state.run;
  const reason = isGone ? await whyGone(id, state.served, state.command).catch(() => null) : null;
  setText(at("problem"), reason ?? problem.message);
  at("problem").hidden = false;
  ready();
}

/** "absent": for the run to begin; "waiting": for its first recorded update. */
function showWaiting(reason) {
  for (const name of ["absent", "waiting", "problem", "stage"]) at(name).hidden = name !== reason;
  ready();
}

// ── Showing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function show(record, again = true) {
  state.record = record;
  state.newer = false;
  state.row = Math.min(state.row, record.rows.reward.length - 1);
  for (const name of ["absent", "waiting", "problem"]) at(name).hidden = true;
  for (const name of ["stage", "choice"]) at(name).hidden = false;
  if (!diagram) drawDiagram();
  fillUpdates();
  fillRows();
  showUpdateWords();
  showStep(again);
  ready();
}

function drawDiagram() {
  diagram = new Diagram(at("diagram"), narrow.matches ? TALL : WIDE);
  animation = new Animation(diagram);
}

/** Everything that depends on the step or the row. */
function showStep(again = true) {
  const { record, step, row } = state;
  const explained = explanationOf(state.steps[step - 1], record);
  const flow = flowOf(step, record, row);
  diagram.show(flow, numbersOf(step, record, row), record, `Step ${step}: ${explained.title}. ${explained.sentence}`, again);
  animation.prepare(flow, record.rows.reward.length, row);
  if (again) state.seconds = 0;
  showPanel(explained);
  showTimeline();
  showRow();
  keepAddress();
  wake();
}

function showPanel(explained) {
  setText(at("step-number"), String(explained.number));
  setText(at("step-phase"), phaseWords(explained.number, state.record));
  setText(at("step-title"), explained.title);
  setText(at("step-sentence"), explained.sentence);
  showFormula(explained.formula);
  setText(at("step-why"), explained.why ?? "");
  const [path] = explained.code.split(":");
  setText(at("code-place"), `${path}, step ${explained.number}`); // no line number: it moves, and pictures keep it
  at("code-place").title = explained.code;
  setText(at("code-source"), explained.source ?? "");
  setText(at("docs-place"), explained.docs.split("#")[0]);
  at("code-place").href = `/text?of=code#step-${explained.number}`;
  at("docs-place").href = `/text?of=docs#step-${explained.number}`;
  at("docs-place").title = explained.docs;
  setText(at("docs-step"), `under ${explained.number} · ${state.steps[explained.number - 1].title}`);
  at("panel").classList.toggle("resting", isSkipped(explained.number, state.record));
  const focused = document.activeElement?.dataset?.focus;
  at("step-data").replaceChildren(...dataOf(explained.number, state.record, state.row));
  if (focused !== undefined) at("step-data").querySelector(`[data-focus="${focused}"]`)?.focus();
}

/** Statements, four spaces apart, break between and never within. */
function showFormula(formula) {
  const statements = formula.split("    ").map((words) => element("span", {}, words));
  at("step-formula").replaceChildren(...statements.flatMap((one, n) => (n ? ["    ", one] : [one])));
}

function showTimeline() {
  for (const button of at("timeline").querySelectorAll("button")) {
    const number = Number(button.dataset.step);
    if (number === state.step) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    button.classList.toggle("past", number < state.step);
    button.classList.toggle("resting", isSkipped(number, state.record));
  }
  setText(at("timeline").lastElementChild.firstElementChild, isDelaying(state.record) ? PHASES.at(-1).name : "actor");
  at("previous").disabled = state.step === 1;
  at("next").disabled = state.step === LAST;
}

function showRow() {
  for (const button of at("rows").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.chooseRow) === state.row));
  }
}

function showUpdateWords() {
  const { update, step, delayed, engine } = state.record;
  const whole = isDelaying(state.record) ? "delayed: all fifteen steps" : "all fifteen steps";
  const kind = delayed ? whole : "not delayed: steps 13 to 15 are skipped";
  const newer = state.newer ? " · a newer one follows after step 15" : "";
  setText(at("update-words"), `Update ${count(update)} at step ${count(step)} · ${kind}${newer}`);
  at("update-words").title = `Engine: ${engine}`;
}

function fillRows() {
  const rows = state.record.rows.terminated.map((ended, n) =>
    element(
      "button",
      {
        type: "button",
        class: ended ? "ended" : null,
        "data-choose-row": n,
        "aria-label": `Row ${n + 1}${ended ? ", terminated" : ""}`,
        title: ended ? "The episode terminated with this row" : null,
      },
      String(n + 1),
    ),
  );
  at("rows").replaceChildren(
    element("span", { class: "small quiet" }, element("span", { class: "roomy" }, "sampled "), "row"),
    ...rows,
  );
}

function fillUpdates() {
  const select = at("update-select");
  const options = [...state.recorded]
    .reverse()
    .map(({ update, delayed }) => {
      const kind = delayed && isDelaying(state.record) ? " · delayed" : "";
      return element("option", { value: update }, `update ${count(update)}${kind}`);
    });
  select.replaceChildren(...options);
  select.value = String(state.record.update);
  at("follow").checked = state.following;
}

/** The address names what is shown, so that it can be bookmarked and shared. */
function keepAddress() {
  const update = state.following ? "newest" : state.record.update;
  history.replaceState(null, "", address("/steps", { id, update, step: state.step, row: state.row + 1 }));
}

// ── Playing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function go(step) {
  if (!state.record || step < 1 || step > LAST) return;
  state.step = step;
  showStep();
}

function chooseRow(row) {
  state.row = row;
  showStep();
}

function play(playing) {
  if (!state.record) return;
  const ended = state.step === LAST;
  state.playing = playing;
  showPlay();
  if (playing && ended) go(FIRST_OF_UPDATE);
  if (!playing && state.newer) refresh("newest").catch(showProblem);
  wake();
}

function showPlay() {
  const words = state.playing ? "Pause" : "Play";
  at("play").replaceChildren(drawing(state.playing ? PICTURES.pause : PICTURES.play), element("span", {}, words));
  at("play").setAttribute("aria-label", words);
  at("play").title = `${words} (space)`;
}

/** The step has been shown long enough. */
function proceed() {
  if (state.step < LAST) return go(state.step + 1);
  if (!state.following) return play(false);
  state.step = FIRST_OF_UPDATE;
  const next = nextUpdate();
  return next === state.record.update ? showStep() : choose(next);
}

/** The update that plays after this one: the next of its group, or the first of the newest group. */
function nextUpdate() {
  const { recorded, record } = state;
  const next = recorded.find(({ update }) => update === record.update + 1);
  return next && !record.delayed ? next.update : recorded[groupBegin(recorded.length - 1)].update;
}

/** Where the group of a recorded update begins: they follow one another up to the one that moves the actor. */
function groupBegin(place) {
  const { recorded } = state;
  let begin = place;
  const isOneMore = (one) => one && !one.delayed && one.update === recorded[begin].update - 1;
  while (isOneMore(recorded[begin - 1])) begin -= 1;
  return begin;
}

let frame = 0;
let before = 0;

function wake() {
  if (frame) return;
  before = performance.now();
  frame = requestAnimationFrame(tick);
}

/** While playing, a step repeats its animation and then the next begins; paused, it runs once. */
function tick(now) {
  frame = 0;
  const passed = Math.min((now - before) / 1000, 0.25);
  before = now;
  state.seconds += passed * Number(at("speed").value);
  showProgress();
  if (state.playing && state.seconds >= animation.duration) {
    state.seconds = 0;
    proceed();
  }
  if (!state.playing && state.seconds >= animation.passage) return animation.rest();
  animation.draw(state.seconds);
  return wakeAgain();
}

function wakeAgain() {
  frame ||= requestAnimationFrame(tick);
}

function showProgress() {
  const share = state.playing ? Math.min(state.seconds / animation.duration, 1) : 1;
  at("timeline").style.setProperty("--progress", share.toFixed(3));
}

// ── Controls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function prepareControls() {
  at("previous").append(drawing(PICTURES.previous));
  at("next").append(drawing(PICTURES.next));
  showPlay();
  at("timeline").append(...PHASES.map(phaseButtons));
  at("play").addEventListener("click", () => play(!state.playing));
  at("previous").addEventListener("click", () => go(state.step - 1));
  at("next").addEventListener("click", () => go(state.step + 1));
  at("timeline").addEventListener("click", (event) => go(Number(event.target.closest("[data-step]")?.dataset.step)));
  at("rows").addEventListener("click", onRowButton);
  at("step-data").addEventListener("click", onDataClick);
  at("diagram").addEventListener("click", () => state.record && showStep());
  at("update-select").addEventListener("change", onUpdateChosen);
  at("follow").addEventListener("change", onFollow);
  document.addEventListener("keydown", onKey);
  narrow.addEventListener("change", onWidth);
}

function phaseButtons({ name, first, last }) {
  const numbers = Array.from({ length: last - first + 1 }, (_, n) => first + n);
  const buttons = numbers.map((number) =>
    element("button", { type: "button", "data-step": number, "aria-label": `Step ${number}` }, String(number)),
  );
  const group = element("li", {}, element("span", { class: "small" }, name), element("div", {}, ...buttons));
  group.style.setProperty("--steps", numbers.length);
  return group;
}

function onRowButton(event) {
  const button = event.target.closest("[data-choose-row]");
  if (button) chooseRow(Number(button.dataset.chooseRow));
}

function onDataClick(event) {
  if (event.target.closest("#show-delayed")) return chooseDelayed();
  const line = event.target.closest("[data-choose]");
  return line && chooseRow(Number(line.dataset.choose));
}

/** The recorded delayed update nearest to the one on show. */
function chooseDelayed() {
  const distance = ({ update }) => Math.abs(update - state.record.update);
  const [nearest] = state.recorded.filter((one) => one.delayed).sort((a, b) => distance(a) - distance(b));
  if (!nearest) return setText(at("show-delayed"), "None is recorded yet");
  state.following = false;
  return choose(nearest.update);
}

function onUpdateChosen() {
  state.following = false;
  choose(at("update-select").value);
}

function onFollow() {
  state.following = at("follow").checked;
  if (state.following) refresh("newest").catch(showProblem);
  else keepAddress();
}

function onWidth() {
  if (!state.record) return;
  drawDiagram();
  showStep();
}

const KEYS = {
  ArrowRight: () => go(state.step + 1),
  ArrowLeft: () => go(state.step - 1),
  Home: () => go(1),
  End: () => go(LAST),
  " ": () => play(!state.playing),
  r: () => chooseRow((state.row + 1) % state.record.rows.reward.length),
};

function onKey(event) {
  if (!state.record || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, pre")) return;
  if (event.key === " " && event.target.closest("button, summary, a")) return;
  const act = /^[1-9]$/.test(event.key) ? () => go(Number(event.key)) : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

start();
