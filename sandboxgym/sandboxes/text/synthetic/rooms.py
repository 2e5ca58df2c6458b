"""The catalogue: what kinds of rooms, receptacles and objects there are, and what fits where.

Kinds and the affordances of objects follow ALFRED; which objects a receptacle takes is put
together from a few groups of objects.
"""

from __future__ import annotations

from dataclasses import dataclass

# --- objects -------------------------------------------------------------------------------

FRUIT = {"Apple", "Tomato", "Potato", "Egg"}
FOOD = FRUIT | {"Bread", "Lettuce"}
CROCKERY = {"Bowl", "Cup", "Mug", "Plate"}
COOKWARE = {"Kettle", "Pan", "Pot"}
CUTLERY = {"ButterKnife", "Fork", "Knife", "Ladle", "Spatula", "Spoon"}
BOTTLES = {"Glassbottle", "WineBottle"}
SEASONING = {"PepperShaker", "SaltShaker"}
WASHING = {"Cloth", "DishSponge", "HandTowel", "SoapBar", "SoapBottle", "SprayBottle"}
PAPER = {"TissueBox", "ToiletPaper"}
WRITING = {"Book", "CD", "Newspaper", "Pen", "Pencil"}
POCKET = {"CellPhone", "CreditCard", "KeyChain", "RemoteControl", "Watch"}
ORNAMENTS = {"Candle", "Statue", "Vase", "WateringCan"}
SEATED = {"Box", "Laptop", "Pillow"}  # what people leave on seats and beds
SPORTS = {"BaseballBat", "BasketBall", "TennisRacket"}

LAMP = "DeskLamp"  # switched on where it stands, never carried

SLICEABLE = FOOD
SHARP = {"ButterKnife", "Knife"}
HEATABLE = FRUIT | {"Bread", "Cup", "Mug", "Plate"}
COOLABLE = FOOD | CROCKERY | {"Pan", "Pot", "WineBottle"}
CLEANABLE = FRUIT | {"Lettuce"} | CROCKERY | COOKWARE | CUTLERY | {"Cloth", "DishSponge", "SoapBar"}
HOLDS_OTHERS = CROCKERY | {"Box", "Pan", "Pot"}

# --- receptacles ---------------------------------------------------------------------------

CLEANS = "SinkBasin"
HEATS = "Microwave"
COOLS = "Fridge"

OPENABLE = {"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"}

_TABLEWARE = FOOD | CROCKERY | COOKWARE | CUTLERY | BOTTLES | SEASONING
_SMALL = WASHING | PAPER | WRITING | POCKET | ORNAMENTS
_TABLE = _TABLEWARE | _SMALL | SPORTS | {"AlarmClock", "Box", "Laptop"}
_DESK = (
    (CROCKERY | BOTTLES | PAPER | WRITING | POCKET | ORNAMENTS | SPORTS)
    | {"AlarmClock", "Box", "Cloth", "Laptop", "SprayBottle", LAMP}
)  # fmt: skip
_SEAT = SEATED | {"BasketBall", "Book", "Cloth", "Newspaper"} | (POCKET - {"Watch"})
_CLOSET = {"Cloth", "DishSponge", "HandTowel"} | PAPER | {"SoapBar", "SoapBottle", "SprayBottle"}

CONTAINS: dict[str, set[str]] = {
    # tables and other surfaces
    "CoffeeTable": _TABLE,
    "CounterTop": _TABLE,
    "Desk": _DESK,
    "DiningTable": _TABLE,
    "Dresser": _DESK,
    "Shelf": (CROCKERY | BOTTLES | SEASONING | _SMALL)
    | {"AlarmClock", "Box", "Kettle", "Pot", LAMP},
    "SideTable": _TABLE | {LAMP},
    "TVStand": {"RemoteControl", "TissueBox"},
    # seats and beds
    "ArmChair": _SEAT,
    "Bed": {"Book", "CellPhone", "Laptop", "Newspaper", "Pillow", "TeddyBear"} | SPORTS,
    "Ottoman": _SEAT,
    "Sofa": _SEAT,
    # storage with doors
    "Cabinet": (CROCKERY | COOKWARE | BOTTLES | SEASONING | ORNAMENTS | _CLOSET)
    | {"Book", "Box", "CD", "Ladle", "Newspaper", "Plunger"},
    "Drawer": (CUTLERY | SEASONING | WRITING | POCKET | _CLOSET) | {"Candle", "WateringCan"},
    "Safe": {"CD", "CellPhone", "CreditCard", "KeyChain", "Statue", "Vase", "Watch"},
    # kitchen
    "CoffeeMachine": {"Mug"},
    "Fridge": FOOD | CROCKERY | BOTTLES | {"Pan", "Pot"},
    "Microwave": FRUIT | CROCKERY | {"Bread", "Glassbottle"},
    "StoveBurner": COOKWARE,
    "Toaster": set(),
    # bathroom
    "BathtubBasin": {"Cloth", "DishSponge", "HandTowel", "SoapBar"},
    "Cart": _CLOSET | {"Candle", "Mug", "Plunger", "Statue", "Vase"},
    "HandTowelHolder": {"HandTowel"},
    "SinkBasin": (FRUIT | {"Lettuce"} | CROCKERY | COOKWARE | CUTLERY)
    | {"Cloth", "DishSponge", "Glassbottle", "HandTowel", "SoapBar"},
    "Toilet": _CLOSET | {"Candle", "Newspaper"},
    "ToiletPaperHanger": {"ToiletPaper"},
    "TowelHolder": {"Towel"},
    # everywhere
    "GarbageCan": (FOOD | PAPER)
    | {"CD", "Cloth", "DishSponge", "HandTowel", "Newspaper", "Pen", "Pencil"}
    | {"SoapBar", "SoapBottle", "SprayBottle", "WineBottle"},
    "LaundryHamper": {"Cloth"},
}

