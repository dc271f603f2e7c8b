"""Code that the generated modules share. It is private; each revision re-exports the public names."""
