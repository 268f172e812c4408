"""Connected-word recognition against enumeration of all word sequences and segmentations on tiny networks."""

from __future__ import annotations

import itertools
import pickle
from functools import cache

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.hmm.hmm import HMM
from likely.language import token_passing
from likely.language.bigram import Bigram, learn_bigram
from likely.language.word_network import WordNetwork
from likely.metrics.word_error_rate import word_errors


def left_to_right(*means, stay=0.6, width=1.0):
    """A word whose states follow each other, one for each mean."""
    K = len(means)
    moves = np.diag(np.full(K, stay)) + np.diag(np.full(K - 1, 1 - stay), 1)
    starts, ends = np.eye(K)[0], np.eye(K)[-1] * (1 - stay)
    return HMM(starts, moves, lk.Gaussian(np.array(means, dtype=float)[:, None], width), final=ends)


def with_null_states():
    """Two states that emit, the second of which can be left out or come again, by two ways through null states."""
    moves = np.array([[0.3, 0.2, 0.4, 0.1], [0.1, 0.4, 0.0, 0.2], [0.0, 0.5, 0.0, 0.2], [0.3, 0.3, 0.0, 0.0]])
    return HMM([0.7, 0.0, 0.2, 0.1], moves, lk.Gaussian([[2.0], [-1.0]], 1.0), final=[0.0, 0.3, 0.3, 0.4])


def with_null_states_that_take_a_frame():
    """The same, where no way leads from entry to exit without a frame."""
    moves = np.array([[0.3, 0.2, 0.4, 0.1], [0.1, 0.3, 0.0, 0.2], [0.2, 0.5, 0.0, 0.3], [0.3, 0.7, 0.0, 0.0]])
    return HMM([0.7, 0.0, 0.2, 0.1], moves, lk.Gaussian([[2.0], [-1.0]], 1.0), final=[0.0, 0.4, 0.0, 0.0])


SILENCE = HMM([1.0, 0.0], [[0.3, 0.5], [0.0, 0.5]], lk.Gaussian([[0.5], [1.0]], 1.0), final=[0.2, 0.5])
GRAMMAR = Bigram(
    np.array([0.5, 0.3, 0.1]), np.array([[0.1, 0.6, 0.1], [0.3, 0.0, 0.3], [0.2, 0.2, 0.2]]), np.array([0.2, 0.4, 0.4])
)


def network(silence=None, **others):
    words = [left_to_right(0.0, 3.0), left_to_right(-2.0), with_null_states_that_take_a_frame()]
    return WordNetwork(words, ["a", "b", "c"], GRAMMAR, silence=silence, **others)


def all_ways(net, x, penalty=0.0, scale=1.0, total=False):
    """{words with their frames: log-score} over all word sequences, silences and cuts of x."""
    x = np.asarray(x, dtype=float)
    models = [net.word(c) for c in range(len(net))] + ([] if net.silence is None else [net.silence])

    @cache
    def piece(u, a, z):
        score = models[u].log_prob([x[a:z]]) if total else models[u].best_log_prob([x[a:z]])
        return float(score[0])

    pause = 0.0 if net.silence is None else net.pause
    nothing = 1.0 - net.initial.sum()
    out = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, len(x)), k) for k in range(len(x))):
            edges = list(itertools.pairwise((0, *cuts, len(x))))
            for units in itertools.product(range(len(models)), repeat=len(edges)):
                score, before, said = 0.0, None, []
                for u, (a, z) in zip(units, edges, strict=True):
                    score += piece(u, a, z)
                    if u == len(net):
                        score += np.log(pause)
                        continue
                    follow = net.initial[u] if before is None else net.bigram[before, u]
                    score += np.log1p(-pause) + scale * np.log(follow) - penalty
                    before = u
                    said.append((net.names[u], a, z))
                score += np.log1p(-pause) + scale * np.log(nothing if before is None else net.final[before])
                if score > -np.inf:
                    way = tuple(said)
                    out[way] = (
                        np.logaddexp(out.get(way, -np.inf), score) if total else max(out.get(way, -np.inf), score)
                    )
    return out


SETTINGS = [(0.0, 1.0), (1.5, 1.0), (-0.7, 2.5), (0.0, 0.0)]


@pytest.mark.parametrize("silence", [None, SILENCE], ids=["words", "silence"])
@pytest.mark.parametrize(("penalty", "scale"), SETTINGS)
def test_decoding_is_the_best_of_all_ways(silence, penalty, scale, rng):
    net = network(silence)
    for length in (1, 2, 5):
        x = rng.normal(0.5, 2.0, length)
        ways = all_ways(net, x, penalty, scale)
        best = max(ways, key=ways.get)
        heard = net.decode(x, penalty=penalty, scale=scale)
        assert heard.log_prob == pytest.approx(ways[best], abs=1e-10)
        assert tuple(zip(heard.words, heard.begins.tolist(), heard.ends.tolist(), strict=True)) == best


