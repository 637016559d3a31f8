"""Events that reach the outside: who wants to know, what they are told, and that they are told at least once."""
