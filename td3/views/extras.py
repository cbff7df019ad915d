"""Optional libraries: installed, or one sentence with the `pip install` to type."""

import importlib.util
import os
from pathlib import Path

from td3.errors import ConfigError
from td3.views.speaking import shell_word


def needs(module: str, extra: str) -> None:
    """Refuses to start without an optional library, and says how to install it."""
    if importlib.util.find_spec(module) is None:
        checkout = Path(__file__).parents[2]
        what, flags = f"td3[{extra}]", ""
        if (checkout / "pyproject.toml").is_file():
            what, flags = f"{'.' if checkout.samefile(os.curdir) else checkout}[{extra}]", "-e "
        raise ConfigError(f"This needs {module}, which is not installed: pip install {flags}{shell_word(what)}")


def needs_page() -> None:
    """Refuses to start without what the web page needs."""
    for module in ("starlette", "uvicorn", "plotly"):
        needs(module, "watch")
