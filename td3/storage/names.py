"""The names that td3 gives to what is in a run folder; anything else in it is the user's own."""

import re

CHECKPOINT_NAME = re.compile(r"(\d{9,})-([0-9a-f]{16})")
TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{32}")
SEGMENT_NAME = re.compile(r"\d{9,}-\d{9,}-[0-9a-f]{8}\.safetensors")
TEMPORARY_SEGMENT = re.compile(rf"\.tmp-{SEGMENT_NAME.pattern}")

GROUPS = ("networks", "optimizers", "playing", "sampler")  # named arrays of a checkpoint, a file each
MANIFEST = "manifest.json"
FILES = ("state.json", *(f"{group}.safetensors" for group in GROUPS), MANIFEST)  # all that a checkpoint holds
FIRST = ("config.json", "versions.json")  # written when the run is begun, and never again
GROWING = ("metrics.jsonl", "updates.jsonl")
FILM = "film.webp"
AWAITED = "awaited"  # there as long as a run trains elsewhere and its first checkpoint is not home


def is_place(text: str) -> bool:
    """Whether td3 writes a file at this place of a run folder; no such place leads out of it."""
    folder, _, name = text.rpartition("/")
    if not folder:
        return name in (*FIRST, *GROWING, FILM)
    top, _, checkpoint = folder.partition("/")
    if top == "memory" and not checkpoint:
        return SEGMENT_NAME.fullmatch(name) is not None
    return top == "checkpoints" and CHECKPOINT_NAME.fullmatch(checkpoint) is not None and name in FILES
