"""Exit codes. 0: done. 2: wrong usage. The others:"""

REFUSED = 1  # the message says why, the hint what to do
BROKEN = 70  # unexpected: a bug, or a worker that cannot be sure that its counts are right
TRY_AGAIN = 75  # a server is not available
STOPPED = 130  # by the user
