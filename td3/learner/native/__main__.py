"""`python -m td3.learner.native`: whether the C++ was tested with the Python functions as they are now.

With `--renew` they are written to `source/tested.h` as the ones it was tested with. Do that only when the C++ does what
they say and the tests pass; then build the library again.
"""

import argparse
from pathlib import Path

from td3.learner.native.fingerprint import FUNCTIONS, TD7_FUNCTIONS, fingerprint

HEADER = Path(__file__).parent / "source" / "tested.h"
TEXT = """/* The Python functions whose work the library does, each with a fingerprint of what it says.
 *
 * It is what the C++ was tested with, not what it was built beside: `python -m td3.learner.native --renew` writes it,
 * once the C++ does what these functions say and the tests pass. See fingerprint.py. */
#ifndef TD3_NATIVE_TESTED_H
#define TD3_NATIVE_TESTED_H

#define TD3_TESTED \\
{lines}

#endif
"""


def header() -> str:
    """What the header would say of the functions as they are now."""
    lines = [f'    "{name} {fingerprint(name)}\\n"' for name in (*FUNCTIONS, *TD7_FUNCTIONS)]
    return TEXT.format(lines=" \\\n".join(lines))


def main() -> int:
    """Checks the fingerprints or, with --renew, writes them; exits with a message if they differ."""
    parser = argparse.ArgumentParser(prog="python -m td3.learner.native", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write them down as the ones it was tested with")
    if parser.parse_args().renew:
        HEADER.write_text(header(), encoding="utf-8")
    fresh = HEADER.read_text(encoding="utf-8") == header()
    if not fresh:
        raise SystemExit("The C++ was tested with other functions than these.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
