"""Official extensions of the protocol."""
