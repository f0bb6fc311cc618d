"""timm: a vision transformer in half precision."""

import timm
import torch

torch.manual_seed(0)
model = timm.create_model("vit_small_patch16_224").cuda().half().eval()
images = torch.randn(32, 3, 224, 224, device="cuda", dtype=torch.float16)
with torch.no_grad():
    for _ in range(100):
        scores = model(images)
print(f"{scores.float().abs().mean().item():.2g}")
