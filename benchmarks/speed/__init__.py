"""How fast Ostraka is, beside plain torch and other frameworks: `make bench`, `make bench-peers`.

`table.py` says what a table of figures is, `tables.py` lists them, `worker.py` is one variant in
a process of its own, `run.py` lets the variants take turns, `page.py` writes the tables of
docs/results/speed.md. What is measured lies in `steps.py`, `rounds.py`, `votes.py`,
`destruction.py`, `layers.py`, `startup.py`; what it is compared with in `plain.py`,
`plain_fedov.py`, `image_by_image.py` and `peers/`.
"""
