"""Recordings of traffic, one line of JSON for each message without secrets, and their replay."""
