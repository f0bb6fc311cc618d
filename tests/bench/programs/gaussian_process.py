"""GPyTorch: an exact Gaussian process, Cholesky factors and solves of cuSOLVER."""

import gpytorch
import torch

torch.manual_seed(0)
inputs = torch.linspace(0, 1, 1500, device="cuda", dtype=torch.float64)
targets = torch.sin(inputs * 12)


class Model(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(inputs, targets, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, values):
        return gpytorch.distributions.MultivariateNormal(self.mean(values), self.covariance(values))


likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda().double()
model = Model(likelihood).cuda().double()
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
with gpytorch.settings.fast_computations(False, False, False):
    for _ in range(20):
        optimiser.zero_grad()
        loss = -objective(model(inputs), targets)
        loss.backward()
        optimiser.step()
print(f"{loss.item():.2g}")
