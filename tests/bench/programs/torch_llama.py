"""PyTorch, eager: a small Llama with random weights generates tokens."""

import torch
import transformers

torch.manual_seed(0)
config = transformers.LlamaConfig(
    hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000
)
model = transformers.LlamaForCausalLM(config).half().cuda().eval()
prompt = torch.arange(64, device="cuda").reshape(1, 64)
with torch.no_grad():
    tokens = model.generate(prompt, max_new_tokens=100, do_sample=False, pad_token_id=0)
print(tokens.shape, int(tokens[0, 64]))
