"""Tests of views: what is made of finals, and where it goes."""
