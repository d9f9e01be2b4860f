"""What `import hearsay` offers to notebooks and programs; the names are in `hearsay/__init__.py`."""
