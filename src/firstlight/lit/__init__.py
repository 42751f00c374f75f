"""The LightningModules, one for each kind of task, with their optimizers and schedules."""
