// The images of a recorded update: checks and unpacks their frames, draws them, and describes them in words.

import { count, element } from "./shared.js";

const SIDE = 32; // pixels, rows and frames of a record at most: more is not read
const MOST = { pictures: 2, frames: 4, rows: 64 };
const PIECE = 1024; // bytes unpacked at a time: few can become a thousand times as many
const ROOM = 320; // pixels of the screen for all frames of an image beside each other
const LARGEST = 96; // pixels of the screen for one of them
const THUMBNAIL = 32;
const MOMENTS = { observation: 0, next_observation: 1 }; // their order in the record

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * The images of a record: their shapes, what the encoder makes of them, and `frames`, null where they cannot be read.
 * Null for a record of numbers alone, and for one whose images are not as td3 writes them.
 */
export async function imagesOf({ images, rows }) {
  if (!images || !isKnown(images) || !(rows?.reward?.length <= MOST.rows)) return null;
  const sizes = images.pictures.map(({ shown }) => product(shown));
  const size = 2 * rows.reward.length * sizes.reduce((sum, one) => sum + one, 0);
  const frames = await unpacked(images.frames, size).catch(() => null);
  return { ...images, sizes, frames };
}

const isCount = (value, least = 1) => Number.isSafeInteger(value) && value >= least;
const product = (sizes) => sizes.reduce((all, one) => all * one, 1);

function isKnown({ pictures, others, stack, random_shift: shift, features, parameters, transition_bytes: bytes }) {
  return (
    Array.isArray(pictures) &&
    pictures.length >= 1 &&
    pictures.length <= MOST.pictures &&
    pictures.every(isPicture) &&
    [stack, features, parameters, bytes].every((one) => isCount(one)) &&
    [others, shift].every((one) => isCount(one, 0))
  );
}

function isPicture(picture) {
  const { name, channels, height, width, shown } = picture ?? {};
  if (typeof name !== "string" || ![channels, height, width].every((one) => isCount(one))) return false;
  if (!Array.isArray(shown) || shown.length !== 4 || !shown.every((one) => isCount(one))) return false;
  const [frames, high, wide, colours] = shown;
  return frames <= MOST.frames && Math.max(high, wide) <= SIDE && [1, 3].includes(colours);
}

/** These bytes, if they are as many as they should be. */
async function unpacked(text, size) {
  if (text.length > 2 * size + PIECE) throw new Error("longer than what it could hold");
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const reader = inPieces(packed).pipeThrough(new DecompressionStream("deflate")).getReader();
  const whole = new Uint8Array(size);
  let place = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    whole.set(next.value, place); // refuses what is more than there should be, and nothing is unpacked any further
    place += next.value.length;
  }
  if (place < size) throw new Error("less than there should be");
  return whole;
}

function inPieces(bytes) {
  let place = 0;
  return new ReadableStream({
    pull(controller) {
      if (place >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(place, place + PIECE));
      place += PIECE;
      return undefined;
    },
  });
}

/** The bytes of one frame: rows in order, s before s′ in each, then image by image. */
function frameOf({ pictures, sizes, frames }, moment, row, picture, frame) {
  const all = sizes.reduce((sum, one) => sum + one, 0);
  const before = sizes.slice(0, picture).reduce((sum, one) => sum + one, 0);
  const each = sizes[picture] / pictures[picture].shown[0];
  const begin = (2 * row + MOMENTS[moment]) * all + before + frame * each;
  return frames.subarray(begin, begin + each);
}

// ── Drawing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The frames of s or s′ in one row, the oldest first, each image in a line of its own. */
export function framesFigure(words, moment, { images }, row) {
  const lines = images.pictures.map((picture, n) => frameLine(words, moment, images, row, picture, n));
  const hidden = images.others ? [caption(`… and ${plural(images.others, "image")} more`)] : [];
  const unread = images.frames ? [] : [caption("The frames of this update cannot be read.")];
  const attributes = { class: "frames", "data-name": `${moment}_frames`, "data-row": row };
  return element("figure", attributes, ...lines, ...hidden, ...unread);
}

