"""Small files as new users bring them, with the roles that a careful person would choose."""
