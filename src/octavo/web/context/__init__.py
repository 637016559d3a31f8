"""Dependencies of routes: the services of the installation, the caller, and the limits for uploads."""
