"""The workplaces of a study: configurations may want other hosts, or another runtime on them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from paceline.app.preflight import preflight
from paceline.app.workplace import Workplace
from paceline.model.plan import Configuration
from paceline.model.spec import Spec
from paceline.planning.variant import variant_of

if TYPE_CHECKING:
    from typing_extensions import Self

OpenWorkplace = Callable[[Spec], AbstractAsyncContextManager[Workplace]]
_Key = tuple[str | None, str | None]


@dataclass
class Places:
    """Opens the workplace of a configuration when it is needed, and keeps it for the next.

    Hosts of one instance type are let go of before those of another are asked for; runtimes on
    the same hosts stand side by side. Whether letting go ends the hosts is their provider's
    business, behind `open_workplace`.
    """

    spec: Spec
    open_workplace: OpenWorkplace
    _open: dict[_Key, Workplace] = field(default_factory=dict)
    _ready: set[_Key] = field(default_factory=set)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        """Begin with nothing open."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of everything."""
        await self._stack.aclose()

    async def look(self, configuration: Configuration) -> Workplace:
        """Return the workplace of a configuration, reached and looked at."""
        key = _key(configuration)
        if key not in self._open:
            if any(instance_type != key[0] for instance_type, _ in self._open):
                await self.leave()
            spec = variant_of(self.spec, configuration)
            self._open[key] = await self._stack.enter_async_context(self.open_workplace(spec))
        return self._open[key]

    async def of(self, configuration: Configuration) -> Workplace:
        """Return the workplace of a configuration, found to have all that a run needs."""
        place = await self.look(configuration)
        if _key(configuration) not in self._ready:
            await preflight(place, variant_of(self.spec, configuration))
            self._ready.add(_key(configuration))
        return place

    async def leave(self) -> None:
        """Let go of the hosts; they are asked for again when they are needed."""
        stack, self._stack = self._stack, AsyncExitStack()
        self._open.clear()
        self._ready.clear()
        await stack.aclose()


def _key(configuration: Configuration) -> _Key:
    return (configuration.instance_type, configuration.runtime)
