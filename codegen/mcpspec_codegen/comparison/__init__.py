"""Compare two interfaces: what changed, whether it breaks peers, and whom.

The compiler and the command `typedmcp` each have this package, so that neither needs the other. A test checks that both
are the same.
"""
