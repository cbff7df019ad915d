"""Every setting of a run: what it is, in which group, and what presets and tasks choose."""

from td3.config.config import GROUPS, SETTINGS, SMALLEST_IMAGE, Config, checked, checked_settings, settings_in
from td3.config.env import env_name, has_no_name, name_of, nameless, unfolded

__all__ = [
    "GROUPS",
    "SETTINGS",
    "SMALLEST_IMAGE",
    "Config",
    "checked",
    "checked_settings",
    "env_name",
    "has_no_name",
    "name_of",
    "nameless",
    "settings_in",
    "unfolded",
]
