"""PPO in PyTorch with CleanRL's published settings of ppo_atari_envpool; prints steps/s as JSON.

No installable package holds that script (the cleanrl package, 0.4.8, has nothing with EnvPool), so
the loop is ours and the settings are CleanRL's: Breakout-v5 of EnvPool, its NatureCNN, its
hyper-parameters, and what it computes at each step. Runs in an environment of its own, with torch
and envpool installed.
"""

import argparse
import json
import time
from importlib.metadata import version

import envpool
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

GAMES = 8
STEPS = 128
MINIBATCHES = 4
EPOCHS = 4
LEARNING_RATE = 2.5e-4
GAMMA = 0.99
LAMBDA = 0.95
CLIP = 0.1
ENTROPY_COEF = 0.01
VALUE_COEF = 0.5
MAX_GRAD_NORM = 0.5
SEED = 1
PACKAGES = ("envpool", "torch", "gymnasium", "numpy")


def orthogonal(layer: nn.Module, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """NatureCNN, shared by the policy and the value."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            orthogonal(nn.Conv2d(4, 32, 8, stride=4)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(32, 64, 4, stride=2)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(64, 64, 3, stride=1)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(64 * 7 * 7, 512)),
            nn.ReLU(),
        )
        self.policy = orthogonal(nn.Linear(512, actions), 0.01)
        self.critic = orthogonal(nn.Linear(512, 1), 1.0)

    def value(self, frames: torch.Tensor) -> torch.Tensor:
        return self.critic(self.trunk(frames / 255.0)).flatten()

    def forward(self, frames: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        hidden = self.trunk(frames / 255.0)
        return Categorical(logits=self.policy(hidden)), self.critic(hidden).flatten()


class Rollout:
    """The games, and the last 128 steps of each."""

    def __init__(self, env_name: str) -> None:
        self.env = envpool.make(
            env_name,
            env_type="gymnasium",
            num_envs=GAMES,
            episodic_life=True,
            reward_clip=True,
            seed=SEED,
        )
        self.frames = torch.zeros(STEPS, GAMES, *self.env.observation_space.shape)
        self.actions = torch.zeros(STEPS, GAMES, dtype=torch.long)
        self.log_probs, self.rewards, self.dones, self.values = torch.zeros(4, STEPS, GAMES)
        self.returns = np.zeros(GAMES, np.float32)
        self.next_frames = torch.tensor(self.env.reset()[0], dtype=torch.float32)
        self.next_done = torch.zeros(GAMES)

    def collect(self, agent: Agent) -> None:
        for step in range(STEPS):
            self.frames[step], self.dones[step] = self.next_frames, self.next_done
            with torch.no_grad():
                policy, self.values[step] = agent(self.next_frames)
                self.actions[step] = action = policy.sample()
                self.log_probs[step] = policy.log_prob(action)
                policy.entropy()  # Its forward pass computes it also where nothing uses it.
            frames, reward, ended, cut, info = self.env.step(action.numpy())
            done = ended | cut
            self.returns = (self.returns + info["reward"]) * ~done
            self.rewards[step] = torch.tensor(reward)
            self.next_frames = torch.tensor(frames, dtype=torch.float32)
            self.next_done = torch.tensor(done, dtype=torch.float32)

    @torch.no_grad()
    def advantages(self, agent: Agent) -> torch.Tensor:
        """[STEPS, GAMES], by generalised advantage estimation."""
        found = torch.zeros_like(self.rewards)
        next_value, alive, last = agent.value(self.next_frames), 1 - self.next_done, 0.0
        for step in reversed(range(STEPS)):
            delta = self.rewards[step] + GAMMA * next_value * alive - self.values[step]
            found[step] = last = delta + GAMMA * LAMBDA * alive * last
            next_value, alive = self.values[step], 1 - self.dones[step]
        return found


def loss_of(
    agent: Agent, batch: dict[str, torch.Tensor], chosen: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """The clipped PPO loss of a minibatch, and what is watched of it."""
    part = {name: values[chosen] for name, values in batch.items()}
    policy, value = agent(part["frames"])
    log_ratio = policy.log_prob(part["actions"]) - part["log_probs"]
    ratio = log_ratio.exp()
    with torch.no_grad():
        far = ((ratio - 1).abs() > CLIP).float().mean()
        watched = torch.stack([(ratio - 1 - log_ratio).mean(), far])
    advantage = part["advantages"]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    near = part["values"] + (value - part["values"]).clamp(-CLIP, CLIP)
    errors = torch.max((value - part["returns"]) ** 2, (near - part["returns"]) ** 2)
    value_loss = 0.5 * errors.mean()
    entropy = policy.entropy().mean()
    return policy_loss - ENTROPY_COEF * entropy + VALUE_COEF * value_loss, watched


def learn(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout) -> None:
    advantages = rollout.advantages(agent)
    columns = {
        "frames": rollout.frames,
        "actions": rollout.actions,
        "log_probs": rollout.log_probs,
        "values": rollout.values,
        "advantages": advantages,
        "returns": advantages + rollout.values,
    }
    batch = {name: column.flatten(0, 1) for name, column in columns.items()}
    order = np.arange(STEPS * GAMES)
    for _ in range(EPOCHS):
        np.random.shuffle(order)
        for chosen in np.split(order, MINIBATCHES):
            loss, watched = loss_of(agent, batch, chosen)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
            optimizer.step()
            watched.tolist()  # It reads them at every minibatch.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-name", default="Breakout-v5")
    parser.add_argument("--updates", type=int, default=6)
    arguments = parser.parse_args()
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    rollout = Rollout(arguments.env_name)
    agent = Agent(rollout.env.action_space.n)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    ends = []
    for update in range(arguments.updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / arguments.updates)
        rollout.collect(agent)
        learn(agent, optimizer, rollout)
        ends.append(time.perf_counter())
    rollout.env.close()
    rate = STEPS * GAMES * (len(ends) - 1) / (ends[-1] - ends[0])
    versions = {name: version(name) for name in PACKAGES}
    print(json.dumps({"steps_per_s": rate, "versions": versions}))


if __name__ == "__main__":
    main()
