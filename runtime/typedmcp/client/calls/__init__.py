"""Calls and subscriptions over a connection, through its restarts."""
