"""Figures of merit: closed-set accuracy, open-set measures, per party and per domain."""
