"""The errors of methods where the truth is known: MSE_avg as the papers measure it; pure."""
