"""Coverage-guided fuzzing of what reads bytes of peers."""
