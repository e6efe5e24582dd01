"""The process around a node: disk, links, HTTP, clock."""
