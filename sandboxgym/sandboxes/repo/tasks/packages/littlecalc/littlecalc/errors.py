"""What can be wrong with a formula."""


class CalcError(ValueError):
    """A formula cannot be read or has no value."""

    def __init__(self, message: str, position: int | None = None) -> None:
        where = "" if position is None else f" at column {position + 1}"
        super().__init__(f"{message}{where}")
        self.position = position
