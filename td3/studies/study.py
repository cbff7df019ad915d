"""A study and its folder: which runs it has, how far each is, and what of it may change."""

from pathlib import Path
from typing import Any

from td3.errors import ConfigError
from td3.storage.study import StudyFolder
from td3.studies.spec import PlannedRun, Spec, toml_of
from td3.studies.standing import Standing, standing_of
from td3.wording import brief


class Study:
    """The runs of a spec in a folder; used as a context, it is locked and its spec written."""

    def __init__(self, path: str | Path, spec: Spec) -> None:
        self.folder, self.spec = StudyFolder(path), spec
        self.runs = spec.runs()

    @property
    def path(self) -> Path:
        """Returns the path of its folder."""
        return self.folder.path

    def path_of(self, run: PlannedRun) -> Path:
        """Returns the folder of a run."""
        return self.path / run.name

    def standing(self, run: PlannedRun) -> Standing:
        """Reads how far a run is."""
        return standing_of(self.path_of(run))

    def left(self) -> list[PlannedRun]:
        """Returns the runs that are not done, in the order they are begun or continued."""
        return [run for run in self.runs if not self.standing(run).done(run.config.steps)]

    def check(self) -> None:
        """Refuses a folder of another study, and a spec that changes or leaves out what is begun."""
        self.folder.check({run.name.split("/")[0] for run in self.runs})
        planned = {run.name: run for run in self.runs}
        for name in self.folder.begun():
            if name not in planned:
                raise ConfigError(
                    f"run {name} of study {str(self.path)!r} is begun, and is not in this spec: put it back, or name "
                    "another folder with --study."
                )
            self._check_same(planned[name])

    def _check_same(self, run: PlannedRun) -> None:
        standing = self.standing(run)
        first, now = standing.first or standing.now, standing.now or standing.first
        if first is None or now is None:
            return  # training says what is wrong with it
        for name, wanted in run.config.to_data().items():
            if name not in first or (name == "steps" and wanted >= first[name]):
                continue  # a setting that is newer than the run, or a further goal
            if wanted not in (first[name], now.get(name)):
                raise changed(run, name, now.get(name), wanted)

    def __enter__(self) -> "Study":
        self.check()
        self.folder.open()
        try:
            self.check()  # again, now that no other process trains it
            self.folder.write(toml_of(self.spec))
        except BaseException:
            self.folder.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()


def changed(run: PlannedRun, name: str, now: Any, wanted: Any) -> ConfigError:
    """Makes the error that refuses to change a setting of a run that is begun."""
    return ConfigError(
        f"{name} cannot change from {brief(now)} in run {run.name}, which is begun: give the new value a name of its "
        f"own under settings, or name another folder with --study; got {brief(wanted)}."
    )
