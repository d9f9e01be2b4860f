"""The Faust app, without a broker."""
