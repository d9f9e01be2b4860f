"""Counting, merging and publishing: pure code, and the local and Kafka apps around it."""
