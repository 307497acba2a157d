"""`bufferscope`, and `python -m bufferscope`: the command line.

Importing all of it takes a moment, in which Ctrl-C is as quiet as later: so it happens in `main`.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from bufferscope import streams

        streams.make_usable()
        from bufferscope.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    main()
