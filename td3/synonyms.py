"""Other libraries' names for settings and commands: one table for flags, keywords, `config.json` and the docs."""

import re
from collections.abc import Callable

from td3.wording import letters

# What to do in td3, and the foreign names for it. {name} stands for a setting: shown as a flag or as a keyword.
_SETTINGS = {
    "use {env}": "env_id env_name environment environment_id environment_name gym_id env_fn task game",
    "use {env_args}, or an {env} that is a callable": "env_kwargs env_config make_env",
    "use {steps}": """total_timesteps max_timesteps timesteps num_timesteps n_timesteps train_timesteps max_steps
        num_steps total_steps train_steps training_steps env_steps total_env_steps nb_steps max_train_steps frames
        total_frames num_frames max_frames iterations num_iterations max_iterations budget""",
    "use {steps}: a run's length is counted in environment steps": "epochs num_epochs max_epochs epoch steps_per_epoch",
    "use {steps} for the length of a run, or {eval_episodes} for that of an evaluation": """episodes num_episodes
        n_episodes max_episodes total_episodes train_episodes""",
    "use {n_step} for n-step returns, or {steps} for the length of a run": "n_steps",
    "use {n_step}": "nsteps_return n_step_return n_step_returns multi_step estimation_step num_n_steps",
    "use {seed}": "random_seed rng_seed random_state seeds",
    "use {gamma}": "discount discount_factor discounting discount_rate",
    "use {tau}": "soft_tau soft_update_tau target_tau target_update_rate target_update_tau polyak_tau tau_soft",
    "use {tau}, which is 1 - polyak": "polyak polyak_factor polyak_coef",
    "use {policy_delay}": """policy_freq policy_frequency policy_update_freq policy_update_frequency policy_update_delay
        policy_update_interval actor_delay actor_update_freq actor_update_frequency actor_update_interval
        update_actor_freq delay delay_update""",
    "use {policy_delay}: the targets move with the actor": """target_update_interval target_update_freq
        target_network_frequency target_network_update_freq""",
    "use {target_noise}": "policy_noise target_policy_noise smoothing_noise target_noise_std smooth_noise",
    "use {noise_clip}": "target_noise_clip clip clip_noise noise_clamp policy_noise_clip smoothing_clip noise_limit",
    "use {exploration_noise}": """expl_noise explore_noise exploration_std exploration_sigma action_noise_std
        noise_std gaussian_noise explore_sigma""",
    "use {exploration_noise}, or a class of your own: td3 train has --noise, and td3.train has noise": """action_noise
        action_noise_class noise_class ou_noise exploration_config""",
    "use {exploration_noise}, which counts in half action ranges": "act_noise",
    "use {exploration_noise} for the noise on actions, or {target_noise} for the noise on target actions": """noise
        sigma std noise_sigma noise_scale""",
    "use {warmup_steps}": """learning_starts start_timesteps start_steps warm_up warmup_timesteps
        random_steps random_timesteps initial_random_steps init_random_frames init_random_steps learning_start
        exploration_steps start_learning burn_in prefill num_steps_sampled_before_learning_starts""",
    "use {batch_size}": "batch bs minibatch minibatch_size train_batch_size sample_batch_size",
    "use {buffer_size}": """buffer buffer_capacity buffer_length memory memory_size memory_capacity replay replay_size
        replay_buffer replay_buffer_size replay_capacity replay_memory_size capacity max_size""",
    "use {buffer_size} for the size of the replay memory; td3 train has --sampler, and td3.train has sampler": """
        replay_buffer_class replay_buffer_kwargs replay_buffer_config sampler replay_sampler""",
    "use {sampling}, which is `lap` for prioritised replay": """per lap prioritized prioritised prioritized_replay
        prioritised_replay use_per prioritized_replay_buffer""",
    "use {priority_alpha}": "prioritized_replay_alpha per_alpha",
    "use {priority_floor}": "min_priority",
    "frames of images are stored once anyway": "optimize_memory_usage",
    "use {actor_lr} and {critic_lr}": "lr learning_rate lrs learning_rates step_size adam_lr",
    "use {actor_lr}": "pi_lr policy_lr lr_actor lr_policy actor_learning_rate policy_learning_rate lr_pi",
    "use {critic_lr}": "q_lr qf_lr value_lr lr_critic lr_q critic_learning_rate q_learning_rate value_learning_rate",
    "TD3 learns with Adam, at the rates {actor_lr} and {critic_lr}": "optimizer optimizer_class optim adam_eps",
    "use {hidden}, the units of each layer": """hid l hidden_size hidden_sizes hidden_dim hidden_dims
        hidden_layer hidden_layers hidden_units hidden_nodes layers layer_sizes layer_size num_layers n_layers num_cells
        net nets network network_size fcnet_hiddens units width depth model_config""",
    "use {hidden} for all networks, or {actor_hidden} (pi) and {critic_hidden} (qf)": """net_arch policy_kwargs
        ac_kwargs""",
    "use {actor_hidden}": """pi actor_hidden_size actor_hidden_sizes actor_hidden_dim actor_hidden_dims actor_hiddens
        actor_hidden_units actor_hidden_layers actor_layers actor_net_arch actor_num_cells actor_network actor_net
        policy_hidden policy_hidden_sizes policy_hidden_dims policy_layers pi_hidden pi_hidden_sizes pi_layers""",
    "use {critic_hidden}": """qf critic_hidden_size critic_hidden_sizes critic_hidden_dim critic_hidden_dims
        critic_hiddens critic_hidden_units critic_hidden_layers critic_layers critic_net_arch critic_num_cells
        critic_network critic_net qf_hidden qf_hidden_sizes qf_layers q_hidden q_hidden_sizes q_hiddens
        value_hidden_sizes""",
    "use {hidden} for its size; for a policy of your own td3 train has --learner, and td3.train has learner": """
        policy policy_class policy_type actor_critic actor_class critic_class model learner learner_class""",
    "use {algorithm}, which is td3 or td7": "algo alg agent method",
    "use {embedding_size}": "zs_dim",
    "use {embedding_hidden}": "enc_hdim",
    "use {embedding_lr}": "encoder_lr",
    "use {policy_checkpoints}": "use_checkpoints",
    "use {assessment_episodes}": "max_eps_when_checkpointing",
    "use {assess_longer_after}": "steps_before_checkpointing",
    "use {reward_scale}": "reward_scaling reward_factor scale_reward rew_scale",
    "use {normalize_observations}": """normalize normalise normalize_obs normalise_obs obs_norm norm_obs
        normalise_observations normalize_observation normalize_states state_norm vec_normalize""",
    "use {pixels}": "from_pixels pixel_obs use_pixels visual",
    "use {pixels} to learn from rendered images, or {resize} for images in observations": """image_size img_size
        frame_size""",
    "use {grey}": "gray grayscale greyscale",
    "use {frame_stack}": "stack n_stack num_stack frames_stack stack_frames num_frames_stack stack_size",
    "use {history}": """history_length history_len history_size obs_history observation_history num_history n_history
        obs_horizon n_obs_steps observation_stack obs_stack stack_obs stack_observations state_history""",
    "use {action_repeat}": "frame_skip repeat repeat_action action_repeats skip",
    "use {random_shift}": "augment augmentation random_crop pad image_pad",
    "use {stop_at}": """reward_threshold return_threshold target_return target_reward stop_reward stop_return
        solved_reward solved_at""",
    "use {stop_after}": """patience early_stopping early_stop early_stopping_patience max_no_improvement_evals
        stop_after_evals""",
    "use {updates_per_step}": """gradient_steps grad_steps gradient_updates num_updates n_updates updates utd utd_ratio
        update_to_data replay_ratio num_gradient_steps update_per_step training_intensity""",
    "updates follow every step: see {updates_per_step} and {update_schedule}": """train_freq train_every
        train_interval training_freq update_every update_freq update_frequency update_interval collect_per_step
        step_per_collect""",
    "use {num_envs}": """n_envs envs n_env num_env number_of_envs num_environments n_environments vec_envs
        num_parallel_envs parallel_envs training_num num_train_envs num_envs_per_worker num_envs_per_env_runner""",
    "use {workers}": """num_workers n_workers worker num_processes n_processes processes n_procs num_procs n_jobs
        num_cpus num_cpu cpus num_env_runners num_rollout_workers""",
    "use {worker_timeout}": "timeout env_timeout",
    "use {threads}": "num_threads n_threads torch_threads cores num_cores",
    "use {device}, which is cpu or cuda": "cuda gpu cpu gpus num_gpus use_cuda use_gpu no_cuda gpu_id",
    "use {compile}": "torch_compile use_compile",
    "use {eval_every}": """eval_freq eval_frequency eval_interval eval_period evaluation_interval evaluation_freq
        evaluate_every evaluation_every test_every test_interval test_freq eval_steps eval""",
    "use {eval_episodes}": """n_eval_episodes num_eval_episodes n_eval_eps eval_eps evaluation_episodes
        eval_num_episodes num_test_episodes n_test_episodes test_episodes test_num evaluation_duration num_evals""",
    "use {checkpoint_every}": """checkpoint checkpoint_freq checkpoint_frequency checkpoint_interval checkpoint_steps
        checkpoints save_freq save_frequency save_every save_interval save_steps""",
    "a run with a folder is saved anyway, and {checkpoint_every} says how often": "save save_model save_checkpoint",
    "use {keep_last}": "keep keep_checkpoints max_checkpoints num_to_keep keep_checkpoints_num max_to_keep",
    "use {log_every}": """log_freq log_frequency log_interval logging_interval logging_freq log_steps print_freq
        print_every""",
    "every episode's return is a row of metrics.jsonl": "stats_window_size",
    "use {film}": "video record capture_video record_video save_video videos gif",
    "use {film}, and td3 watch to look at it": "render render_mode rendering display human visualize visualise",
    "td3 resume continues a run, and td3.load opens one": """load load_model load_path load_checkpoint load_from
        resume restore restore_path checkpoint_path model_path pretrained pretrained_model from_checkpoint
        init_checkpoint trained_agent""",
    "td3 train has --run DIR, and td3.train has run": """run run_dir run_name exp exp_name exp_dir experiment
        experiment_name name log_dir log_path log_folder log save_path save_dir output output_dir out out_dir
        folder dir directory results_dir result_dir results model_dir data_dir local_dir logger_kwargs tag""",
    "td3 train has --quiet, and td3.train prints nothing": """quiet verbose verbosity silent progress progress_bar
        show_progress log_level""",
    "td3 train has --watch, and td3 watch shows every run": "watch dashboard live",
    "metrics.jsonl in the run's folder has every metric, and td3 watch shows them": """tensorboard tensorboard_log
        tensorboard_dir tb tb_log logger track wandb use_wandb wandb_project wandb_project_name wandb_entity wandb_name
        mlflow comet neptune""",
    "td3.train is a generator of events: write a for loop": "callback callbacks eval_callback on_step",
    "td3 keeps a run in its folder and uploads nothing": "upload_model hf_entity push_to_hub hub",
    "the same seed gives the same bytes anyway": """torch_deterministic deterministic cudnn_deterministic
        use_deterministic_algorithms""",
    "spaces and bounds are read from the environment": """max_action min_action act_limit action_limit action_bound
        action_bounds action_range action_scale action_low action_high action_dim act_dim action_size n_actions
        state_dim state_size obs_dim obs_size observation_dim observation_space action_space observation_size""",
    "the environment decides when an episode ends: give it a time limit": """horizon max_episode_steps
        max_ep_len max_episode_length episode_length ep_len max_path_length time_limit max_ep_steps""",
    "terminated and truncated steps are always handled separately": """done dones done_mask
        handle_timeout_termination no_done_at_end bootstrap_timeouts timeout_bootstrap""",
    "TD3 clips no gradients": "max_grad_norm grad_clip gradient_clip grad_norm_clip clip_grad grad_norm clip_gradients",
    "that is part of SAC, not of TD3": "alpha ent_coef entropy_coef target_entropy temperature autotune auto_alpha",
    "that is part of PPO, not of TD3": "clip_range clip_coef gae_lambda n_epochs update_epochs vf_coef rollout_steps",
    "td3 train has --config FILE.toml, and td3.Config.load reads one": """config config_file cfg
        config_path settings hyperparams hyperparameters yaml params""",
}  # fmt: skip

