"""The commands of `typedmcp`. The module and the function of a command are named after it."""
