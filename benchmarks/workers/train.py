"""One training run of ours through the command's own code; prints steps/s as JSON."""

import argparse
import json
import tempfile
from importlib.metadata import version
from pathlib import Path

from fl_saliency.cli.common import start_tensorflow
from fl_saliency.experiments.configs import TrainConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--env-name", default="BreakoutNoFrameskip-v4")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--precision", default="float32")
    arguments = parser.parse_args()
    start_tensorflow()
    from fl_saliency.experiments.training import train
    from fl_saliency.logs.readers import read_progress

    batch = 128 * arguments.num_envs
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            network=arguments.network,
            env_name=arguments.env_name,
            num_timesteps=batch * arguments.updates,
            num_envs=arguments.num_envs,
            precision=arguments.precision,
            output_dir=Path(folder) / "run",
        )
        log = read_progress(train(config).progress)
    # The first update holds the compilation; time_elapsed counts everything, logging too.
    seconds = log["time_elapsed"].iloc[-1] - log["time_elapsed"].iloc[0]
    found = {
        "steps_per_s": batch * (len(log) - 1) / seconds,
        "seconds": seconds,
        "versions": {name: version(name) for name in ("tensorflow", "ale-py", "numpy")},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
