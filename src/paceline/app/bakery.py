"""Images of our own: made of a builder, listed, and removed with their snapshots."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.app.renting import Desk
from paceline.errors import (
    AlreadyThere,
    CloudError,
    LeftBehind,
    NotFound,
    NotThere,
    StillInUse,
)
from paceline.model.baked import BakedImage
from paceline.model.ec2 import Answer, ClusterKey, Request, Thing
from paceline.model.ledger import Entry, EntryState
from paceline.planning.ec2 import answers, baking, questions, requests
from paceline.planning.ec2.identity import CLUSTER_TAG, IMAGE_TAG, USER_TAG

# What was just made may not be seen for a while; an image of a full disk may take an hour.
_SEEN_WITHIN_S = 120.0
_READY_WITHIN_S = 2 * 3600.0
_STOPPED_WITHIN_S = 900.0
_FIRST_LOOK_S = 0.5
_LONGEST_PAUSE_S = 15.0
_REMOVED_WITHIN_S = 300.0


@dataclass
class Bakery:
    """Where images are made; they belong to an owner."""

    desk: Desk
    owner: str

    async def shelf(self, name: str | None = None) -> tuple[BakedImage, ...]:
        """Return the images that we have baked, the newest first."""
        answer = await self.desk.cloud.call(baking.baked(self.owner, name)[0])
        found = [_baked(item, self.desk.cloud.region) for item in answer.get("Images", ())]
        return tuple(sorted(found, key=lambda image: image.created_at, reverse=True))

    async def image_of(
        self, key: ClusterKey, instance_id: str, name: str, *, user: str, expires_at: float
    ) -> BakedImage:
        """Make an image of a host that is clean; it is named only when it is whole."""
        await self._switch_off(instance_id)
        request = baking.create_image(key, instance_id, name, expires_at)
        image_id = await self._make(key, request)
        self.desk.watcher.step(f"making the image {name} ({image_id}); this takes minutes")
        image = await self._ready(image_id)
        ids = (image_id, *baking.snapshot_ids(image))
        await self.desk.cloud.call(baking.give_name(ids, name, user))
        await self._let_go(key, ids)
        return replace(_baked(image, self.desk.cloud.region), name=name, user=user, whole=True)

    async def finish(self, key: ClusterKey, image: BakedImage) -> None:
        """Complete an image that was whole, and named, when whoever made it was stopped."""
        await self._let_go(key, (image.id, *image.snapshots))

    async def _let_go(self, key: ClusterKey, ids: Sequence[str]) -> None:
        await self.desk.cloud.call(baking.take_from_cluster(ids))
        self._close(key, ids[0])

    async def remove(self, name: str) -> tuple[Thing, ...]:
        """Remove an image and its snapshots, and make sure that they are gone."""
        there = await self._things(name)
        if not there:
            raise NotFound(f"there is no image {name!r}", hint="`paceline bake ls` shows them")
        give_up_at = self.desk.clock.monotonic() + _REMOVED_WITHIN_S
        pause_s, left = _FIRST_LOOK_S, there
        while left:
            for thing in left:
                await self._remove(thing)
            left = await self._things(name)
            if left and self.desk.clock.monotonic() > give_up_at:
                words = ", ".join(map(str, left))
                raise LeftBehind(f"still there: {words}", hint="the same command tries again")
            if left:
                await self.desk.clock.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return there

    async def _switch_off(self, instance_id: str) -> None:
        """Stop the builder, so that its disk is whole, and does not boot again meanwhile."""
        self.desk.watcher.step("switching the builder off")
        await self.desk.cloud.call(baking.stop([instance_id]))
        asked = questions.by_id("instance", [instance_id])

        async def look() -> bool:
            found = answers.machines(await self.desk.cloud.call(asked))
            if any(not machine.alive for machine in found):
                raise CloudError(f"the builder {instance_id} was ended by somebody else")
            return any(machine.state == "stopped" for machine in found)

        await self._until(look, _STOPPED_WITHIN_S, f"the builder {instance_id} does not stop")

    async def _make(self, key: ClusterKey, request: Request) -> str:
        """Create the image, or adopt it where an earlier attempt has done so; written down."""
        name = str(request.parameters["Name"])
        entry = Entry(
            id=f"image-{secrets.token_hex(8)}",
            key=key,
            kind="image",
            name=name,
            state=EntryState.MEANT,
            meant_at=self.desk.clock.now(),
        )
        self.desk.ledger.write(entry)
        try:
            made = str((await self.desk.cloud.call(request))["ImageId"])
        except AlreadyThere:
            made = await self._adopted(key, name)
        made_at = self.desk.clock.now()
        self.desk.ledger.write(
            replace(entry, state=EntryState.MADE, resource_id=made, made_at=made_at)
        )
        return made

    async def _adopted(self, key: ClusterKey, name: str) -> str:
        """Return the image of this name that is ours: the reply to its making was lost."""
        found: list[Answer] = []

        async def look() -> bool:
            answer = await self.desk.cloud.call(baking.images_called(name))
            found[:] = answer.get("Images", ())
            return bool(found)

        await self._until(look, _SEEN_WITHIN_S, f"the image {name} exists and is not shown")
        if not baking.is_of_cluster(found[0], key):
            raise AlreadyThere(
                f"somebody else's image bears the name {name}", hint="choose another --name"
            )
        return str(found[0]["ImageId"])

    async def _ready(self, image_id: str) -> Mapping[str, Any]:
        """Wait until an image can be used, and return what it is."""
        found: list[Answer] = []

        async def look() -> bool:
            try:
                answer = await self.desk.cloud.call(baking.image_by_id(image_id))
            except NotThere:
                return False
            found[:] = answer.get("Images", ())
            state = str(found[0].get("State")) if found else "pending"
            if state not in ("pending", "available"):
                reason = found[0].get("StateReason", {}).get("Message", "no reason was given")
                raise CloudError(f"the image {image_id} is {state}: {reason}")
            return state == "available"

        await self._until(look, _READY_WITHIN_S, f"the image {image_id} does not become ready")
        return found[0]

    def _close(self, key: ClusterKey, image_id: str) -> None:
        """Write down that the image is no longer the cluster's, so nobody removes it with that."""
        gone_at = self.desk.clock.now()
        self.desk.ledger.write(
            *(
                replace(entry, state=EntryState.GONE, gone_at=gone_at)
                for entry in self.desk.ledger.entries(key)
                if entry.kind == "image" and entry.resource_id == image_id
            )
        )

    async def _things(self, name: str) -> tuple[Thing, ...]:
        """Return the image of a name and all snapshots of it, also those without an image."""
        images, snapshots = baking.baked(self.owner, name)
        return (
            *answers.things("image", await self.desk.cloud.call(images)),
            *answers.things("snapshot", await self.desk.cloud.call(snapshots)),
        )

    async def _remove(self, thing: Thing) -> None:
        try:
            await self.desk.cloud.call(requests.remove(thing))
        except (NotThere, StillInUse):
            return  # gone already, or to be tried again

    async def _until(self, look: Callable[[], Any], within_s: float, complaint: str) -> None:
        give_up_at, pause_s = self.desk.clock.monotonic() + within_s, _FIRST_LOOK_S
        while not await look():
            if self.desk.clock.monotonic() > give_up_at:
                raise CloudError(f"{complaint} within {within_s:g} s")
            await self.desk.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _baked(item: Answer, region: str) -> BakedImage:
    own = answers.tags(item)
    facts = answers.images({"Images": [item]})[0]
    return BakedImage(
        name=own.get(IMAGE_TAG, ""),
        id=facts.id,
        region=region,
        state=str(item.get("State", "")),
        created_at=str(item.get("CreationDate", "")),
        size_gib=facts.size_gib,
        user=own.get(USER_TAG, ""),
        snapshots=baking.snapshot_ids(item),
        whole=CLUSTER_TAG not in own,
    )


def not_yet(name: str, shelf: Sequence[BakedImage]) -> AlreadyThere | None:
    """Return what to say where an image of a name is there already."""
    if not shelf:
        return None
    return AlreadyThere(
        f"there is an image {name!r} already, {shelf[0].id} of {shelf[0].created_at}",
        hint=f"`paceline bake rm {name}` removes it; or choose another --name",
    )
