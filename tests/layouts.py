"""Layouts of observations for tests: images, and a vector of numbers behind them."""

from td3.types import Layout, Part


def image_part(name, channels, height, width):
    """One image as a part of an observation."""
    return Part(name, "image", (channels, height, width), "uint8")


def layout_of(numbers, images=(), stack=1):
    """Images, and beside them a vector of so many numbers."""
    vector = [Part("numbers", "vector", (numbers,))] if numbers else []
    return Layout([*images, *vector], stack)
