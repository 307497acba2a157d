"""`python -m bufferscope`: the command line."""

from bufferscope.cli import main

if __name__ == "__main__":
    main()
