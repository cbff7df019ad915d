"""Writes `docs/metrics.md` from the one home of all names and meanings of metrics, `td3.metrics`."""

from pathlib import Path

from td3.metrics import METRICS, OTHERS

HEAD = """# Metrics

A run writes `metrics.jsonl`: one JSON object per line, appended while it trains. Every line has `step`, the number of
environment steps so far, and the columns of one kind:

```
{"step":7,"rollout/ep_return":6.0,"rollout/ep_length":7,"rollout/env":0}
{"step":1250,"train/critic_loss":0.226,"train/actor_loss":-0.876,"train/q1_mean":0.866, … "time/steps_per_second":543.6}
{"step":5000,"eval/mean_return":61.2,"eval/std_return":3.82,"eval/returns":[57.0,67.0,58.0, … ], … }
```

- `rollout/`: a line for each episode that ends.
- `train/` and `time/`: a line every `log_every` steps; `train/` are means over the updates since the line before.
- `eval/`: a line for each evaluation, every `eval_every` steps.
- `changed`: a line where settings changed, by `td3 resume RUN --actor-lr 1e-4` or by `training.change`.
- `stopped`: a line where the run [stopped by itself](runs.md#runs-that-stop-by-themselves).

A number that is not finite is written as `null`. In Python:

```python
import numpy as np

import td3

columns = td3.read_metrics("runs/cheetah")  # NumPy arrays of equal length; NaN where a line has nothing
evaluated = ~np.isnan(columns["eval/mean_return"])
steps, returns = columns["step"][evaluated], columns["eval/mean_return"][evaluated]
```

With pandas, `pandas.DataFrame(td3.read_metrics("runs/cheetah"))`. Lists and texts, such as `eval/returns`, are in the
file alone. For a spreadsheet, and to see the newest of each:

```console
$ td3 metrics runs/cheetah --csv   # on stdout: … > cheetah.csv
$ td3 metrics runs/cheetah
```

`td3 watch` [plots](watching.md) them. In a [`for` loop](../README.md#in-python) over `td3.train`, the events
`Measured`, `EpisodeEnded` and `Evaluated` have the same names and numbers in `event.metrics`.

The table is made from [`td3/metrics.py`](../td3/metrics.py) by `python docs/metrics.py`.

| column | meaning |
| --- | --- |
"""


def page() -> str:
    """Return the document."""
    return HEAD + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in sorted({**METRICS, **OTHERS}.items()))


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(page())
