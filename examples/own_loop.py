"""Watches a run from a `for` loop: halves its learning rates, and stops early: `python examples/own_loop.py`."""

import sys

import td3


def main(steps: int = 10_000, enough: float = -200.0) -> td3.Training:
    config = td3.Config(env="Pendulum-v1", steps=steps, seed=0)
    with td3.train(config) as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == steps // 4:
                training.change(actor_lr=config.actor_lr / 2, critic_lr=config.critic_lr / 2)
            if isinstance(event, td3.Evaluated):
                print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")
                if event.evaluation.mean >= enough:
                    break  # leaving the `with` block saves a run that has a folder: td3.resume continues it
    return training


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