@pytest.mark.parametrize("silence", [None, SILENCE], ids=["words", "silence"])
@pytest.mark.parametrize(("penalty", "scale"), SETTINGS)
def test_confidence_is_the_share_of_all_ways(silence, penalty, scale, rng):
    net = network(silence)
    x = rng.normal(0.5, 2.0, 5)
    ways = all_ways(net, x, penalty, scale, total=True)
    whole = np.logaddexp.reduce(list(ways.values()))
    heard = net.decode(x, penalty=penalty, scale=scale)
    for i, word in enumerate(heard.words):
        frames = range(heard.begins[i], heard.ends[i])
        inside = [
            sum(np.exp(s - whole) for way, s in ways.items() if any(w == word and a <= t < z for w, a, z in way))
            for t in frames
        ]
        assert heard.confidence[i] == pytest.approx(np.mean(inside), abs=1e-10)
    if (penalty, scale) == (0.0, 1.0):
        assert net.log_prob([x])[0] == pytest.approx(whole, abs=1e-10)


@pytest.mark.parametrize("silence", [None, SILENCE], ids=["words", "silence"])
def test_the_joined_model_is_the_same_network(silence, rng):
    net = network(silence)
    one, word = net.joined()
    _, x = net.sample(15, rng)
    heard = net.decode(x)
    assert [t.log_prob for t in heard] == pytest.approx(one.viterbi(x).log_prob, abs=1e-9)
    assert net.log_prob(x) == pytest.approx(one.log_prob(x), abs=1e-9)
    for transcript, share in zip(heard, one.posterior(x), strict=True):
        assert share.sum(axis=1) == pytest.approx(1.0)
        for i, name in enumerate(transcript.words):
            mine = share[transcript.begins[i] : transcript.ends[i], word == net.names.index(name)]
            assert transcript.confidence[i] == pytest.approx(mine.sum(axis=1).mean(), abs=1e-9)


@pytest.mark.parametrize("silence", [None, SILENCE], ids=["words", "silence"])
@pytest.mark.parametrize(("penalty", "scale"), SETTINGS[:3])
def test_several_word_sequences_are_the_best_of_all(silence, penalty, scale, rng):
    net = network(silence)
    x = rng.normal(0.5, 2.0, 5)
    best = {}
    for way, score in all_ways(net, x, penalty, scale).items():
        words = tuple(word for word, _, _ in way)
        best[words] = max(best.get(words, -np.inf), score)
    for k in (1, 4, 500):
        found = net.k_best(x, k, penalty=penalty, scale=scale)
        expected = sorted(best.values(), reverse=True)[:k]
        assert [t.log_prob for t in found] == pytest.approx(expected, abs=1e-10)
        assert [best[t.words] for t in found] == pytest.approx(expected, abs=1e-10)
        assert len({t.words for t in found}) == len(found)


def test_the_first_of_several_is_the_best(rng):
    net, _, x = spoken(rng, count=3, noise=3.0)
    for frames in x:
        first, *others = net.k_best(frames, 5)
        best = net.decode(frames, confidence=False)
        assert (first.words, first.ends.tolist()) == (best.words, best.ends.tolist())
        assert first.log_prob == pytest.approx(best.log_prob, abs=1e-9)
        assert len(others) == 4
    with pytest.raises(DomainError, match="integer"):
        net.k_best(x[0], 0)
    with pytest.raises(DataError, match="one sequence"):
        net.k_best(x, 2)


def test_a_stack_is_a_list_of_words(rng):
    words = [left_to_right(0.0, 3.0), left_to_right(-2.0, 1.0)]
    stack = HMM(
        np.stack([w.initial for w in words]), np.stack([w.transition for w in words]),
        lk.Gaussian([[0.0], [3.0], [-2.0], [1.0]], 1.0), final=np.stack([w.final for w in words]),
    )  # fmt: skip
    one, many = WordNetwork(stack, ["a", "b"]), WordNetwork(words, ["a", "b"])
    _, x = one.sample(5, rng)
    assert one.log_prob(x) == pytest.approx(many.log_prob(x), abs=1e-9)
    assert [str(t) for t in one.decode(x)] == [str(t) for t in many.decode(x)]
    assert one.joined()[0].log_prob(x) == pytest.approx(one.log_prob(x), abs=1e-9)


