"""What can go wrong in a user's hands, each kind one class; every message is one clear sentence."""


class TD3Error(Exception):
    """The parent of every error this package raises on purpose."""


class ConfigError(TD3Error, ValueError):
    """A setting, flag or argument that cannot be used."""


class SpaceError(TD3Error, ValueError):
    """An environment with observations or actions that TD3 cannot handle."""


class EnvironmentFailure(TD3Error, RuntimeError):
    """An environment that died, raised, hung or answered with nonsense while it was played."""


class RunError(TD3Error, RuntimeError):
    """A run folder that cannot be written or read."""

    passing = False  # whether it may work at another moment: a file that could not be opened, say


class ExportError(TD3Error, RuntimeError):
    """An exported policy that does not act as the agent does."""


class TrainingDiverged(TD3Error, ArithmeticError):
    """Numbers stopped being numbers inside the networks."""


class Interrupted(BaseException):
    """The user's second signal: leave at once."""

    def __init__(self, signal: int) -> None:
        self.signal = signal
