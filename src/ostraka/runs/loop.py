"""The one round loop: draw, run, aggregate, evaluate, checkpoint."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from ostraka import __version__
from ostraka.core.digest import digest_of
from ostraka.core.member import Making
from ostraka.core.method import Method
from ostraka.core.party import PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.spent import account, spent_on
from ostraka.engines.base import Crew, Engine, Failure, Job, Outcome, Work
from ostraka.engines.threads import one_thread
from ostraka.errors import Interrupted, StoreError
from ostraka.evaluation.evaluate import evaluate, seen_by_parties
from ostraka.nets.blocks import convolution_of
from ostraka.runs.arrivals import Arrivals
from ostraka.runs.config import build_engine
from ostraka.runs.failures import report_failures
from ostraka.runs.memory import outline
from ostraka.runs.plan import Plan, party_seed, pick_device
from ostraka.runs.promise import look, place, thresholds, told_of_look
from ostraka.runs.record import RunDir
from ostraka.runs.results import MetricsRow, Summary
from ostraka.runs.summary import Totals, summarise
from ostraka.runs.watch import Watch
from ostraka.store import codec
from ostraka.store.desk import Desk, Memories
from ostraka.store.member import save_members
from ostraka.store.task import task_values

WRITES = 6
"""How often reports that wait in memory are written while half-finished training is saved once."""
MESSAGES_HELD = 8
"""Messages of a round that are kept in memory to notice that the
next party gets one of them too.
"""


def execute(
    plan: Plan,
    home: RunDir,
    watch: Watch | None = None,
    resume: bool = False,
    shelf: Path | None = None,
    save_seconds: float = 60.0,
) -> Summary:
    """Run `plan` in the folder `home` to its end and return the summary.

    With `resume`, go on where it was left. `shelf` is a folder in which one-shot runs share trained
    members: what another run with the same data, seed and training already made is taken from
    there. A kill loses at most about `save_seconds` of every party's training.
    """
    with home.locked(), one_thread():
        home.begin(plan.config, plan.marks, resume, convolution_of(outline(plan.task)))
        done = home.finished()
        if done is not None:
            return done
        plan.partition.save(home.partition)
        run = _Run(plan, home, watch or Watch(), shelf, save_seconds)
        try:
            return run.all_rounds()
        except KeyboardInterrupt:
            raise Interrupted(
                f"stopped; nothing that was finished is lost. Go on with: {home.resume_command()}"
            ) from None


class _Run:
    def __init__(
        self, plan: Plan, home: RunDir, watch: Watch, shelf: Path | None, save_seconds: float
    ) -> None:
        self.plan, self.home, self.watch, self.save_seconds = plan, home, watch, save_seconds
        self.method: Method[Any, Any, Any] = plan.method
        self.work = shared_work(plan) if shelf is not None else None
        self.shelf = shelf if self.work is not None else None
        self.device = pick_device(plan.config.device)
        self.task = plan.task.to(self.device)  # the server's work, as the parties', is done there
        self.totals = Totals()
        self.round = 0
        self.memories = Memories(home.desk(), 0)
        self.clock, self.cpu_clock = time.perf_counter(), time.process_time()

    def all_rounds(self) -> Summary:
        self.watch.run_begins(self.plan, self.home.root)
        engine: Engine = build_engine(self.plan.config)
        work = Work(self.method, self.plan.task, self.plan.parties, self.device, self.save_seconds)
        with engine.open(work) as crew:
            state = self._restore(crew)
            while self.round < self.method.exchanges:
                state = self._one_round(crew, state, self.round + 1)
        return self._finish(state)

    def _restore(self, crew: Crew) -> Any:
        """The state to go on from; metrics of rounds after the checkpoint
        are dropped, they will come again.
        """
        if not self.home.checkpoint.exists():
            self.home.write_metrics([])
            if self.method.talks:
                self.totals.bytes_down = commons_size(self.plan) * len(crew.roster())
            state = self.method.init(self.plan.task, self.plan.config.seed)
            if self.plan.start is not None:
                self._evaluate(state)  # as round 0
            return state
        saved = self.home.checkpoint_place().load()
        missing = [key for key in ("round", "state", "totals") if key not in saved]
        if missing:
            raise StoreError(
                f"{self.home.checkpoint} lacks {missing[0]!r}; remove it, and the run begins again"
            )
        self.round, self.totals = saved["round"], Totals(**saved["totals"])
        if not 1 <= self.round <= self.method.exchanges:
            raise StoreError(
                f"{self.home.checkpoint} is of round {self.round}, but this run has rounds 1 to "
                f"{self.method.exchanges}; remove it, and the run begins again"
            )
        self.memories = Memories(self.home.desk(), self.round)
        self.home.desk().clear_until(self.round)
        self.home.write_metrics(
            [row for row in self.home.read_metrics() if row.round <= self.round]
        )
        return saved["state"]

    def _one_round(self, crew: Crew, state: Any, index: int) -> Any:
        drawn = self.method.draw(crew.roster(), index, self.plan.config.seed)
        messages = self._send(state, drawn, index)
        desk = self._desk(messages, index)
        jobs = [self._job(desk, party, index, message) for party, message in messages.items()]
        sizes = {ref.id: ref.size for ref in drawn}
        arrivals = Arrivals(
            self.method, self.plan.task, desk, index, self.totals, sizes, self.save_seconds / WRITES
        )
        with arrivals:
            failures = self._run_jobs(crew, jobs, arrivals)
            names = {ref.id: str(ref) for ref in drawn}
            if failures:
                report_failures(self.plan.config, self.home, failures, names)
            failed = {failure.party for failure in failures}
            arrived = arrivals.reports(job.party for job in jobs if job.party not in failed)
            if self.method.talks:
                self.totals.bytes_down += sizes_of(messages)
                self._count_generator(messages)
            with account() as spent:
                state = self.method.aggregate(self.task, state, arrived)
            self.totals.spend(spent)
            if arrivals.losses:
                mean = fmean(arrivals.losses)
                self.totals.losses = [*self.totals.losses[:1], mean]
            self.totals.dropped += [
                {"party": names[f.party], "round": index, "why": f.reason} for f in failures
            ]
            self.round = index
            if index % self.plan.config.eval_every == 0 or index == self.method.exchanges:
                self._evaluate(state)
            self._checkpoint(state)
        # only now: until the checkpoint lies there, a kill needs the reports
        desk.clear_until(index)
        self.memories.round_ends(index, arrivals.remembering)
        return state

    def _send(self, state: Any, drawn: Sequence[PartyRef], index: int) -> dict[int, Path]:
        """Write the round's messages: one file for all parties that get
        the same object, else one each.

        Few messages are held, not a thousand: a method that makes one for
        each party has as many files anyway.
        """
        desk = self.home.desk()
        written: list[tuple[Any, Path]] = []
        files: dict[int, Path] = {}
        for ref in drawn:
            message = self.method.message(state, ref)
            path = next((path for held, path in written if held is message), None)
            if path is None:
                path = desk.message(index, ref.id if files else None)
                codec.save(path, message, durable=False)  # written anew when the round is
                written = [*written[-MESSAGES_HELD + 1 :], (message, path)]
            files[ref.id] = path
        return files

    def _count_generator(self, drawn: Iterable[int]) -> None:
        """The generator goes to every party that takes part for the first time."""
        size, met = generator_size(self.plan), set(self.totals.equipped)
        new = [party for party in drawn if party not in met]
        if size:
            self.totals.equipped += new
            self.totals.bytes_down += size * len(new)

    def _desk(self, messages: dict[int, Path], index: int) -> Desk:
        """Where this round's reports go: the shelf if they can be shared,
        else the run's own folder.
        """
        if self.shelf is None:
            return self.home.desk()
        contents = {path: blake2b(path.read_bytes()).hexdigest() for path in set(messages.values())}
        sent = {str(party): contents[path] for party, path in messages.items()}
        return self.home.desk(self.shelf / digest_of({"work": self.work, "messages": sent}))

    def _job(self, desk: Desk, party: int, index: int, message: Path) -> Job:
        return Job(
            party=party,
            round=index,
            seed=party_seed(self.plan.config, index, party),
            owner=desk.owner,
            message=message,
            memory=self.memories.newest(party),
            progress=desk.progress(index, party),
        )

    def _run_jobs(self, crew: Crew, jobs: Sequence[Job], arrivals: Arrivals) -> list[Failure]:
        """Do the jobs whose report is not there yet, and look at all reports.

        The parties that failed.
        """
        found = arrivals.find(job.party for job in jobs)
        todo = [job for job in jobs if job.party not in found]
        if self.shelf is not None:
            self.totals.reused = len(found)
        ready = len(found) - len(arrivals.refused)
        self.watch.round_begins(arrivals.index, self.method.exchanges, len(jobs), ready)
        before = [Outcome(party, arrivals.refused[party]) for party in sorted(arrivals.refused)]
        failures, cpu = list[Failure](), time.process_time()
        for outcome in chain(before, map(arrivals.store, crew.run(todo, self.watch.party_at))):
            self.watch.party_ends(outcome)
            if outcome.failure is not None:
                failures.append(outcome.failure)
        # an engine may run parties in this process; their reports count that
        self.cpu_clock += time.process_time() - cpu - arrivals.cpu_seconds
        return failures

    def _evaluate(self, state: Any) -> None:
        test = self.plan.test.to(self.device)
        looked, _ = self._looked(state)
        predictor, promise = place(self.plan, looked, self.device)
        classes = self.plan.task.classes
        with account() as spent, spent_on("inference"):
            on_test = evaluate(predictor, test.samples, classes, domains=test.domains)
        self.totals.spend(spent)
        row = MetricsRow(
            round=self.round,
            test=on_test,
            validation=self._on_validation(predictor),
            answer=promise,
            bytes_up=self.totals.bytes_up,
            bytes_down=self.totals.bytes_down,
        )
        if self.round == self.method.exchanges:  # for the summary; one in every line would be long
            seen = seen_by_parties(on_test, self.plan.mix) if not self.method.pooled else {}
            row = replace(row, confusion=on_test.confusion, per_party=seen)
        self.home.add_metrics(row)
        self.watch.evaluated(self.round, on_test.accuracy)

    def _looked(self, state: Any) -> tuple[Predictor, dict[str, Any]]:
        return look(self.plan, self.method.predictor(self.plan.task, state), self.device)

    def _on_validation(self, predictor: Predictor) -> float | None:
        """Accuracy on the server's validation samples, if it has any."""
        if self.plan.validation is None:
            return None
        held, classes = self.plan.validation.to(self.device), self.plan.task.classes
        return evaluate(predictor, held.samples, classes, domains=held.domains).accuracy

    def _checkpoint(self, state: Any) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        self.totals.seconds += now - self.clock
        self.totals.cpu_seconds += cpu - self.cpu_clock
        self.clock, self.cpu_clock = now, cpu
        self.home.checkpoint_place().save(
            {"round": self.round, "state": state, "totals": vars(self.totals)}
        )

    def _finish(self, state: Any) -> Summary:
        summary = summarise(self.plan, self.home.read_metrics(), self.totals, self.home.root)
        looked, at = self._looked(state)
        closing = self.method.closing_notes(self.plan.task, state)
        summary = replace(
            summary,
            notes=(*summary.notes, *closing, *told_of_look(self.plan, at)),
            looked=at,
            trust=looked.trust(),
            selection=self.method.selection(state),
        )
        placed, promise = place(self.plan, looked, self.device)
        config = self.plan.config
        made = Making.now(config.method, str(config.set.get("recipe", "")))
        members = save_members(self.home.root, self.method.members(self.plan.task, state), made)
        self.home.model_place().save(
            {
                "state": state,
                "answer": promise.as_dict(),
                "seen": looked.seen,
                "thresholds": thresholds(placed),
                "task": task_values(self.plan.task),
            },
            beside=members,
        )
        return self.home.finish(summary)