def test_pieces_of_an_utterance_make_no_difference(monkeypatch, rng):
    net = network(SILENCE)
    _, x = net.sample(4, rng)
    whole, totals = net.decode(x), net.log_prob(x)
    monkeypatch.setattr(token_passing, "PIECE", 3 * net._columns[1])
    for a, b in zip(whole, net.decode(x), strict=True):
        assert (a.words, a.log_prob, a.begins.tolist()) == (b.words, b.log_prob, b.begins.tolist())
        assert a.confidence == pytest.approx(b.confidence, abs=1e-12)
    assert net.log_prob(x).tolist() == totals.tolist()


def test_words_that_the_same_words_follow_share_a_boundary():
    words, names = [left_to_right(m) for m in (0.0, 1.0, 2.0)], ["a", "b", "c"]
    assert len(WordNetwork(words, names).boundaries) == 2
    rows = [[0.1, 0.2, 0.3], [0.2, 0.2, 0.2], [0.1, 0.2, 0.3]]
    assert WordNetwork(words, names, rows).boundaries.context.tolist() == [1, 2, 1]


# ---------------------------------------------------------------------------- beams


def spoken(rng, count=12, words=8, noise=1.0, silence=True):
    """A vocabulary that can be told apart, its network, and utterances drawn from it."""
    means = rng.normal(0.0, 3.0, (words, 4, 6))
    K = means.shape[1]
    chain = left_to_right(*range(K))
    stack = HMM(
        np.repeat(chain.initial[None], words, 0), np.repeat(chain.transition[None], words, 0),
        lk.Gaussian(means.reshape(-1, 6), noise**2), final=np.repeat(chain.final[None], words, 0),
    )  # fmt: skip
    rows = rng.dirichlet(np.full(words + 1, 0.5), words)
    quiet = HMM([1.0], [[0.7]], lk.Gaussian([np.full(6, 9.0)], noise**2), final=[0.3]) if silence else None
    net = WordNetwork(stack, [f"w{c}" for c in range(words)], rows[:, :-1], final=rows[:, -1], silence=quiet, pause=0.3)
    return net, *net.sample(count, rng)


def test_drawn_utterances_are_understood(rng):
    net, said, x = spoken(rng)
    heard = net.decode(x)
    assert word_errors([list(s) for s in said], [list(t.words) for t in heard]).rate < 0.02
    sure = np.concatenate([t.confidence for t in heard])
    assert sure.min() >= 0 and sure.max() <= 1 and sure.mean() > 0.97


def test_noise_makes_less_sure(rng):
    quiet, loud = (spoken(np.random.default_rng(1), noise=noise) for noise in (1.0, 5.0))
    means = [np.concatenate([t.confidence for t in net.decode(x)]).mean() for net, _, x in (quiet, loud)]
    assert means[1] < means[0] - 0.05


def test_beams_are_exact_when_wide_and_never_better(rng):
    net, _, x = spoken(rng, count=6, noise=3.0)
    exact = net.decode(x, confidence=False)
    for a, b in zip(exact, net.decode(x, beam=1e6, confidence=False), strict=True):
        assert (a.words, a.log_prob) == (b.words, b.log_prob)
    lost = 0.0
    for beam in (30.0, 10.0, 3.0, 1.0):
        found = net.decode(x, beam=beam, confidence=False)
        gaps = [a.log_prob - b.log_prob for a, b in zip(exact, found, strict=True)]
        assert min(gaps) >= 0.0
        assert np.isfinite(gaps).all()
        lost = max(lost, max(gaps))
    assert lost > 0.0  # else this test says nothing


def test_a_beam_that_loses_the_end_is_given_up():
    late = left_to_right(0.0, 0.0, stay=0.5)
    net = WordNetwork([late, left_to_right(5.0)], ["late", "never"])
    x = [0.0, 0.1, 0.0]
    assert net.decode(x, beam=1e-3).log_prob == net.decode(x).log_prob > -np.inf


# ---------------------------------------------------------- zeros, gaps, short utterances


def test_sums_hold_where_only_improbable_words_may_be_followed(rng):
    """Word b fits 1e6 times worse than a each frame, and only after b may c come: products would lose it."""
    words = [left_to_right(0.0), left_to_right(60.0), left_to_right(1.0)]
    net = WordNetwork(words, ["a", "b", "c"], [[0.5, 0.2, 0.0], [0.0, 0.5, 0.5], [0.2, 0.2, 0.0]])
    one, word = net.joined()
    for x in ([0.1, -0.2, 0.0, 1.0], rng.normal(0.0, 30.0, 12)):
        heard = net.decode(x)
        assert net.log_prob([x])[0] == pytest.approx(one.log_prob([x])[0], rel=1e-12)
        assert heard.log_prob == pytest.approx(one.viterbi(np.asarray(x)).log_prob, rel=1e-12)
        share = one.posterior(np.asarray(x))
        for i, name in enumerate(heard.words):
            mine = share[heard.begins[i] : heard.ends[i], word == net.names.index(name)].sum(axis=1).mean()
            assert heard.confidence[i] == pytest.approx(mine, abs=1e-9)


