"""On two nodes an atlas is what it is in this process, bit for bit, whatever dies in the middle."""

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest
from ray.cluster_utils import Cluster

from tests.support import tiny_gpt
from visformer.analysis.atlas import Atlas, Data, build, on_ray
from visformer.analysis.atlas.on_ray import Job
from visformer.errors import DataError, VisformerError

WORDS = "I went to school . She likes the school .".split()
N_SHARDS, EFFECTS = 16, 7


def slow_gpt():
    """Return a model that takes a while for each shard, so that something can die in it."""
    model = tiny_gpt()
    trace_many = model.trace_many

    def slow(*arguments, **keywords):
        time.sleep(0.5)
        return trace_many(*arguments, **keywords)

    model.trace_many = slow
    return model


@pytest.fixture
def cluster():
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()


@pytest.fixture
def data(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "texts.txt"
    path.write_text("".join(" ".join(rng.choices(WORDS, k=8)) + "\n" for _ in range(5 * N_SHARDS)))
    return Data(str(path))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet"))}


def nothing(_cluster):
    """Let all live."""


def kill_a_worker(_cluster):
    workers = [each.pid for each in psutil.process_iter() if "MapWorker" in " ".join(each.cmdline())]
    ours = [pid for pid in workers if psutil.Process(pid).username() == psutil.Process().username()]
    os.kill(ours[0], signal.SIGKILL)


def kill_a_node(cluster):
    (node,) = cluster.worker_nodes
    cluster.remove_node(node, allow_graceful=False)


def kill_both(cluster):
    kill_a_worker(cluster)
    kill_a_node(cluster)


@pytest.mark.parametrize("accident", [nothing, kill_a_worker, kill_a_node, kill_both])
def test_the_result_is_that_of_one_process(accident, cluster, data, tmp_path):
    seen = []

    def progress(_rows, _computed):
        seen.append(time.monotonic())
        if len(seen) == 3:
            accident(cluster)

    engine = on_ray.on_ray(Job(slow_gpt, data, None), address=cluster.address, workers=2)
    silenced = []
    arguments = {"shard": 5, "effects": EFFECTS}
    told = {"progress": progress, "silencing": lambda *count: silenced.append(count)}
    build(tiny_gpt(), data, tmp_path / "ray", engine=engine, **told, **arguments)
    build(tiny_gpt(), data, tmp_path / "local", **arguments)
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert len(seen) == N_SHARDS
    assert silenced == [(done, EFFECTS) for done in range(1, EFFECTS + 1)]


def test_a_driver_that_died_is_followed_by_one_that_goes_on(cluster, data, tmp_path):
    class Died(Exception):
        pass

    def dies(rows, _computed):
        raise Died

    engine = on_ray.on_ray(Job(tiny_gpt, data, None), address=cluster.address, workers=1)
    with pytest.raises(Died):
        build(tiny_gpt(), data, tmp_path / "out", shard=5, engine=engine, progress=dies)
    assert len(files(tmp_path / "out")) == 1
    counted = []
    build(tiny_gpt(), data, tmp_path / "out", shard=5, engine=engine, progress=lambda *count: counted.append(count))
    assert counted.count((5, True)) == N_SHARDS - 1
    assert Atlas.read(tmp_path / "out").heads["texts"].max() == 5 * N_SHARDS


def test_what_ends_a_run_is_said_in_one_line(cluster, data, tmp_path):
    Path(data.source).write_text(Path(data.source).read_text() + "school " * 50)
    engine = on_ray.on_ray(Job(tiny_gpt, data, None), address=cluster.address, workers=1)
    with pytest.raises(DataError, match=f"line {5 * N_SHARDS + 1}: The text is 51 tokens long"):
        build(tiny_gpt(), data, tmp_path / "out", shard=5, engine=engine, strict=True)
    too_many = on_ray.on_ray(Job(tiny_gpt, data, None), address=cluster.address, workers=3)
    with pytest.raises(VisformerError, match="3 workers of 1 threads need 3 CPUs: the cluster has 2"):
        build(tiny_gpt(), data, tmp_path / "other", shard=5, engine=too_many)
    with pytest.raises(VisformerError, match="cannot read standard input"):
        on_ray.on_ray(Job(tiny_gpt, Data("-"), None))


def test_a_cluster_without_a_running_worker_ends_with_the_reason(cluster, data, tmp_path, monkeypatch):
    """Such as one whose CPUs are on nodes with too few of them each."""
    monkeypatch.setattr(on_ray, "PATIENCE", 15.0)
    engine = on_ray.on_ray(Job(tiny_gpt, data, None), address=cluster.address, workers=1, threads=2)
    with pytest.raises(VisformerError, match="No worker has run for 15 seconds; 2 CPUs are in the cluster"):
        build(tiny_gpt(), data, tmp_path / "out", shard=5, engine=engine)
