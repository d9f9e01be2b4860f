"""The commands of the lab, named in hearsay/cli.py."""
