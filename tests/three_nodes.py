"""A Ray cluster of a head and two nodes on this machine: `python three_nodes.py FOLDER`.

Prints the address; `lose N` on standard input ends all processes of node N (1 or 2) with SIGKILL, the end of the input
ends the cluster. Everything listens on loopback.
"""

import os
import sys
from pathlib import Path

from td3.scale.rays import ON_LOOPBACK, QUIET
from td3.scale.runner import FOLDER
from td3.scale.watcher import Watcher


def main(folder: str) -> None:
    watcher = Watcher(Path(folder))
    os.environ.update(
        {**ON_LOOPBACK, **QUIET, FOLDER: folder, "RAY_TMPDIR": folder, "RAY_memory_monitor_refresh_ms": "0"}
    )
    from ray.cluster_utils import Cluster

    shared = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **shared})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=shared["object_store_memory"]) for _ in range(2)]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.startswith("lose "):
            cluster.remove_node(nodes[int(line.split()[1]) - 1], allow_graceful=False)
            print("lost", flush=True)
    watcher.end()


if __name__ == "__main__":
    main(sys.argv[1])
