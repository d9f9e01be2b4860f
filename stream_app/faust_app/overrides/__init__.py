"""Every subclass of, and every private name we use in, Faust, mode, aiokafka and kafka-python.

What we changed and why is in docs/decisions/0006-what-we-changed-in-faust.md.
"""
