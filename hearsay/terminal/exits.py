"""Exit codes. 0: done. 2: wrong usage. The others:"""

REFUSED = 1  # one sentence says why, a hint says what to do
BROKEN = 70  # something unexpected: a defect, or a worker that cannot know that it counts right
TRY_AGAIN = 75  # a server is away
STOPPED = 130  # by the user
