"""Do devices do what their survey says? Tests of what a program's devices send, each with an exact level; pure."""
