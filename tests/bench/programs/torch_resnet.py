"""PyTorch, eager: training steps of a ResNet-18."""

import torch
import torchvision

torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
model = torchvision.models.resnet18().cuda()
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(32, 3, 128, 128, device="cuda")
labels = torch.arange(32, device="cuda") % 10
for _ in range(60):
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimiser.step()
print(f"{loss.item():.2g}")
