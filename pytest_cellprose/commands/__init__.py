"""``python -m pytest_cellprose``: what is not a test run. One file per command.

Every command exits 0 on success, 1 when part of the work failed and 2 on wrong usage; errors go to stderr, one
line each.
"""
