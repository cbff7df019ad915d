"""Which files can be exported: the endings, and a path that can be written."""

from pathlib import Path
from typing import Any

from td3.errors import ConfigError
from td3.wording import brief

ENDINGS = {
    ".onnx": "an ONNX graph",
    ".c": "a C99 file without dependencies",
    ".js": "a JavaScript file without dependencies",
}


def checked_path(file: Any) -> Path:
    """Returns the path of a file to write; refuses an ending that is no format, and a place that is no folder."""
    try:
        path = Path(file).resolve()  # of a link, what it leads to is written
        ending, is_folder, parent = path.suffix.lower(), path.is_dir(), path.parent.is_dir()
    except (TypeError, ValueError, OSError, RuntimeError) as problem:
        raise ConfigError(f"file must be the path of a file; got {brief(file)} ({problem}).") from None
    if ending not in ENDINGS:
        raise ConfigError(f"file must end in {', '.join(ENDINGS)}; got {brief(str(file))}.")
    if is_folder:
        raise ConfigError(f"file must be a file; {brief(str(file))} is a folder.")
    if not parent:
        raise ConfigError(f"file must be in a folder that exists; got {brief(str(file))}.")
    return path
