"""Meshes of live nodes: the mesh file, its plans, its keys, and how it is changed."""
