"""Dynamic time warping of all pairs of series."""

from __future__ import annotations

import numpy as np

from speed.common import array, library, scaled, threads
from speed.registry import Infeasible, workload


def dtw_data(s):
    r = np.random.default_rng(22)
    m, T = scaled(200, s, 10), 500
    return {"S": np.cumsum(r.standard_normal((m, T)), 1) / 10 + 0.1 * r.standard_normal((m, T)), "radius": None}


@workload("dtw_full", "200 series x 500, all pairs, squared cost, sqrt of total, no band")
def dtw_full(s):
    return dtw_data(s)


@workload("dtw_band", "200 series x 500, all pairs, Sakoe-Chiba |i-j| <= 50 (10%)")
def dtw_band(s):
    return dict(dtw_data(s), radius=50)


def warping_quality(d, r):
    M = array(r["D"])
    return {"sum": float(M[np.triu_indices(len(M), 1)].sum()), "pairs": len(M) * (len(M) - 1) // 2}


def _dtai(par, prune=False):
    def setup(d):
        from dtaidistance import dtw

        if dtw.dtw_cc is None:
            raise Infeasible("C extension not available")
        kw = {} if d["radius"] is None else {"window": d["radius"] + 1}
        if prune:
            kw["use_pruning"] = True
        return lambda: {"D": dtw.distance_matrix(d["S"], parallel=par and threads() > 1, use_c=True, **kw)}

    return setup


def _tslearn(d):
    from tslearn.metrics import cdist_dtw

    kw = {} if d["radius"] is None else {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": d["radius"]}
    S = d["S"][:, :, None]
    return lambda: {"D": cdist_dtw(S, n_jobs=threads(), **kw)}


for _w in (dtw_full, dtw_band):
    _w.quality(warping_quality)
    _w.peer("dtaidistance", note="C + OpenMP")(_dtai(True))
    _w.peer("dtaidistance_prune", note="C + OpenMP, use_pruning (exact)")(_dtai(True, True))
    _w.peer("dtaidistance_1", note="C, one thread")(_dtai(False))
    _w.peer("tslearn", note="cdist_dtw (numba), n_jobs = threads")(_tslearn)


def warped(d):
    lk = library()
    lk.alignment.dtw_matrix(d["S"][:30], metric="sqeuclidean", band=d["radius"])
    return lambda: {"D": lk.alignment.dtw_matrix(d["S"], metric="sqeuclidean", band=d["radius"])}


dtw_full.peer("likely", note="dtw_matrix(S, metric='sqeuclidean')")(warped)
dtw_band.peer("likely", note="dtw_matrix(S, metric='sqeuclidean', band=50)")(warped)
