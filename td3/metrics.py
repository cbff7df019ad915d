"""The names of all metrics with their meanings: `metrics.jsonl`, the terminal and the web page use these."""

# What an update tells, in the order of `Update.means`; the record keeps the mean over the updates since the last row.
MEANS = ("critic_loss", "actor_loss", "q1_mean", "q2_mean", "target_mean")
DELAYED = ("actor_loss",)  # those that exist only where the actor learned too

METRICS = {  # numbers that can be plotted
    "eval/discounted_return": "mean discounted return of the evaluation's episodes, to compare with predicted_q",
    "eval/mean_return": "mean return of the episodes of an evaluation, played without noise",
    "eval/predicted_q": "mean of the first critic's value of the first step of each of these episodes",
    "eval/std_return": "standard deviation of these returns",
    "rollout/ep_length": "steps of an episode that ended while training",
    "rollout/ep_return": "its return, the plain sum of its rewards",
    "time/steps_per_second": "environment steps per second since the last row, without evaluations",
    "time/updates_per_second": "updates per second since the last row, without evaluations",
    "train/actor_loss": "mean of minus the first critic's value of the actor's actions, over the updates that moved it",
    "train/critic_loss": "mean of both critics' squared errors, added up",
    "train/q1_mean": "mean value of the first critic for the stored actions",
    "train/q2_mean": "mean value of the second critic for the stored actions",
    "train/target_mean": "mean target of the critics",
}
OTHERS = {  # lists and indices
    "eval/lengths": "steps of each episode of an evaluation",
    "eval/returns": "return of each of them",
    "rollout/env": "index of the environment whose episode ended",
}
