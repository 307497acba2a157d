"""`bufferscope`, and `python -m bufferscope`: the command line.

Importing the command line takes a moment. It happens in `main`, so that Ctrl-C is handled during the import, too.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from bufferscope.base import streams

        streams.make_usable()
        from bufferscope.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    main()
