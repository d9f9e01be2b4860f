"""Commands for operators of servers and stores."""
