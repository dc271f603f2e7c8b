"""Serve a program with the library that it is written for, over standard input and output: `serve.py FILE`."""

import runpy
import sys

if __name__ == "__main__":
    runpy.run_path(sys.argv[1])["mcp"].run()