# The names in each library, those that td3 has too included.
LIBRARIES = {
    "Stable-Baselines3": """policy env learning_rate buffer_size learning_starts batch_size tau gamma train_freq
        gradient_steps action_noise replay_buffer_class replay_buffer_kwargs optimize_memory_usage n_steps policy_delay
        target_policy_noise target_noise_clip stats_window_size tensorboard_log policy_kwargs net_arch pi qf verbose
        seed device total_timesteps log_interval progress_bar callback n_envs eval_freq n_eval_episodes save_freq""",
    "CleanRL": """exp_name seed torch_deterministic cuda track wandb_project_name wandb_entity capture_video save_model
        upload_model hf_entity env_id total_timesteps learning_rate num_envs buffer_size gamma tau batch_size
        policy_noise exploration_noise learning_starts policy_frequency noise_clip""",
    "Spinning Up": """env_fn actor_critic ac_kwargs hidden_sizes hid l seed steps_per_epoch epochs replay_size gamma
        polyak pi_lr q_lr batch_size start_steps update_after update_every act_noise target_noise noise_clip
        policy_delay num_test_episodes max_ep_len logger_kwargs exp_name save_freq act_limit""",
    "the author's code": """policy env seed start_timesteps eval_freq max_timesteps expl_noise batch_size discount tau
        policy_noise noise_clip policy_freq save_model load_model state_dim action_dim max_action max_size""",
}  # fmt: skip

