"""What the source and the sink of one system share: connecting, reporting errors, and how long to keep trying."""