# --- rooms ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Room:
    """A kind of room.

    Attributes:
        name: What people call it.
        scenes: The numbers of its floor plans, as in ALFRED.
        always: Receptacles that every such room has.
        optional: Further receptacles, and how many of each there may be.
        objects: What lies around in it, apart from a lamp.
        has_lamp: Whether a desk lamp stands in it.
    """

    name: str
    scenes: range
    always: tuple[str, ...]
    optional: dict[str, int]
    objects: tuple[str, ...]
    has_lamp: bool = False


KITCHEN = Room(
    name="kitchen",
    scenes=range(1, 31),
    always=("CounterTop", "Fridge", "Microwave", "SinkBasin"),
    optional={
        "Cabinet": 16,
        "CoffeeMachine": 1,
        "CounterTop": 2,
        "DiningTable": 2,
        "Drawer": 12,
        "GarbageCan": 1,
        "Shelf": 3,
        "SideTable": 1,
        "StoveBurner": 4,
        "Toaster": 1,
    },
    objects=tuple(
        sorted(
            (FOOD | CROCKERY | COOKWARE | CUTLERY | BOTTLES | SEASONING)
            | {"Book", "DishSponge", "SoapBottle", "Statue", "Vase"}
        )
    ),
)

LIVING_ROOM = Room(
    name="living room",
    scenes=range(201, 231),
    always=("ArmChair", "GarbageCan", "SideTable", "Sofa"),
    optional={
        "ArmChair": 2,
        "Cabinet": 8,
        "CoffeeTable": 2,
        "Desk": 1,
        "DiningTable": 2,
        "Drawer": 14,
        "Dresser": 1,
        "Ottoman": 1,
        "Safe": 1,
        "Shelf": 8,
        "SideTable": 2,
        "TVStand": 1,
    },
    objects=tuple(
        sorted(
            (POCKET | ORNAMENTS | SEATED)
            | {"Book", "Bowl", "Newspaper", "Pen", "Pencil", "Plate", "TissueBox"}
        )
    ),
    has_lamp=True,
)

BEDROOM = Room(
    name="bedroom",
    scenes=range(301, 331),
    always=("Bed", "Desk", "GarbageCan"),
    optional={
        "ArmChair": 2,
        "Cabinet": 6,
        "Desk": 1,
        "DiningTable": 1,
        "Drawer": 14,
        "Dresser": 1,
        "LaundryHamper": 1,
        "Safe": 1,
        "Shelf": 8,
        "SideTable": 2,
    },
    objects=tuple(
        sorted(
            (POCKET | SEATED | SPORTS | {"Book", "CD", "Pen", "Pencil"})
            | {"AlarmClock", "Bowl", "Mug", "Statue", "TeddyBear", "TissueBox", "Vase"}
        )
    ),
    has_lamp=True,
)

BATHROOM = Room(
    name="bathroom",
    scenes=range(401, 431),
    always=("CounterTop", "GarbageCan", "SinkBasin", "Toilet"),
    optional={
        "BathtubBasin": 1,
        "Cabinet": 10,
        "Cart": 1,
        "CounterTop": 1,
        "Drawer": 10,
        "Dresser": 1,
        "HandTowelHolder": 3,
        "Shelf": 6,
        "SideTable": 1,
        "ToiletPaperHanger": 1,
        "TowelHolder": 2,
    },
    objects=tuple(sorted(WASHING | PAPER | {"Candle", "Plunger", "Towel"})),
)

ROOMS = (KITCHEN, LIVING_ROOM, BEDROOM, BATHROOM)
