"""Damages files as bad disks, broken downloads and attackers do, always in the same way for the same seed."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable

Damage = Callable[[bytes, random.Random], bytes]


def flip_bytes(content: bytes, chance: random.Random) -> bytes:
    made = bytearray(content)
    for _ in range(chance.randint(1, 40)):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(1, len(content))]


def cut_out(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(content)) for _ in range(2))
    return content[:start] + content[end:] or b"x"


def repeat_part(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    part = content[start : start + chance.randint(1, 2000)]
    return content[:start] + part * chance.randint(2, 30) + content[start:]


def blank(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    length = min(chance.randint(1, 500), len(content) - start)
    return content[:start] + bytes(length) + content[start + length :]


def exaggerate_number(content: bytes, chance: random.Random) -> bytes:
    """Replace one digit by a number that is far too large, as in lengths, counts and offsets."""
    digits = [place for place, byte in enumerate(content) if 0x30 <= byte <= 0x39]
    if not digits:
        return flip_bytes(content, chance)
    place = chance.choice(digits)
    return content[:place] + chance.choice((b"4294967295", b"-1", b"99999999999999999999")) + content[place + 1 :]


def damage_member(content: bytes, chance: random.Random) -> bytes:
    """Damage a file inside a ZIP archive and pack it again, so that its checksum is right and a parser reads it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    victim = chance.choice([number for number, (_, body) in enumerate(members) if body])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, body) in enumerate(members):
            archive.writestr(zipfile.ZipInfo(name), chance.choice(DAMAGES)(body, chance) if number == victim else body)
    return packed.getvalue()


DAMAGES: tuple[Damage, ...] = (flip_bytes, truncate, cut_out, repeat_part, blank, exaggerate_number)


def damaged(content: bytes, seed: str) -> bytes:
    """A damaged copy: one or two kinds of damage, chosen by the seed."""
    chance = random.Random(seed)
    if content.startswith(b"PK") and chance.random() < 0.5:
        return damage_member(content, chance)
    for damage in chance.sample(DAMAGES, chance.randint(1, 2)):
        content = damage(content, chance)
    return content
