"""The model of forecasts in statsmodels, which takes two CPU seconds to import."""

import warnings

import numpy as np

from analytics.forecasting.fitting import Fit
from analytics.forecasting.structure import DEVIATION, FIRST_HARMONIC
from protocols.arrays import Floats

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the imports of statsmodels and pandas
    from statsmodels.tsa.statespace.mlemodel import MLEModel


class Oracle(MLEModel):
    """The model as textbooks have it: harmonics that rotate, a constant design. Initialised with our first state."""

    def __init__(self, values: Floats, noise: Floats, fit: Fit) -> None:
        structure = fit.structure
        x, p, q, phi, irregular = fit.filter()
        super().__init__(values, k_states=structure.size, k_posdef=structure.size)
        rotation = np.eye(structure.size)
        rotation[DEVIATION, DEVIATION] = phi
        design = np.ones((1, structure.size))
        column = FIRST_HARMONIC
        for place, number in structure.waves:
            angle = 2 * np.pi * number / structure.seasons[place]
            if 2 * number == structure.seasons[place]:
                rotation[column, column] = -1
                column += 1
                continue
            turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
            rotation[column : column + 2, column : column + 2] = turn
            design[0, column + 1] = 0
            column += 2
        self.ssm["design"], self.ssm["transition"] = design, rotation
        self.ssm["selection"], self.ssm["state_cov"] = np.eye(structure.size), np.diag(q)
        self.ssm["obs_cov"] = (noise + irregular)[None, None, :]
        self.ssm.initialize_known(x, p)
        self.ssm.tolerance = 0  # never take the filter for converged
