"""Sessions: open calls, subscriptions, and the dispatch of messages."""
