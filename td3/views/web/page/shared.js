// What all pages share: requests, live events, the header, the theme, and the format of numbers.

// ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the server could not do, in its own sentence. */
export class Problem extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

/**
 * `path?name=value…`; a list gives its name several times, null and undefined are left out.
 * @param {string} path
 * @param {Object<string, any>} parameters
 */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) if (one !== null && one !== undefined) query.append(name, one);
  }
  return query.size ? `${path}?${query}` : path;
}

/**
 * The JSON at `path`; a `Problem` with one sentence if there is none.
 * @param {string} path
 * @param {Object<string, any>} parameters
 * @param {AbortSignal} [signal]
 */
export async function get(path, parameters = {}, signal) {
  let response;
  try {
    response = await fetch(address(path, parameters), { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer: is td3 watch still running?", 0);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(answer.problem ?? `The server answered ${response.status}.`, response.status);
  return answer;
}

/** The value of `name` in this page's address, or null. */
export function parameter(name) {
  return new URLSearchParams(location.search).get(name);
}

// ── Live events ──────────────────────────────────────────────────────────────────────────────────────────────────────

const EVENTS = ["runs", "points", "findings", "updates", "film"];
const HIDDEN_LOCK = "td3-hidden"; // of the one hidden page that stays connected
const LONGEST_PAUSE = 15_000; // milliseconds between attempts
const PATIENCE = 2_000; // milliseconds a page waits for the connection before it loads anyway

/**
 * Listens to /events while the page is visible, and reconnects when the connection is lost.
 *
 * Of the hidden pages one stays connected, so that it has the last state of a run that ends meanwhile. The others
 * disconnect, because a browser opens only six connections to one server.
 * @param {string | null} id one run, or null for the runs alone
 * @param {Object<string, Function>} handlers by event, of `EVENTS`; `load`, called when the connection is open and
 *   after every reconnect, because something may have been missed. Events wait for it and for each other, so a page that
 *   fetches in a handler, and returns its promise, misses nothing that comes meanwhile. `last` fetches all there is when
 *   the server ends, and `command` returns what shows it again
 * @returns {() => void} ends it
 */
export function listen(id, handlers) {
  let source = null;
  let timer = 0;
  let failures = 0;
  let loaded = null; // and every event since then handled
  let ended = false; // the server has said that it ends
  let release = null; // lets another hidden page stay connected

  function connect() {
    clearTimeout(timer);
    source = new EventSource(address("/events", { id }));
    source.onopen = opened;
    source.onerror = lost;
    for (const name of EVENTS.filter((event) => handlers[event])) source.addEventListener(name, hear(name));
    source.addEventListener("end", end);
    if (!loaded) timer = setTimeout(load, PATIENCE);
  }

  function load() {
    clearTimeout(timer);
    loaded = Promise.resolve(handlers.load?.()).catch(reportError);
  }

  function hear(name) {
    return (event) => {
      loaded = loaded.then(() => handlers[name](JSON.parse(event.data))).catch(reportError);
    };
  }

  function opened() {
    failures = 0;
    ended = false;
    showConnection("open");
    showNotice(null);
    load();
  }

  function lost() {
    disconnect();
    if (!loaded) load(); // says what is wrong
    failures += 1;
    if (!ended) showConnection("lost");
    if (!ended && failures === 2) showNotice("The connection is lost: what is shown may be old.", handlers.command?.());
    timer = setTimeout(connect, ended ? LONGEST_PAUSE : Math.min(1000 * 2 ** (failures - 1), LONGEST_PAUSE));
  }

  /** The server waits until the page has fetched the last state and disconnects. */
  async function end() {
    ended = true;
    loaded = loaded.then(() => (handlers.last ?? handlers.load)?.()).catch(reportError);
    await loaded;
    disconnect();
    showConnection("ended");
    showNotice("This page’s server has ended: what is shown is the last state.", handlers.command?.());
    timer = setTimeout(connect, LONGEST_PAUSE); // the same run may be served here again
  }

  function disconnect() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function onVisibility() {
    release?.();
    release = null;
    if (document.visibilityState === "hidden") hide();
    else if (!source) connect();
  }

  function hide() {
    if (!source || !navigator.locks) return disconnect();
    return navigator.locks.request(HIDDEN_LOCK, { ifAvailable: true }, (lock) => {
      if (document.visibilityState !== "hidden") return undefined;
      if (!lock) return disconnect();
      return new Promise((resolve) => (release = resolve));
    });
  }

  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", onVisibility);
  onVisibility();
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    window.removeEventListener("pagehide", disconnect);
    window.removeEventListener("pageshow", onVisibility);
    disconnect();
  };
}

const CONNECTION_WORDS = { open: "connected", lost: "reconnecting…", waiting: "connecting…", ended: "server ended" };

function showConnection(state) {
  const sign = document.getElementById("connection");
  if (!sign) return;
  sign.dataset.state = state;
  sign.textContent = CONNECTION_WORDS[state];
}

/** One sentence at the top about who answers this page, and the command that shows it again; null for none. */
export function showNotice(sentence, command = null) {
  const notice = document.getElementById("line");
  notice.replaceChildren(sentence ?? "", ...(command ? [" Look again with: ", element("code", {}, command)] : []));
  notice.hidden = !sentence;
}

/**
 * Why a run that was here is not: its folder is gone, or another folder than `served` is shown at this address. Null if
 * it is here.
 */
export async function whyGone(id, served, command) {
  const answer = await get("/api/runs");
  if (answer.runs.some((run) => run.id === id)) return null;
  if (answer.served === served) return "This run is gone: its folder is no longer there.";
  const other = `Another page answers at this address now, that of “${answer.root}”.`;
  return `${other} This run is shown as it was. Look again with: ${command}`;
}

/**
 * `task`, but at most once in `milliseconds`, and never two at a time; the last call is always served.
 * @param {() => any} task
 * @param {number} milliseconds
 */
export function throttled(task, milliseconds) {
  let requested = false;
  let busy = false;
  async function serve() {
    busy = true;
    while (requested) {
      requested = false;
      const pause = new Promise((resolve) => setTimeout(resolve, milliseconds));
      await Promise.resolve().then(task).catch(reportError);
      await pause;
    }
    busy = false;
  }
  return () => {
    requested = true;
    if (!busy) serve();
  };
}

// ── Building ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * An element with attributes and children. Texts become text, never markup, so names from runs are safe here.
 * @param {string} tag
 * @param {Object<string, any>} attributes `class`, `data-…`, `aria-…` and the like; `on…` takes a function; true is "",
 *   and false, null and undefined are left out
 * @param {...(Node | string | number | null)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sets a node's text only if it differs, so that a reader's selection and a screen reader's place stay. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets an attribute only if it differs; null removes it. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Puts nodes into a parent in this order, moving as few as possible, and gives the focus back to one that had it. */
export function arrange(parent, nodes) {
  const focused = document.activeElement;
  const wanted = new Set(nodes);
  for (const node of [...parent.children]) if (!wanted.has(node)) node.remove();
  let place = parent.firstElementChild;
  for (const node of nodes) {
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Marks the document as ready: the first data is shown. The tests wait for it. */
export function ready() {
  document.documentElement.dataset.ready = "true";
}

// ── The header ───────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Fills `<header id="top" class="top">`: the name, the links, the connection and the theme.
 * @param {"runs" | "run" | "steps"} page the page this is
 * @param {string | null} id the run it is about
 */
export function showTop(page, id = null) {
  const pages = [["runs", "Runs", "/"]];
  if (id) pages.push(["run", "Run", address("/run", { id })], ["steps", "Fifteen steps", address("/steps", { id })]);
  const links = pages.map(([name, words, path]) =>
    element("a", { href: path, "data-way": name, "aria-current": name === page ? "page" : null }, words),
  );
  document.getElementById("top").replaceChildren(
    element(
      "div",
      { class: "top-inside" },
      element("a", { class: "brand", href: "/", "aria-label": "td3, all runs" }, "td3"),
      element("nav", { "aria-label": "Pages" }, ...links),
      element("span", { id: "connection", class: "connection", role: "status" }),
      themeButton(),
    ),
  );
  const notice = element("p", { id: "line", class: "notice warning", role: "status", hidden: true });
  document.querySelector("main").prepend(notice);
  showConnection("waiting");
}

// ── Theme ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const KEPT_THEME = "td3-theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");

/** What is shown now: "light" or "dark". */
export function theme() {
  return document.documentElement.dataset.theme ?? (systemDark.matches ? "dark" : "light");
}

/** Calls back after each change of the theme, by the button, by another page or by the system. */
export function onTheme(callback) {
  document.addEventListener("theme", callback);
}

function applyTheme(name) {
  if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  showTheme();
}

function showTheme() {
  const other = theme() === "dark" ? "light" : "dark";
  const button = document.getElementById("theme");
  button?.setAttribute("aria-label", `Switch to the ${other} theme`);
  button?.setAttribute("title", `Switch to the ${other} theme`);
  document.dispatchEvent(new CustomEvent("theme", { detail: theme() }));
}

function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  keep(KEPT_THEME, next);
  applyTheme(next);
}

function themeButton() {
  const other = theme() === "dark" ? "light" : "dark";
  const words = `Switch to the ${other} theme`;
  const button = element("button", { id: "theme", type: "button", class: "icon", "aria-label": words, title: words });
  button.append(drawing("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.5v11a5.5 5.5 0 0 1 0-11Z"));
  button.addEventListener("click", toggleTheme);
  return button;
}

/** A small picture of one filled path, on a square of sixteen. */
export function drawing(path) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", "0 0 16 16");
  picture.setAttribute("fill", "currentColor");
  picture.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, "path");
  shape.setAttribute("d", path);
  shape.setAttribute("fill-rule", "evenodd");
  picture.append(shape);
  return picture;
}

/** localStorage may be forbidden; then nothing is kept and nothing breaks. */
function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    return;
  }
}

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

