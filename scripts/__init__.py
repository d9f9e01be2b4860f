"""What people who work on the project run, and nobody installs."""
