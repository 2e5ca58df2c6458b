"""A story for version 3 of the Z-machine, the one of most classics, assembled by hand.

It reads a line, looks at its first letter, and does one thing:

    d  throws a die of a hundred sides     s  saves
    t  sets the transcript flag            r  restores
    o  selects the transcript stream       n  restarts
    q  quits                               p  goes on until a die shows 1
"""

from __future__ import annotations

GLOBALS, OBJECTS, TEXT, PARSE, DICTIONARY, CODE = 0x40, 0x220, 0x280, 0x2C0, 0x300, 0x310
LETTER, DIE = 0x11, 0x12  # global variables


class Assembler:
    def __init__(self, start: int) -> None:
        self.start, self.code = start, bytearray()
        self.labels: dict[str, int] = {}
        self.holes: list[tuple[int, str, int]] = []  # where, to which label, with which flag

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def emit(self, *values: int) -> None:
        self.code += bytes(values)

    def go(self, name: str, flag: int) -> None:
        """An offset of two bytes; for a branch, the flag says when it is taken."""
        self.holes.append((len(self.code), name, flag))
        self.emit(0, 0)

    def say(self, text: str) -> None:
        self.emit(0xB2, *encoded(text), 0xBB)

    def jump(self, name: str) -> None:
        self.emit(0x8C)
        self.go(name, -1)

    def finish(self) -> bytes:
        for at, name, flag in self.holes:
            offset = self.labels[name] - (at + 2) + 2
            value = offset & 0xFFFF if flag < 0 else (flag << 15) | (offset & 0x3FFF)
            self.code[at : at + 2] = value.to_bytes(2, "big")
        return bytes(self.code)


def encoded(text: str) -> bytes:
    marks = [0 if char == " " else ord(char) - ord("a") + 6 for char in text]
    marks += [5] * (-len(marks) % 3)
    words = [a << 10 | b << 5 | c for a, b, c in zip(*[iter(marks)] * 3, strict=True)]
    words[-1] |= 0x8000
    return b"".join(word.to_bytes(2, "big") for word in words)


def tiny_story() -> bytes:
    asm = Assembler(CODE)
    asm.say("ready")
    asm.label("loop")
    asm.emit(0xE4, 0x0F, *TEXT.to_bytes(2, "big"), *PARSE.to_bytes(2, "big"))  # read
    asm.emit(0xD0, 0x1F, *TEXT.to_bytes(2, "big"), 1, LETTER)  # loadb
    for letter in "dsrtonqp":
        asm.emit(0x41, LETTER, ord(letter))  # je
        asm.go(letter, 1)
    asm.say("what")
    asm.jump("loop")

    asm.label("d")
    asm.emit(0xE7, 0x7F, 100, DIE, 0xE6, 0xBF, DIE, 0xBB)  # random, print_num, new_line
    asm.jump("loop")
    asm.label("p")
    asm.emit(0xE7, 0x7F, 6, DIE, 0xE6, 0xBF, DIE)
    asm.emit(0x41, DIE, 1)
    asm.go("loop", 1)
    asm.jump("p")
    asm.label("s")
    asm.emit(0xB5)
    asm.go("well", 1)
    asm.say("save failed")
    asm.jump("loop")
    asm.label("r")
    asm.emit(0xB6)
    asm.go("well", 1)
    asm.say("restore failed")
    asm.jump("loop")
    asm.label("well")
    asm.say("done")
    asm.jump("loop")
    asm.label("t")
    asm.emit(0xE1, 0x57, 0, 8, 1)  # storew into the header's flags
    asm.say("flag set")
    asm.jump("loop")
    asm.label("o")
    asm.emit(0xF3, 0x7F, 2)
    asm.say("stream chosen")
    asm.jump("loop")
    asm.label("n")
    asm.emit(0xB7)
    asm.label("q")
    asm.emit(0xBA)
    code = asm.finish()

    story = bytearray(CODE) + code
    story += bytes(-len(story) % 2)
    name = encoded("here")
    entry = OBJECTS + 62  # after the default properties; one object, whose table follows it
    story[entry : entry + 9] = bytes(7) + (entry + 9).to_bytes(2, "big")
    story[entry + 9 : entry + 10 + len(name)] = bytes([len(name) // 2]) + name
    story[GLOBALS : GLOBALS + 2] = (1).to_bytes(2, "big")  # the status line names object 1
    story[TEXT], story[PARSE] = 50, 5
    story[DICTIONARY : DICTIONARY + 4] = bytes([0, 7, 0, 0])
    header = {
        0x00: bytes([3]),
        0x02: (1).to_bytes(2, "big"),
        0x04: CODE.to_bytes(2, "big"),
        0x06: CODE.to_bytes(2, "big"),
        0x08: DICTIONARY.to_bytes(2, "big"),
        0x0A: OBJECTS.to_bytes(2, "big"),
        0x0C: GLOBALS.to_bytes(2, "big"),
        0x0E: DICTIONARY.to_bytes(2, "big"),
        0x12: b"260101",
        0x18: GLOBALS.to_bytes(2, "big"),
        0x1A: (len(story) // 2).to_bytes(2, "big"),
    }
    for at, value in header.items():
        story[at : at + len(value)] = value
    story[0x1C:0x1E] = (sum(story[0x40:]) & 0xFFFF).to_bytes(2, "big")
    return bytes(story)
