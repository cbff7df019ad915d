"""`python -m td3` is the command `td3`."""

import sys

from td3.views.cli import entry

if __name__ == "__main__":
    sys.exit(entry())