function frameLine(words, moment, images, row, picture, n) {
  const [frames, height, width] = picture.shown;
  const whose = images.pictures.length > 1 ? `${words}, ${picture.name}` : words;
  const scale = Math.max(1, Math.floor(Math.min(LARGEST, ROOM / frames) / Math.max(height, width)));
  const drawn = Array.from({ length: images.frames ? frames : 0 }, (_, frame) => {
    const alternative = `${whose}, row ${row + 1}, ${place(picture, images.stack, frame)}`;
    return element("li", {}, drawing(moment, images, row, n, frame, scale, alternative));
  });
  return element(
    "div",
    {},
    caption(`${whose}, row ${row + 1}: ${sight(picture, images.stack)}${manner(picture, images.stack)}`),
    element("ul", {}, ...drawn),
  );
}

/** The newest frame of a row's first image, small; null where the frames cannot be read. */
export function thumbnail(words, moment, { images }, row) {
  if (!images?.frames) return null;
  const [frames, height, width] = images.pictures[0].shown;
  const scale = Math.max(1, Math.round(THUMBNAIL / Math.max(height, width)));
  return drawing(moment, images, row, 0, frames - 1, scale, `${words}, row ${row + 1}, the newest frame`);
}

function drawing(moment, images, row, picture, frame, scale, words) {
  const [, height, width, colours] = images.pictures[picture].shown;
  const bytes = frameOf(images, moment, row, picture, frame);
  const pixels = new ImageData(width, height);
  for (let n = 0; n < width * height; n += 1) {
    for (let colour = 0; colour < 3; colour += 1) pixels.data[4 * n + colour] = bytes[colours * n + (colour % colours)];
    pixels.data[4 * n + 3] = 255;
  }
  const attributes = { width, height, role: "img", "aria-label": words, title: words };
  const made = element("canvas", { ...attributes, "data-picture": picture, "data-frame": frame });
  made.style.width = `${scale * width}px`; // whole multiples: every pixel a square of the same size
  made.getContext("2d").putImageData(pixels, 0, 0);
  return made;
}

const caption = (words) => element("p", { class: "caption" }, words);

// ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const plural = (many, words) => `${count(many)} ${words}${many === 1 ? "" : "s"}`;
const isPlain = ({ channels }) => channels === 1 || channels === 3;

/** 3 frames of 32×32 grey. */
function sight(picture, stack) {
  const { channels, height, width } = picture;
  const colours = channels === 1 ? "grey" : channels === 3 ? "colour" : `in ${channels} channels`;
  const one = `${height}×${width} ${colours}`;
  return stack > 1 ? `${count(stack)} frames of ${one}` : `one image of ${one}`;
}

/** In which order they are drawn, and what is left out of them here. */
function manner(picture, stack) {
  const [frames, height, width] = picture.shown;
  const [all, things, order] = isPlain(picture)
    ? [stack, "frames", "the oldest first"]
    : [stack * picture.channels, "channels", "one by one"];
  const said = [frames < all ? `the last ${frames} ${things}` : "", frames > 1 ? order : ""];
  if (height < picture.height || width < picture.width) said.push(`drawn as ${height}×${width}`);
  return said.filter(Boolean).map((words) => `, ${words}`).join("");
}

/** Which of all frames, or channels, one is. */
function place(picture, stack, frame) {
  const { channels, shown: [frames] } = picture;
  if (isPlain(picture)) return stack > 1 ? `frame ${stack - frames + frame + 1} of ${stack}` : "the image";
  const number = stack * channels - frames + frame;
  const which = `channel ${(number % channels) + 1} of ${channels}`;
  return stack > 1 ? `frame ${Math.floor(number / channels) + 1} of ${stack}, ${which}` : which;
}

/** All that is observed at once: 3 frames of 32×32 grey and 5 numbers × 4 observations. */
export function sightOf({ images, history, observation_size: numbers }) {
  const parts = images ? images.pictures.map((picture) => sight(picture, images.stack)) : [];
  if (images?.others) parts.push(plural(images.others, "image") + " more");
  const times = history?.observations ?? 1;
  if (numbers) parts.push(plural(numbers / times, "number") + (times > 1 ? ` × ${times} observations` : ""));
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
}
