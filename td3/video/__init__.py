"""A video of an agent: episodes without noise, and beside the picture what the agent earns, expects and does."""

from td3.video.episodes import Moment, play
from td3.video.files import ENDINGS, Video
from td3.video.panel import Panel

__all__ = ["ENDINGS", "Moment", "Panel", "Video", "play"]
