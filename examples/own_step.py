"""Changes one step of the algorithm: the mean of both critic targets instead of the smaller one (step 8).

Run it with `python examples/own_step.py`, or `td3 train Pendulum-v1 --learner examples.own_step:MeanTarget`.
"""

import td3


class MeanTarget(td3.Learner):
    """TD3 whose targets trust both critics equally."""

    def target(self, batch, noise):
        next_action, next_q1, next_q2, *_ = super().target(batch, noise)
        next_q = (next_q1 + next_q2) / 2
        target = batch.reward + batch.discount * (1 - batch.terminated) * next_q
        return td3.Targets(next_action, next_q1, next_q2, next_q, target)


if __name__ == "__main__":
    for event in td3.train(td3.Config(env="Pendulum-v1", steps=10_000), learner=MeanTarget):
        if isinstance(event, td3.Evaluated):
            print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")
