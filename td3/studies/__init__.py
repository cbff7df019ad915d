"""Many runs: environments × settings × seeds, each an ordinary run folder below the folder of the study.

There is no list of what is done: that is read from the run folders, so the same study started again continues.
"""

from td3.studies.driver import Began, Driver, Ended, Job, Looked, Plan, Reported, StudyEvent, Waiting
from td3.studies.processes import ProcessJob
from td3.studies.spec import DEFAULT_SEEDS, FIRST_SETTING, PlannedRun, Spec, read_spec
from td3.studies.study import Study

__all__ = [
    "DEFAULT_SEEDS",
    "FIRST_SETTING",
    "Began",
    "Driver",
    "Ended",
    "Job",
    "Looked",
    "Plan",
    "PlannedRun",
    "ProcessJob",
    "Reported",
    "Spec",
    "Study",
    "StudyEvent",
    "Waiting",
    "read_spec",
]
