"""Messages that servers initiate, and the callbacks that answer them."""
