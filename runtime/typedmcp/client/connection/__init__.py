"""Connections: targets, options, negotiation and reconnecting."""
