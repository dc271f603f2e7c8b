"""The core that runs a handler: dispatch, connections, and everything a request may need."""
