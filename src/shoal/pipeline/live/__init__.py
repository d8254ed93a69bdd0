"""Systems of messages: one module per system connects its source and its sinks."""
