"""`python -m typedmcp`: the command."""

from typedmcp.cli import main

if __name__ == "__main__":
    main()
