"""Response times learnt from randomised places: what local privacy of places costs a model.

The columns are those of the published table (Arcolezi et al., ambulance response times under geo-indistinguishability):
errors of models that learn from randomised places and predict for true ones, how many incidents change their areas, the
mean distance to the station, and its correlation with the response time. Beside them stand two remedies, because a
distance with noise in it makes its own effect look smaller (errors in variables).

    python study.py                       a made-up city
    python study.py --csv incidents.csv   your own
"""

import argparse
import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from incidents import Floats, Incidents, from_csv, made_up_city
from models import FIGURES, models
from places import Budget, Map, areas_of, expected, randomised

BUDGETS = (Budget(log(3), 200), Budget(log(3), 400), Budget(log(2), 600), Budget(log(2), 800), Budget(log(2), 1000))


def features(incidents: Incidents, far: Floats, x: Floats, y: Floats) -> Floats:
    """What models see: the distance, the place, and what is known to everybody."""
    return np.column_stack([far / 1000, x / 1000, y / 1000, *incidents.known.values()])


def study(
    incidents: Incidents, budgets: tuple[Budget, ...] = BUDGETS, seed: int = 0, test: float = 0.2
) -> list[dict[str, Any]]:
    """A record for each budget, the first without noise: facts about the places, and the errors of every model."""
    order = np.random.default_rng(seed).permutation(len(incidents))
    held_out = round(len(incidents) * test)
    train, unseen = incidents.some(np.sort(order[held_out:])), incidents.some(np.sort(order[:held_out]))
    around = Map.around(incidents)
    true, true_unseen = (features(part, _far(part, part.x, part.y), part.x, part.y) for part in (train, unseen))
    found = [
        {
            "eps_per_metre": None,
            **_facts(incidents, incidents.x, incidents.y),
            "models": {
                name: _errors(model(true, train.minutes, true_unseen), unseen) for name, model in models(seed).items()
            },
        }
    ]
    for place, budget in enumerate(budgets):
        noisy, noisy_unseen = (
            _reported(part, around, budget, 2 * place + which + 1) for which, part in enumerate((train, unseen))
        )
        mean = features(train, *expected(train, noisy[0], around, budget))
        learnt = {}
        for name, model in models(seed).items():
            plain = model(noisy[1], train.minutes, true_unseen)
            learnt[name] = {
                **_errors(plain, unseen),
                "expected_distance": _errors(model(mean, train.minutes, true_unseen), unseen),
                "noise_at_test_time": _errors(model(noisy[1], train.minutes, noisy_unseen[1]), unseen),
            }
        x, y = around.centres(noisy[0])
        found.append({"eps_per_metre": budget.per_metre, **_facts(train, x, y), "models": learnt})
    return found


def _reported(part: Incidents, around: Map, budget: Budget, seed: int) -> tuple[Any, Floats]:
    cells = randomised(part, around, budget, seed)
    x, y = around.centres(cells)
    return cells, features(part, _far(part, x, y), x, y)


def _far(part: Incidents, x: Floats, y: Floats) -> Floats:
    return np.hypot(x - part.station_x, y - part.station_y)


def _facts(part: Incidents, x: Floats, y: Floats) -> dict[str, Any]:
    far = _far(part, x, y)
    moved = areas_of(part, x, y)
    return {
        "reassigned": {name: float(np.mean(moved[name] != column)) for name, column in part.areas.items()},
        "mean_distance_km": float(far.mean() / 1000),
        "correlation": float(np.corrcoef(far, part.minutes)[0, 1]),
    }


def _errors(predicted: Floats, part: Incidents) -> dict[str, float]:
    return {name: figure(predicted, part.minutes) for name, figure in FIGURES.items()}


def _shown(errors: dict[str, float]) -> str:
    return f"{errors['rmse']:.3f}  {errors['mae']:.3f}  {errors['mape']:.1%}  {errors['r2']:.3f}"


def show(found: list[dict[str, Any]]) -> None:
    """Print the tables."""
    areas = list(found[0]["reassigned"])
    print("eps per m   " + "".join(f"{f'{area} changed':>18}" for area in areas) + "   distance km   correlation")
    for record in found:
        eps = "none" if record["eps_per_metre"] is None else f"{record['eps_per_metre']:.6f}"
        changed = "".join(f"{record['reassigned'][area]:>18.1%}" for area in areas)
        print(f"{eps:<12}{changed}{record['mean_distance_km']:>14.2f}{record['correlation']:>14.3f}")
    for name in found[0]["models"]:
        print(f"\n{name}: RMSE and MAE in minutes, MAPE and R2, learnt from randomised places")
        print(f"{'eps per m':<12}{'as they are':>30}{'expected distance':>30}{'noise at test, too':>30}")
        for record in found:
            errors = record["models"][name]
            eps = "none" if record["eps_per_metre"] is None else f"{record['eps_per_metre']:.6f}"
            ways = [errors, *(errors[way] for way in ("expected_distance", "noise_at_test_time") if way in errors)]
            print(f"{eps:<12}" + "".join(f"{_shown(way):>30}" for way in ways))
    if len(found[0]["models"]) == 1:
        print("\nscikit-learn is not installed: trees, MLP and LASSO are left out (pip install 'hearsay-ldp[studies]')")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, help="incidents in metres: see README.md for the columns")
    parser.add_argument("--incidents", type=int, default=20_000, help="of the made-up city")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    incidents = made_up_city(options.incidents, options.seed) if options.csv is None else from_csv(options.csv)
    found = study(incidents, seed=options.seed)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)


if __name__ == "__main__":
    main()
