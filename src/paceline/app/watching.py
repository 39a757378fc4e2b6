"""Watching a study or a run that somebody else carries out: nothing is touched or settled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field

from paceline.app.following import Following, listen_to
from paceline.app.jobs import FileChunk
from paceline.app.launch import Launchpad
from paceline.app.progress import RunProgress, progress_of, remaining_s
from paceline.app.publish import Publisher
from paceline.app.spending import cost_usd, earlier_periods, last_price, spent_usd
from paceline.errors import PacelineError
from paceline.model.plan import RunPlan
from paceline.model.record import RunRecord, RunState
from paceline.model.summary import Sample, StudyProgress
from paceline.ports import Clock, RunStore, StudyObserver

Connect = Callable[[RunPlan], AbstractAsyncContextManager[Launchpad]]
_LOOK_EVERY_S = 1.0
_TELL_EVERY_S = 0.5
# Between two samples nobody may hold the study's lock for a moment.
_GONE_AFTER_LOOKS = 3


@dataclass
class StudyWatcher:
    """Somebody who looks at a study from outside, through the same eyes as its own display."""

    store: RunStore
    publisher: Publisher
    observer: StudyObserver
    connect: Connect
    clock: Clock
    _told: dict[str, Sample] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    async def watch(self) -> bool:
        """Watch until the study is complete (True), or until nobody is at work on it."""
        plan = self.publisher.plan
        ended = [record for record in self._records() if record.state.ended]
        good = {one.sample_id for one in self.publisher.read_samples(ended) if not one.failed}
        self.observer.planned(plan, len(plan.samples) - len(good))
        looks_alone = 0
        while True:
            records = self._records()
            self._tell_news(records)
            if self._is_complete():
                return True
            held = self.store.holder(plan.name) is not None
            looks_alone = 0 if held else looks_alone + 1
            running = next((item for item in records if item.state is RunState.RUNNING), None)
            if running is None and looks_alone >= _GONE_AFTER_LOOKS:
                return False
            if running is not None:
                await self._follow(running)
            await self.clock.sleep(_LOOK_EVERY_S)

    def _records(self) -> tuple[RunRecord, ...]:
        return self.store.runs(study=str(self.publisher.study.folder))

    def _is_complete(self) -> bool:
        good = {name for name, sample in self._told.items() if sample.failed is None}
        return good >= {item.sample_id for item in self.publisher.plan.samples}

    def _tell_news(self, records: tuple[RunRecord, ...]) -> None:
        ended = [record for record in records if record.state.ended]
        if self._seen >= {record.run_id for record in ended}:
            return  # reading events again and again would take cores from the ranks
        self._seen |= {record.run_id for record in ended}
        news = [
            sample
            for sample in self.publisher.read_samples(ended)
            if self._told.get(sample.sample_id) != sample
        ]
        for sample in news:
            self._told[sample.sample_id] = sample
        if news:
            latest = max(news, key=lambda sample: sample.started_at or 0.0)
            self.observer.sampled(latest, self._progress(records))

    def _progress(self, records: tuple[RunRecord, ...]) -> StudyProgress:
        plan = self.publisher.plan
        summary = self.publisher.summarise(list(self._told.values()), None)
        walls = {
            item.configuration: [one.wall_s for one in item.good if one.wall_s is not None]
            for item in summary.configurations
        }
        good = {name for name, sample in self._told.items() if sample.failed is None}
        to_come = [item.configuration for item in plan.samples if item.sample_id not in good]
        left_s = remaining_s(walls, to_come)
        price = last_price(records)
        periods = earlier_periods(records, now=self.clock.now())
        return StudyProgress(
            summary=summary,
            done=len(plan.samples) - len(to_come),
            total=len(plan.samples),
            remaining_s=left_s,
            spent_usd=spent_usd(periods) if periods else None,
            remaining_usd=None if price is None or left_s is None else cost_usd(left_s, price),
            at_most=self.publisher.spec.study.adaptive,
        )

    async def _follow(self, record: RunRecord) -> None:
        progress = progress_of(self.publisher.spec)
        with suppress(PacelineError):  # a host that cannot be asked now may be later
            await watch_run(self.store, record, progress, self.observer, self.connect)


async def watch_run(
    store: RunStore,
    record: RunRecord,
    progress: RunProgress,
    observer: StudyObserver,
    connect: Connect,
) -> None:
    """Tell the observer how a run stands, until its hosts have ended it."""
    plan = store.plan_of(record)
    observer.started(record)
    told_at = 0.0

    def listen(chunk: FileChunk) -> None:
        nonlocal told_at
        now = time.monotonic()
        if progress.feed(chunk) and now - told_at > _TELL_EVERY_S:
            told_at = now
            observer.progressed(record, progress.now)

    async with connect(plan) as pad:
        await listen_to(Following(pad.links, plan, pad.clock), listen)
    observer.progressed(record, progress.now)