applyTheme(kept(KEPT_THEME));
systemDark.addEventListener("change", showTheme);
window.addEventListener("storage", (event) => event.key === KEPT_THEME && applyTheme(event.newValue));

/** The colour a CSS variable has now, as `rgb(…)`: `light-dark()` is only resolved on a real element. */
export function colour(variable) {
  const key = `${theme()} ${variable}`;
  if (!resolved.has(key)) resolved.set(key, resolve(variable));
  return resolved.get(key);
}

const resolved = new Map();

function resolve(variable) {
  const probe = element("span", { hidden: true });
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// ── Formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const NOTHING = "–";
const MINUS = "−";

function missing(value) {
  return value === null || value === undefined || !Number.isFinite(value);
}

function grouped(value, digits) {
  const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return text === "-0" || /^-0\.0*$/.test(text) ? text.slice(1) : text.replace("-", MINUS);
}

/** A whole number: 20,000. */
export function count(value) {
  return missing(value) ? NOTHING : grouped(Math.round(value), 0);
}

/** A return, a value, a loss: −123.4, 1,532.0, 0.0123, 1.2e−7. */
export function number(value) {
  if (missing(value)) return NOTHING;
  const size = Math.abs(value);
  if (size >= 1e7) return value.toExponential(2).replace("-", MINUS).replace("e+", "e");
  if (size >= 10 || size === 0) return grouped(value, 1);
  if (size >= 1) return grouped(value, 2);
  if (size >= 1e-3) return grouped(value, 2 - Math.floor(Math.log10(size)));
  return value.toExponential(2).replaceAll("-", MINUS);
}

/** The same number of decimals every time, for columns: −0.120. */
export function fixed(value, digits = 3) {
  return missing(value) ? NOTHING : grouped(value, digits);
}

/** A share: 53 %, 0.4 %. */
export function percent(share) {
  if (missing(share)) return NOTHING;
  const value = share * 100;
  return `${grouped(value, value !== 0 && Math.abs(value) < 10 ? 1 : 0)} %`;
}

/** 812 /s; slow ones keep a decimal. */
export function speed(perSecond, unit = "/s") {
  return missing(perSecond) ? NOTHING : `${grouped(perSecond, perSecond < 10 ? 1 : 0)} ${unit}`;
}

/** 45 s, 3 min, 2 h 05 min, 3 days. */
export function duration(seconds) {
  if (missing(seconds)) return NOTHING;
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (minutes < 90) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.round(minutes / 1440)} days`;
}

/** How long ago a moment in unix seconds was. */
export function ago(moment) {
  if (missing(moment)) return NOTHING;
  const seconds = Date.now() / 1000 - moment;
  if (seconds < 5) return "just now";
  if (seconds < 90 * 60 || seconds >= 48 * 3600) return `${duration(seconds)} ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

/**
 * How many rows of a memory are written, and how many there will be: a run that ends earlier never fills it.
 * @param {{rows: number, capacity: number, oldest_age?: number}} memory as it was at `step`
 */
export function memoryFill({ rows, capacity, oldest_age: oldest }, step, run) {
  const written = missing(oldest) ? rows : oldest + 1;
  const end = run?.state === "finished" ? run.step : (run?.goal ?? Infinity);
  return { written, places: Math.min(capacity, written + Math.max(0, end - step)) };
}

/** A moment in unix seconds, in full, for a title. */
export function moment(seconds) {
  return missing(seconds) ? "" : new Date(seconds * 1000).toLocaleString();
}
