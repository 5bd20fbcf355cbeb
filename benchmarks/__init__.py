"""Speed (`python -m benchmarks.speed`) and studies, each a script of its own."""