def test_missing_frames_say_nothing():
    net = WordNetwork([left_to_right(0.0), left_to_right(5.0)], ["low", "high"], final=0.5)
    heard = net.decode([0.1, np.nan, 4.9, 5.2])
    assert str(heard) == "low high"
    nothing = net.decode([np.nan, np.nan])
    assert nothing.confidence == pytest.approx([0.5] * len(nothing), abs=1e-12)


def test_utterances_that_cannot_be():
    net = WordNetwork([left_to_right(0.0, 1.0, 2.0)], ["long"])
    short, empty, fine = net.decode(Ragged.from_list([[0.0, 1.0], [], [0.0, 1.0, 2.0]]))
    for heard in (short, empty):
        assert (heard.words, heard.log_prob, len(heard.confidence)) == ((), -np.inf, 0)
    assert fine.words == ("long",)
    assert net.log_prob([[0.0, 1.0]]).tolist() == [-np.inf]


def test_utterances_without_words():
    net = WordNetwork([left_to_right(0.0)], ["word"], initial=[0.75], silence=left_to_right(9.0, stay=0.5), pause=0.25)
    heard, empty = net.decode(Ragged.from_list([[9.1, 8.9], []]))
    assert heard.words == empty.words == ()
    assert empty.log_prob == pytest.approx(np.log(0.75 * 0.25))
    assert np.isfinite(heard.log_prob)
    assert net.joined()[0].log_prob([[9.1, 8.9]]) == pytest.approx(net.log_prob([[9.1, 8.9]]))


def test_many_utterances_are_each_alone(rng):
    net, _, x = spoken(rng, count=5)
    for one, among in zip(x, net.decode(x), strict=True):
        alone = net.decode(one)
        assert (alone.words, alone.log_prob) == (among.words, among.log_prob)
        assert alone.confidence.tolist() == among.confidence.tolist()
    assert net.decode(x[0], confidence=False).confidence is None


def test_a_bad_frame_is_named():
    net = WordNetwork([left_to_right(0.0)], ["word"])
    with pytest.raises(DataError, match="sequence 1, frame 2"):
        net.decode([[0.0, 1.0], [0.0, 1.0, np.inf]])
    with pytest.raises(ShapeError):
        net.decode(np.zeros((3, 2)))


def test_a_penalty_makes_fewer_words(rng):
    net, _, x = spoken(rng, count=6, noise=4.0)
    counts = [sum(len(t) for t in net.decode(x, penalty=p, confidence=False)) for p in (-20.0, 0.0, 20.0)]
    assert counts[0] > counts[1] > counts[2]


# ------------------------------------------------------------------------- construction


def test_words_of_a_classifier(rng):
    shapes = {"up": [-2.0, 0.0, 2.0], "down": [2.0, 0.0, -2.0]}
    x, y = [], []
    for label, levels in shapes.items():
        for _ in range(15):
            x.append(np.concatenate([rng.normal(m, 0.4, (rng.integers(2, 6), 1)) for m in levels]))
            y.append(label)
    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), n_states=3, topology="left-to-right")
    net = WordNetwork.of(lk.BayesClassifier(density).fit(x, y))
    assert net.names == ("down", "up")
    said = ["up", "up", "down", "up"]
    frames = np.concatenate([x[y.index(word) + i] for i, word in enumerate(said)])
    heard = net.decode(frames)
    assert list(heard.words) == said
    with pytest.raises(DomainError, match="one HMM per class"):
        WordNetwork.of(lk.BayesClassifier().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]))


