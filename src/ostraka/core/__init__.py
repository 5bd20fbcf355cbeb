"""The contract: tasks, parties, methods, predictors, objectives, the one training loop.

Knows no method or engine.
"""
