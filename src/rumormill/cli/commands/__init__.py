"""The commands, one file each, named after it."""