def test_bigrams_are_relative_frequencies():
    texts = [["a", "b"], ["b", "a", "b"], ["b"]]
    starts, bigram, ends = learn_bigram(texts, ["a", "b"], alpha=0.0)
    assert starts.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert bigram == pytest.approx(np.array([[0.0, 1.0], [1 / 4, 0.0]]))
    assert ends.tolist() == pytest.approx([0.0, 3 / 4])
    smooth = learn_bigram(texts, ["a", "b"], alpha=1.0)
    assert smooth.bigram == pytest.approx(np.array([[1 / 5, 3 / 5], [2 / 7, 1 / 7]]))
    assert smooth.initial.sum() == pytest.approx(1.0)
    assert smooth.bigram.sum(axis=1) + smooth.final == pytest.approx(1.0)
    thrice = learn_bigram([*texts, texts[0], texts[0]], ["a", "b"])
    for a, b in zip(learn_bigram(texts, ["a", "b"], weight=[3, 1, 1]), thrice, strict=True):
        assert a == pytest.approx(b)
    assert learn_bigram([["a"], []], ["a"], alpha=0.0).initial.tolist() == [0.5]


@pytest.mark.parametrize(
    ("texts", "options", "match"),
    [
        (["a b"], {}, "split"),
        ([["a", "z"]], {}, "'z' in utterance 0"),
        ([["a"]], {"alpha": 0.0}, "after 'b'"),
        ([["a"]], {"alpha": -1.0}, "alpha"),
        ([["a"]], {"weight": [1.0, 2.0]}, "one entry"),
        ([], {"alpha": 0.0}, "nothing after"),
    ],
)
def test_bigrams_of_what_cannot_be_counted(texts, options, match):
    with pytest.raises((DataError, DomainError, ShapeError), match=match):
        learn_bigram(texts, ["a", "b"], **options)


WORD = left_to_right(0.0)


@pytest.mark.parametrize(
    ("words", "names", "options", "match"),
    [
        ([], [], {}, "a stack of HMMs"),
        ([WORD, "b"], ["a", "b"], {}, "single ones"),
        ([WORD, WORD], ["a"], {}, "2 texts"),
        ([WORD, WORD], ["a", "a"], {}, "'a' twice"),
        ([WORD], [3], {}, "texts"),
        ([WORD, WORD], ["a", "b"], {"bigram": [[0.5, 0.5]]}, r"shape \(2, 2\)"),
        ([WORD, WORD], ["a", "b"], {"bigram": [[0.5, 0.9], [0.5, 0.5]]}, "row 0"),
        ([WORD, WORD], ["a", "b"], {"bigram": np.full((2, 2), 0.5), "final": [0.1, 0.1]}, "row 0"),
        ([WORD, WORD], ["a", "b"], {"bigram": [[-0.5, 1.0], [0.5, 0.5]]}, "negative"),
        ([WORD, WORD], ["a", "b"], {"initial": [0.9, 0.9]}, "initial"),
        ([WORD], ["a"], {"final": 0.0}, "able to end"),
        ([WORD], ["a"], {"pause": 1.0}, "pause"),
        ([HMM([1.0], [[1.0]], lk.Gaussian([[0.0]], 1.0))], ["a"], {}, "come to an end"),
        ([with_null_states()], ["a"], {}, "at least one frame"),
        (
            [WORD],
            ["a"],
            {"silence": HMM([1.0], [[0.5]], lk.Gaussian([[0.0, 0.0]], 1.0), final=[0.5])},
            "same number of columns",
        ),
    ],
)
def test_networks_that_cannot_be(words, names, options, match):
    with pytest.raises((DomainError, ShapeError), match=match):
        WordNetwork(words, names, **options)


@pytest.mark.parametrize("options", [{"beam": 0.0}, {"beam": np.nan}, {"penalty": np.inf}, {"scale": -1.0}])
def test_options_that_cannot_be(options):
    with pytest.raises(DomainError):
        WordNetwork([WORD], ["a"]).decode([0.0], **options)


def test_networks_are_values(rng):
    net = network(SILENCE)
    again = pickle.loads(pickle.dumps(net))
    _, x = net.sample(3, rng)
    assert [t.log_prob for t in again.decode(x)] == [t.log_prob for t in net.decode(x)]
    assert repr(net) == "WordNetwork(3 words, 5 states, silence)"
    with pytest.raises(ValueError, match="read-only"):
        net.bigram[0, 0] = 1.0


def test_loops_are_compiled_once(rng):
    from likely.language import _loops as tokens

    network(SILENCE).decode([0.0, 1.0, 2.0])
    WordNetwork([WORD], ["a"]).decode(np.float32([0.0, 1.0]), beam=5)
    network().k_best([0.0, 1.0], 3)
    for loop in (tokens.advance, tokens.advance_many, tokens.forward, tokens.backward):
        assert len(getattr(loop, "signatures", [1])) == 1


def test_no_utterances_are_sampled_as_an_empty_ragged(rng):
    words, frames = WordNetwork([WORD], ["a"]).sample(0, rng)
    assert words == [] and len(frames) == 0 and frames.values.shape == (0, 1)
