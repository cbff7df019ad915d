"""The names of all metrics with their meanings: `metrics.jsonl`, the terminal and the web page use these."""

# What an update reports, in the order of `Update.means`; the record keeps the mean over the updates since the last row.
MEANS = ("critic_loss", "actor_loss", "q1_mean", "q2_mean", "target_mean")
DELAYED = ("actor_loss",)  # those that exist only where the actor learned too

AT_AN_END = 0.99  # an action as large as this is at its bound: tanh has hardly a slope left there

METRICS = {  # numbers that can be plotted
    "eval/discounted_return": "mean discounted return of an evaluation's episodes, to compare with eval/predicted_q",
    "eval/late_share": "share of the rewards' size that comes in the last tenth of an evaluation's episodes",
    "eval/mean_return": "mean return of an evaluation's episodes, played without noise",
    "eval/predicted_q": "mean of what the first critic predicts for the first action of each episode of an evaluation",
    "eval/std_return": "standard deviation of the returns of an evaluation's episodes",
    "eval/value_error": "mean of eval/predicted_q minus the discounted return, what a truncated end cuts off included",
    "health/actor_gradient": "length of Adam's running mean of the actor's gradient",
    "health/dead_units": "share of units that no remembered state activates, in the hidden layer where it is largest",
    "health/image_change": "share of an image's bytes that changed at all in the newest rows",
    "health/one_end": "share of the actor's actions at one end of their range, in the dimension where it is largest",
    "health/q_size": "mean size of the first critic's values of remembered transitions",
    "health/residual_variance": "variance of the critics' errors over the variance of their targets",
    "health/reward_mean": "mean reward of the newest rows, as the environment gave them",
    "health/reward_size": "largest size of a reward in the newest rows",
    "health/reward_std": "standard deviation of the rewards of the newest rows",
    "health/target_std": "standard deviation of the critics' targets of remembered transitions",
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
CHANGED, STOPPED, FAILED = "changed", "stopped", "failed"
OTHERS = {  # lists, indices and texts, and what not every run has
    CHANGED: "settings that changed at this step, each with its value before and after",
    "eval/lengths": "steps of each episode of an evaluation",
    "eval/returns": "return of each episode of an evaluation",
    "eval/unfinished": "steps after which an evaluation was given up: an episode did not end",
    "eval/value_errors": "the eval/value_error of each episode of an evaluation",
    FAILED: "why the run ended at this step: an environment that failed, or networks that diverged",
    "finding": "what the diagnosis found at this step: a name, what was seen, what to try first",
    "health/action_high": "95th percentile of the actor's actions on remembered states, in each dimension",
    "health/action_low": "5th percentile of the actor's actions on remembered states, in each dimension",
    "health/dead_layers": "share of units that no remembered state activates, by hidden layer",
    "health/high_end": "share of the actor's actions at the upper end, in each dimension",
    "health/low_end": "share of the actor's actions at the lower end, in each dimension",
    "health/observation_high": "largest value of each number of the observation, in the newest rows",
    "health/observation_low": "smallest value of each number of the observation, in the newest rows",
    "health/observation_mean": "mean of each number of the observation, in the newest rows",
    "health/observation_parts": "name and size of each part of the observation, if there are several",
    "health/observation_std": "standard deviation of each number of the observation, in the newest rows",
    "health/reward_ends": "smallest and largest reward of the newest rows",
    "health/reward_mode": "the most frequent reward of the newest rows, and how often it came",
    "health/reward_range": "5th and 95th percentile of the rewards of the newest rows",
    "health/rows": "newest rows that the health/ statistics are made of",
    "probe/actions_matter": "whether other actions led to other observations or rewards, from the same seed",
    "probe/ignored": "dimensions of the action that changed nothing",
    "probe/narrow": "dimensions of the action in which a tenth of the range does the same as the whole",
    "probe/time_limit": "steps after which the environment truncates an episode, if that is known",
    "probe/reproducible": "whether the same seed and actions led to the same observations and rewards",
    "rollout/env": "index of the environment that the training episode was played in",
    "rollout/terminated": "whether the training episode terminated; if not, it was truncated",
    STOPPED: "why the run stopped by itself at this step",
    "rollout/failures": "environments that failed and were made anew so far (`restart_failed`), evaluations included",
}
