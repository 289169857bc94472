"""A multi-layer perceptron on generated data, trained by every pod of a Volcano Job together.

Volcano's pytorch plugin sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK: all that init_method="env://" needs. RANK
counts pods, one process each. Without those variables the script trains alone. Rank 0 alone logs to W&B.
"""

import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FEATURES, CLASSES, EXAMPLES = 32, 4, 4096


def generated_data():
    """Points around one centre per class: the same on every rank, so that each can take its own share."""
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(CLASSES, FEATURES, generator=generator)
    labels = torch.randint(CLASSES, (EXAMPLES,), generator=generator)
    return TensorDataset(centres[labels] + torch.randn(EXAMPLES, FEATURES, generator=generator), labels)


def start_run(rank, settings):
    """The run that the launch agent announced, on rank 0; nothing on the others, whose runs would be strays."""
    if rank != 0 or os.environ.get("WANDB_MODE") == "disabled":
        return None
    try:
        import wandb
    except ImportError:
        return None
    return wandb.init(config=settings, resume="allow")  # a gang that Volcano starts again goes on with its run


def main():
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    epochs = int(os.environ.get("EPOCHS", 5))
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
    if world_size > 1:
        dist.init_process_group("nccl" if on_gpu else "gloo", init_method="env://")
    print(f"rank {rank} of {world_size} on {device}, master {os.environ.get('MASTER_ADDR', 'none')}", flush=True)
    run = start_run(rank, {"world_size": world_size, "epochs": epochs})

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES)).to(device)
    if world_size > 1:
        model = DistributedDataParallel(model)
    data = generated_data()
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2, device=device)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item(), 1.0], device=device)
            time.sleep(float(os.environ.get("STEP_SECONDS", 0)))
        if world_size > 1:
            dist.all_reduce(total)
        if rank == 0:
            mean = (total[0] / total[1]).item()
            print(f"epoch {epoch + 1}/{epochs}: loss {mean:.4f}", flush=True)
            if run:
                run.log({"epoch": epoch + 1, "loss": mean})

    if run:
        run.finish()
    if world_size > 1:
        dist.barrier()  # nobody leaves while another still needs it
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