COMMANDS = {
    "train": "run learn fit start begin new",
    "resume": "continue restart restore load",
    "evaluate": "eval test score predict",
    "evaluate, or watch": "play enjoy render video replay",
    "watch": "tensorboard dashboard show view see serve server ui web gui plot monitor",
    "verify": "validate fsck",
    "check": "inspect describe env spaces",
    "bench": "benchmark speed profile perf",
    "explain": "tutorial demo",
    "study": "sweep grid seeds experiment experiments batch",
    "runs": "list ls",
    "td3 --help": "help usage",
    "td3 --version": "version",
}

VALUES = {
    "device": {"cuda": "gpu nvidia cuda:0 cuda:1"},
    "engine": {"native": "c c++ cpp fast avx2 avx512", "torch": "pytorch python py"},
    "update_schedule": {"step": "steps timestep", "episode": "episodes"},
    "preset": {"author": "default sfujim fujimoto 2019", "paper": "original 2018", "pixels": "image images visual cnn"},
}


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {letters(name): meaning for meaning, names in table.items() for name in names.split()}


_BY_NAME = _by_name(_SETTINGS)
_COMMANDS = _by_name(COMMANDS)
_VALUES = {setting: _by_name(values) for setting, values in VALUES.items()}


def instead_of(name: str, show: Callable[[str], str] = str) -> str:
    """Says what td3 has for another library's setting, each of ours as `show` writes it; '' for an unknown name."""
    return re.sub(r"\{(\w+)\}", lambda match: show(match[1]), _BY_NAME.get(letters(name), ""))


def command_for(word: str) -> str:
    """Names the command of td3 that does what is asked for, or ''."""
    return _COMMANDS.get(letters(word), "")


def value_for(setting: str, value: str) -> str:
    """Names the value of a setting that is meant by another word for it, or ''."""
    return _VALUES.get(setting, {}).get(letters(value), "")
