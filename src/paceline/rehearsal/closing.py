"""What is at work from the moment that it is made, until it is closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Closing(ABC):
    """Closed at the end of a `with`, whatever happened in it."""

    @abstractmethod
    def close(self) -> None:
        """End it, and take away what it holds."""

    def __enter__(self) -> Self:
        """Begin to use it; it works already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
