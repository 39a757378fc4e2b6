"""From a spec to what it asks of EC2, with every default filled in."""

from __future__ import annotations

from paceline.model.ec2 import ClusterKey, DiskWish, Wish
from paceline.model.spec import Spec

DEFAULT_REGION = "us-east-1"
DEFAULT_TYPE = "m5.large"
DEFAULT_IMAGE = "ubuntu-24.04"
DEFAULT_TTL_S = 4 * 3600.0


def wish_of(spec: Spec, owner: str, region: str) -> Wish:
    """Return what a spec asks for; `region` stands where the spec names none."""
    cluster, disk = spec.cluster, spec.cluster.disk
    nodes = nodes_of(spec)
    return Wish(
        key=ClusterKey(spec.name, owner, cluster.region or region),
        types=cluster.instance_type or (DEFAULT_TYPE,),
        nodes=nodes,
        min_nodes=min(cluster.min_nodes or nodes, nodes),
        image=cluster.image or DEFAULT_IMAGE,
        user=cluster.user,
        disk=DiskWish() if disk is None else DiskWish(disk.size_gib, disk.type, disk.encrypted),
        placement=cluster.placement_group or "none",
        market=cluster.market or "on-demand",
        ssh_from=cluster.ssh_from or ("me",),
        open_ports=tuple(sorted(set(cluster.open_ports))),
        zones=cluster.zones or (),
        subnet=cluster.subnet,
        ttl_s=spec.limits.ttl or DEFAULT_TTL_S,
        idle_s=cluster.idle,
    )


def nodes_of(spec: Spec) -> int:
    """Return how many hosts a spec needs: as it says, else as many as its study uses at most."""
    if spec.cluster.nodes is not None:
        return spec.cluster.nodes
    wanted = (spec.study.grid or {}).get("nodes", ())
    return max([spec.study.baseline.nodes, *(int(value) for value in wanted)])