def sizes_of(files: Mapping[int, Path]) -> int:
    """Bytes of all these files; one that is named often counts as often, and is asked once."""
    return sum(path.stat().st_size * times for path, times in Counter(files.values()).items())


def commons_size(plan: Plan) -> int:
    """Bytes of what this method needs of the commons.

    What lies there for others of a grid is not its cost.
    """
    needs, commons = plan.method.needs, plan.task.commons
    used = replace(
        commons,
        public=commons.public if needs.public else None,
        shared=commons.shared if needs.shared else None,
        prior=commons.prior if needs.prior else None,
        generator=None,  # counted when a party first takes part
        # round 1's message carries it
        nets={name: net for name, net in commons.nets.items() if name != "start"},
    )
    return codec.size_of(used.tensors())


def generator_size(plan: Plan) -> int:
    """Bytes of the generator that parties draw from; 0: there is none."""
    generator = plan.task.commons.generator
    return 0 if generator is None else codec.size_of(generator.params)


def shared_work(plan: Plan) -> dict[str, Any] | None:
    """What the reports of a run depend on beside its messages;
    None if they cannot be another run's too.

    The version is in it: another one may train otherwise. A key that a method's
    class has inherited does not count.
    """
    method = plan.method
    key = (
        method.work_key(plan.task)
        if "work_key" in vars(type(method)) and method.exchanges == 1
        else None
    )
    if key is None:
        return None
    return {"version": __version__, "data": plan.fingerprint, "seed": plan.config.seed, "key": key}
