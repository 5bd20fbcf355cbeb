"""What is kept: values as safetensors + JSON (never pickle), and the folders of runs."""
