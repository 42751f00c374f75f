from omegaconf import OmegaConf
def train(config):
    print(OmegaConf.to_yaml(config, resolve=True)); return 1.0
