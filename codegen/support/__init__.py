"""What the generated modules share. Not public; the names meant for use are re-exported by each revision."""
