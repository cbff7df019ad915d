"""The names of all metrics with their meanings: `metrics.jsonl`, the terminal and the web page use these."""

# What an update reports, in the order of `Update.means`; the record keeps the mean over the updates since the last row.
MEANS = ("critic_loss", "actor_loss", "q1_mean", "q2_mean", "target_mean")
DELAYED = ("actor_loss",)  # those that exist only where the actor learned too

METRICS = {  # numbers that can be plotted
    "eval/discounted_return": "mean discounted return of an evaluation's episodes, to compare with eval/predicted_q",
    "eval/mean_return": "mean return of an evaluation's episodes, played without noise",
    "eval/predicted_q": "mean of what the first critic predicts for the first action of each episode of an evaluation",
    "eval/std_return": "standard deviation of the returns of an evaluation's episodes",
    "rollout/ep_length": "steps of a training episode, played with exploration noise",
    "rollout/ep_return": "return of a training episode: the plain sum of its rewards",
    "time/steps_per_second": "environment steps per second since the last row, without evaluations",
    "time/updates_per_second": "updates per second since the last row, without evaluations",
    "train/actor_loss": "minus the mean value that the first critic gives to the actor's actions, in delayed updates",
    "train/critic_loss": "sum of both critics' mean squared errors",
    "train/q1_mean": "mean value that the first critic gives to the stored actions",
    "train/q2_mean": "mean value that the second critic gives to the stored actions",
    "train/target_mean": "mean target of both critics",
}
OTHERS = {  # lists and indices, and what not every run has
    "eval/lengths": "steps of each episode of an evaluation",
    "eval/returns": "return of each episode of an evaluation",
    "rollout/env": "index of the environment that the training episode was played in",
    "rollout/failures": "environments that failed and were made anew so far (`restart_failed`), evaluations included",
}
