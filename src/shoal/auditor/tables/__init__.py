"""The audit of a table of any tool: classes of equal quasi-identifiers, and the models of the field."""
