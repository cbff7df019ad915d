"""Brings networks of its own: critics with layer normalisation.

Run it with `python examples/own_networks.py`, or
`td3 train Pendulum-v1 --learner examples.own_networks:NormalisedCritics`.
Other sizes need no code: `--actor-hidden 64,64 --critic-hidden 256,256`.
"""

from torch import nn

import td3


class NormalisedCritics(td3.Learner):
    """TD3 whose critics normalise what each hidden layer computes."""

    def make_critics(self, encoder, generator):
        critics = super().make_critics(encoder, generator)
        layers = []
        for layer in critics.layers:
            if isinstance(layer, nn.ReLU):
                layers.append(nn.LayerNorm(layers[-1].bias.shape[-1], elementwise_affine=False))
            layers.append(layer)
        critics.layers = nn.Sequential(*layers)
        return critics


if __name__ == "__main__":
    for event in td3.train(td3.Config(env="Pendulum-v1", steps=10_000), learner=NormalisedCritics):
        if isinstance(event, td3.Evaluated):
            print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")
