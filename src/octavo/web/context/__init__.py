"""What routes are given: the services of the installation, the caller, and limits for files that come in."""
