"""The random-kill soak, `make soak MINUTES=10 SEED=1`: people work while any process may be killed at any moment."""
