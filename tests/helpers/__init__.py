"""Shared by the tests of several rooms."""
