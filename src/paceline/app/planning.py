"""Everything that a spec would run, planned for the hosts that there are."""

from __future__ import annotations

from paceline.app.workplace import Workplace, plan_for
from paceline.model.plan import PlanReport
from paceline.model.spec import Spec
from paceline.planning.study import plan_study, training_configuration


async def plan_everything(place: Workplace, spec: Spec) -> PlanReport:
    """Return the study of a spec, one run of each of its configurations, and the job's own."""
    study = plan_study(spec, place.facts_in_order)
    own = training_configuration(spec, place.facts_in_order)
    runs = [await plan_for(place, spec, own, f"{spec.name}-RUN", measured=False)]
    for configuration in study.configurations:
        if configuration.instance_type != study.baseline.instance_type:
            continue  # its hosts are not there yet, and nobody knows them
        run_id = f"{configuration.label}-s1-RUN"
        runs.append(await plan_for(place, spec, configuration, run_id, measured=True))
    return PlanReport(study=study, runs=tuple(runs), notes=())
