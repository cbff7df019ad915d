"""Draws what stands beside the picture of a video: return and critics as curves, actions as bars."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from td3.video.episodes import Moment

PAPER, INK, FAINT, LINE = (250, 250, 249), (28, 32, 38), (112, 118, 126), (216, 219, 222)
BLUE, ORANGE, GREEN = (0, 101, 163), (213, 94, 0), (0, 129, 92)  # different for colour-blind people too
MOST_BARS = 12  # actions that have a bar; the others are counted
NEVER_FLAT = 1e-9


class Panel:
    """The right side of a video's frames: it remembers the curves of the episode that is shown."""

    def __init__(self, height: int, title: str, subtitle: str) -> None:
        self.height, self.width = height, max(200, 2 * (int(0.6 * height) // 2))
        self.unit = max(11, height // 30)  # pixels of a line of text
        self.title, self.subtitle = title, subtitle
        self.font = ImageFont.load_default(self.unit)
        self.bold = ImageFont.load_default(int(1.25 * self.unit))
        self._episode = -1
        self._earned: list[float] = []
        self._values: list[tuple[float, float]] = []

    def beside(self, moment: Moment) -> Image.Image:
        """Returns the frame of a moment with the panel on its right."""
        if moment.episode != self._episode:
            self._episode, self._earned, self._values = moment.episode, [], []
        self._earned.append(moment.earned)
        if moment.values is not None:
            self._values.append(moment.values)
        picture = scaled(moment.frame, self.height)
        whole = Image.new("RGB", (picture.width + self.width, self.height), PAPER)
        whole.paste(picture, (0, 0))
        self._draw(ImageDraw.Draw(whole), picture.width, moment)
        return whole

    def _draw(self, draw: ImageDraw.ImageDraw, left: int, moment: Moment) -> None:
        gap, unit = self.unit, self.unit
        left, right, y = left + gap, left + self.width - gap, gap
        draw.text((left, y), self.fitted(draw, self.title, right - left, self.bold), INK, self.bold)
        y += int(1.6 * unit)
        draw.text((left, y), self.fitted(draw, self.subtitle, right - left), FAINT, self.font)
        y += int(1.4 * unit)
        draw.text((left, y), f"episode {moment.episode + 1}, step {moment.step:,}", FAINT, self.font)
        y += int(2.0 * unit)
        room = self.height - y - gap
        has_values = bool(self._values)
        rows = min(MOST_BARS, len(moment.action))
        bars = min(int(0.42 * room), int((rows + 2.6) * 1.25 * unit))
        each = (room - bars) // (2 if has_values else 1)
        self._curves(draw, (left, y, right, y + each - gap), "return", [self._earned], [BLUE])
        if has_values:
            curves = [[pair[critic] for pair in self._values] for critic in (0, 1)]
            self._curves(draw, (left, y + each, right, y + 2 * each - gap), "Q1, Q2", curves, [ORANGE, GREEN])
        self._bars(draw, (left, self.height - gap - bars, right, self.height - gap), moment)

    def _curves(
        self,
        draw: ImageDraw.ImageDraw,
        box: tuple[int, int, int, int],
        name: str,
        curves: Sequence[Sequence[float]],
        colours: Sequence[tuple[int, int, int]],
    ) -> None:
        """Draws curves of the episode so far, all on one scale, with their newest numbers."""
        left, top, right, bottom = box
        draw.text((left, top), name, FAINT, self.font)
        x = right
        for curve, colour in reversed([*zip(curves, colours, strict=True)]):
            text = shown(curve[-1])
            x -= int(draw.textlength(text, self.font))
            draw.text((x, top), text, colour, self.font)
            x -= self.unit
        top += int(1.5 * self.unit)
        finite = [value for curve in curves for value in curve if np.isfinite(value)] or [0.0]
        low, high = min(0.0, *finite), max(0.0, *finite)
        high = high if high - low > NEVER_FLAT else low + 1.0
        zero = bottom - (0.0 - low) / (high - low) * (bottom - top)
        draw.line([(left, zero), (right, zero)], LINE, 1)
        for curve, colour in zip(curves, colours, strict=True):
            steps = max(1, len(curve) - 1)
            points = [
                (left + number / steps * (right - left), bottom - (value - low) / (high - low) * (bottom - top))
                for number, value in enumerate(curve)
                if np.isfinite(value)
            ]
            if len(points) > 1:
                draw.line(points, colour, max(2, self.unit // 8))

    def _bars(self, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], moment: Moment) -> None:
        """Draws each action as a bar from the middle of its range."""
        left, top, right, bottom = box
        actions = moment.action[:MOST_BARS]
        more = f", {len(actions)} of {len(moment.action)}" if len(moment.action) > MOST_BARS else ""
        draw.text((left, top), f"action{'s' if len(moment.action) > 1 else ''}{more}", FAINT, self.font)
        draw.text((right - int(draw.textlength("low … high", self.font)), top), "low … high", FAINT, self.font)
        top += int(1.6 * self.unit)
        middle, half = (left + right) / 2, (right - left) / 2
        height = (bottom - top) / len(actions)
        thick = max(3.0, min(0.6 * height, 1.2 * self.unit))
        for number, action in enumerate(np.nan_to_num(actions)):
            y = top + (number + 0.5) * height
            draw.rectangle((left, y - thick / 2, right, y + thick / 2), LINE)
            end = middle + half * float(np.clip(action, -1, 1))
            if not moment.last:
                draw.rectangle((min(middle, end), y - thick / 2, max(middle, end), y + thick / 2), BLUE)
            draw.line([(middle, y - thick), (middle, y + thick)], FAINT, 1)

    def fitted(self, draw: ImageDraw.ImageDraw, text: str, width: int, font: Any = None) -> str:
        """Returns a text, shortened if it is wider than the panel."""
        font = font or self.font
        if draw.textlength(text, font) <= width:
            return text
        while text and draw.textlength(f"{text}…", font) > width:
            text = text[:-1]
        return f"{text}…"


def scaled(frame: NDArray[np.uint8], height: int) -> Image.Image:
    """Returns a frame as a picture of this height and an even width; a small one with its pixels as squares."""
    picture = Image.fromarray(frame)
    width = max(2, 2 * round(picture.width * height / picture.height / 2))
    if picture.size == (width, height):
        return picture
    enlarged = Image.Resampling.NEAREST if picture.height < height / 2 else Image.Resampling.BICUBIC
    return picture.resize((width, height), enlarged)


def shown(value: float) -> str:
    """Writes a number in few characters."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
