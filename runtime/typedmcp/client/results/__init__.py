"""Results of servers: decoding, repairs, validation and caching."""
