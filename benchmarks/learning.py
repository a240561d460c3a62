"""How long an induction head takes to form in the app, beside the same training in plain torch.

``python -m benchmarks.learning [--seeds 10] [--json FILE]``; alone on the machine, or it measures its neighbours. The
page is open and its process has started, as for whoever presses Start.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks import chromium
from benchmarks.browser import APP, server

GOAL = 2.5
REDRAWS = 5.0  # a second

# Press Start, and note when each moment is drawn until the best induction head passes 0.5.
WATCH = """root => new Promise((done) => {
  const begun = performance.now()
  const steps = []
  const look = () => {
    const text = root.querySelector(".vf-amount").textContent
    const step = Number(text.match(/\\d+/)?.[0] ?? -1)
    if (step >= 0 && steps.at(-1)?.[0] !== step) steps.push([step, performance.now() - begun])
    const score = Number([...root.querySelectorAll(".vf-learn-key")].at(-1)?.textContent.match(/[\\d.]+$/)?.[0] ?? 0)
    const isOver = root.dataset.state === "failed" || performance.now() - begun > 120000
    if (steps.length && (score > 0.5 || isOver)) return done({ steps, passed: score > 0.5 })
    requestAnimationFrame(look)
  }
  root.querySelector(".vf-play").click()
  requestAnimationFrame(look)
})"""


def plain(seed: int, steps: int) -> float:
    """Return the seconds of the same training in plain torch: same weights, batches and optimizer, nothing recorded."""
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F

    from visformer.adapters.learning.recipe import Recipe
    from visformer.adapters.learning.tasks import NOTHING, TASKS
    from visformer.adapters.learning.training import WARM_UP, Training

    torch.set_num_threads(1)
    ours = Training(Recipe(seed=seed)).module.state_dict()

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(66, 64), nn.Parameter(torch.empty(33, 64))
            self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(3))
            self.maps = nn.ModuleList(nn.Linear(64, 64) for _ in range(8))
            self.output = nn.Linear(64, 66, bias=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.token(ids) + self.position[: ids.shape[1]]
            for layer in range(2):
                y, maps = self.norms[layer](x), self.maps[4 * layer : 4 * layer + 4]
                q, k, v = (each(y).unflatten(-1, (4, 16)).transpose(1, 2) for each in maps[:3])
                heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + maps[3](heads.transpose(1, 2).flatten(2))
            return self.output(self.norms[2](x))

    model, state = Plain(), {"token.weight": "embedding.token.weight", "position": "embedding.position"}
    state |= {"output.weight": "output.weight"}
    for layer in range(2):
        for i, name in enumerate("qkvo"):
            state |= {
                f"maps.{4 * layer + i}.{w}": f"decoder.layers.{layer}.self_attn.w_{name}.{w}"
                for w in ("weight", "bias")
            }
        state |= {f"norms.{layer}.{w}": f"decoder.layers.{layer}.norm_self.{w}" for w in ("weight", "bias")}
    state |= {f"norms.2.{w}": f"decoder.norm.{w}" for w in ("weight", "bias")}
    model.load_state_dict({name: ours[other] for name, other in state.items()})
    rate = TASKS["repeat"].variants["drawn"].rate
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    rng, begun = np.random.default_rng([seed, 1]), time.perf_counter()
    for step in range(1, steps + 1):
        batch = TASKS["repeat"].sequences.batch(rng)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / WARM_UP)
        logits = model(torch.from_numpy(batch.ids))
        loss = F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(batch.targets).flatten(), ignore_index=NOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - begun


def in_the_app(page: Any, address: str, seed: int) -> dict[str, Any]:
    """Return when each moment was drawn after Start, until the induction score passed 0.5."""
    page.goto(f"{address}/learning?learning_seed={seed}")
    page.locator(".vf-learning[data-state=idle] .vf-play").wait_for()
    page.wait_for_timeout(5000)  # the process has started
    found: dict[str, Any] = page.locator(".vf-learning").evaluate(WATCH)
    return found


def measured(seeds: int) -> list[dict[str, float]]:
    """Measure both, alternately, for each seed."""
    rows = []
    with server(APP) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        page = browser.new_page()
        for seed in range(seeds):
            found = in_the_app(page, address, seed)
            times = [at / 1000 for _step, at in found["steps"]]
            step, seconds = found["steps"][-1][0], times[-1]
            command = f"from benchmarks.learning import plain; print(plain({seed}, {step}))"
            told = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
            other = float(told.stdout)
            redraws = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
            row = {"seed": seed, "passed": float(found["passed"]), "step": step, "app": seconds, "plain": other}
            rows.append({**row, "ratio": seconds / other, "redraws": redraws})
            print("  ".join(f"{name} {value:g}" for name, value in rows[-1].items()), flush=True)
        browser.close()
    return rows


def main() -> None:
    """Measure, print, and save if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}")
    rows = measured(options.seeds)
    met = sum(row["passed"] > 0 and row["ratio"] <= GOAL for row in rows)
    ratio = statistics.median(row["ratio"] for row in rows)
    print(f"{met} of {len(rows)} seeds pass 0.5 within {GOAL} times plain torch; median ratio {ratio:.2f}")
    print(f"redraws a second, at least: {min(row['redraws'] for row in rows):.1f} (goal {REDRAWS:g})")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
