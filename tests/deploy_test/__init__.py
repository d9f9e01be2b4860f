"""What `make deploy-test` does: the files of deploy/ are run, not only read."""
