"""What happens beside the training: metrics, checkpoints, guards, bars."""
