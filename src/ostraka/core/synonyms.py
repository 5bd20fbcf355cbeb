"""What other libraries and papers call the settings of a run: names that no one takes here, so that
an error can say which of ours is meant.
"""

import re

_OURS = {
    "parties": "clients users participants institutions client_num_in_total total_clients",
    "rounds": "comm_round comm_rounds communication_rounds global_rounds global_epochs "
    "server_rounds",
    "local.epochs": "epochs epoch ep local_epochs local_ep client_epochs",
    "local.lr": "lr learning_rate local_lr client_lr eta",
    "local.batch": "batch batch_size bs local_bs local_batch_size train_batch_size",
    "local.momentum": "momentum",
    "local.weight_decay": "weight_decay wd l2",
    "local.optimiser": "optimiser optimizer opt",
    "local.schedule": "schedule scheduler lr_scheduler lr_schedule",
    "local.late_rate": "lr_decay learning_rate_decay decay",
    "fraction": "frac fraction_fit fraction_train client_fraction participation "
    "participation_rate sample_rate join_ratio clients_per_round client_num_per_round",
    "dp.epsilon": "epsilon dp_epsilon target_epsilon",
    "dp.delta": "delta dp_delta target_delta",
    "method": "method algorithm algo strategy aggregation",
    "data": "dataset dataset_name data_name",
    "data_dir": "data_path data_root root dataroot dataset_dir dataset_path",
    "net": "model model_name arch architecture network backbone",
    "objective": "loss loss_fn criterion",
    "device": "gpu gpus gpu_id cuda use_cuda no_cuda",
    "workers": "jobs processes threads",
    "seeds": "runs repeats repetitions trials",
    "seed": "random_seed random_state manual_seed",
    "out": "output output_dir outdir out_dir save_dir save_path log_dir logdir results_dir",
    "partition": "partitioning partitioner partition_method split noniid non_iid",
    "partition=dirichlet:ALPHA": "alpha dirichlet dirichlet_alpha dir_alpha beta",
    "partition=labels:K": "shards classes_per_client class_per_client labels_per_client",
    "partition=iid": "iid",
    "config": "config_file cfg",
    "resume": "checkpoint resume_from load",
    "eval_every": "eval_interval test_every eval_freq frequency_of_the_test",
}
_MEANT = {word: ours for ours, words in _OURS.items() for word in words.split()}


def ours(word: str) -> str:
    """Our name of the setting that others call `word`, as `local.lr` or `partition=labels:K`;
    empty when there is none. Words that count (`--num-clients`) are taken for what they count.
    """
    plain = word.lstrip("-").casefold().replace("-", "_")
    counted = re.sub(r"^(num(ber_of)?|nb|n|no_of|total)_", "", plain)
    named = counted if counted in _OURS else ""
    return _MEANT.get(plain) or _MEANT.get(counted) or (named if counted != plain else "")
