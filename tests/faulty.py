"""An environment that leaves by any door it is told to, alone in its file: worker processes import it."""

import asyncio

import gymnasium
import numpy as np
import torch
from gymnasium import spaces


class Odd(BaseException):
    """No Exception."""


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Numbered(Exception):
    def __str__(self):
        return 7


RAISED = {
    "an error": lambda: RuntimeError("the joint broke"),
    "many lines": lambda: RuntimeError("\n\nthe joint\nbroke\r\nbadly"),
    "a long story": lambda: RuntimeError("ab " * 10_000),
    "no words": Unreadable,
    "words of another kind": Numbered,
    "an exit": lambda: SystemExit(3),
    "the end of a generator": GeneratorExit,
    "the end of an iterator": StopIteration,
    "a cancelled task": asyncio.CancelledError,
    "no exception": Odd,
    "no time": lambda: TimeoutError("too slow"),
    "no memory": MemoryError,
    "several": lambda: BaseExceptionGroup("both", [Odd(), ValueError("x")]),
}


class NoArray:
    def __init__(self, problem=RuntimeError):
        self.problem = problem

    def __array__(self, *_, **__):
        raise self.problem("no array")


class Hostile:
    """Whatever is asked of it, it raises."""

    def _no(self, *_, **__):
        raise RuntimeError("leave me alone")

    __array__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __getitem__ = __repr__ = _no
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _no


VALUES = {
    "an array that is none": NoArray,
    "an array that exits": lambda: NoArray(SystemExit),
    "an array that ends a generator": lambda: NoArray(GeneratorExit),
    "a tensor that is learned": lambda: torch.zeros(2, requires_grad=True),
    "a hostile thing": Hostile,
    "nothing": lambda: None,
    "text": lambda: "up",
    "long text": lambda: "up" * 10_000,
    "lists of unequal length": lambda: [[1.0], [1.0, 2.0]],
    "a complex number": lambda: 1j,
}
FIELDS = ("observation", "reward", "terminated", "truncated")


class Lengthless(tuple):
    def __len__(self):
        raise RuntimeError("no length")


ANSWERS = {
    "nothing": lambda _: None,
    "one too few": lambda answer: answer[:-1],
    "one too many": lambda answer: (*answer, {}),
    "a list": list,
    "a tuple without a length": Lengthless,
}


class Unwritable(spaces.Box):
    def __repr__(self):
        raise RuntimeError("no words")


class Faulty(gymnasium.Env):
    """Plays `after` steps well; then `place` (a call or a field) does as `fault` says."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, place, fault, after=3):
        self.place, self.fault, self.after, self.count = place, fault, after, 0

    def reset(self, *, seed=None, options=None):
        return self._spoiled("reset", (np.zeros(2, np.float32), {}))

    def step(self, action):
        self.count += 1
        ended = self.place.startswith("reset") and self.count > self.after
        answer = (np.full(2, 0.5, np.float32), 0.0, False, ended, {})
        return self._spoiled("step", answer)

    def _spoiled(self, call, answer):
        if self.count <= self.after:
            return answer
        if self.place == call:
            raise RAISED[self.fault]()
        if self.place == f"{call} answers":
            return ANSWERS[self.fault](answer)
        if call == "step" and self.place in FIELDS:
            place = FIELDS.index(self.place)
            return (*answer[:place], VALUES[self.fault](), *answer[place + 1 :])
        return answer


def with_property(name, fault):
    """A class of environments whose property raises."""

    def no(self):
        raise RAISED[fault]()

    return type("Faulty", (Faulty,), {name: property(no)})


FAULTS = [
    *((call, fault) for call in ("step", "reset") for fault in RAISED),
    *((f"{call} answers", fault) for call in ("step", "reset") for fault in ANSWERS),
    *((field, fault) for field in FIELDS for fault in VALUES),
]
