"""A Ray cluster for all tests that need one: to begin it takes longer than most of them."""

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head without cores, as the server's machine, and two nodes with one core each.

    Their processes would use two threads, as on a machine where somebody has set that.
    """
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "2"}
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for name in ("a", "b"):
        nodes.add_node(num_cpus=1, resources={name: 1})
    nodes.wait_for_nodes()
    del os.environ["OMP_NUM_THREADS"]
    os.environ |= {k: v for k, v in before.items() if k == "OMP_NUM_THREADS"}
    yield nodes
    nodes.shutdown()
