"""What is in a file or topic of which nothing is known but its name."""
