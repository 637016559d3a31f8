"""What a walk through the index brought, as it is kept."""

from __future__ import annotations

from uuid import UUID

from octavo.connect.neighbours import Neighbour, best_neighbours

A, B, C, D = (UUID(int=number) for number in range(1, 5))


def test_a_passage_is_not_its_own_neighbour_and_the_best_are_kept() -> None:
    found = [
        Neighbour(A, A, 1.0),
        Neighbour(A, B, 0.5),
        Neighbour(A, C, 0.9),
        Neighbour(A, D, 0.7),
        Neighbour(B, A, 0.5),
    ]

    assert best_neighbours(found, 2, 0.0) == [Neighbour(A, C, 0.9), Neighbour(A, D, 0.7), Neighbour(B, A, 0.5)]
    assert best_neighbours(found, 2, 0.8) == [Neighbour(A, C, 0.9)]
