"""Python types to JSON Schema, values to and from JSON, and validation against given schemas."""
