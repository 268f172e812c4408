"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.metrics.clusterings import adjusted_mutual_information as adjusted_mutual_information
from likely.metrics.clusterings import adjusted_rand_index as adjusted_rand_index
from likely.metrics.clusterings import best_matching as best_matching
from likely.metrics.clusterings import contingency_table as contingency_table
from likely.metrics.clusterings import fowlkes_mallows as fowlkes_mallows
from likely.metrics.clusterings import normalized_mutual_information as normalized_mutual_information
from likely.metrics.clusterings import purity as purity
from likely.metrics.clusterings import rand_index as rand_index
from likely.metrics.clusterings import v_measure as v_measure
from likely.metrics.clusterings import variation_of_information as variation_of_information
from likely.metrics.confidence_intervals import proportion_interval as proportion_interval
from likely.metrics.distances_in_high_dimensions import DistanceDiagnostics as DistanceDiagnostics
from likely.metrics.distances_in_high_dimensions import distance_diagnostics as distance_diagnostics
from likely.metrics.goodness_of_fit import mahalanobis_goodness_of_fit as mahalanobis_goodness_of_fit
from likely.metrics.goodness_of_fit import shell_volume_fraction as shell_volume_fraction
from likely.metrics.high_dimensional_geometry import gaussian_shell as gaussian_shell
from likely.metrics.high_dimensional_geometry import hubness as hubness
from likely.metrics.high_dimensional_geometry import intrinsic_dimension as intrinsic_dimension
from likely.metrics.high_dimensional_geometry import relative_contrast as relative_contrast
from likely.metrics.high_dimensional_geometry import shell_to_ball_ratio as shell_to_ball_ratio
from likely.metrics.operating_point import operating_threshold as operating_threshold
from likely.metrics.silhouette import calinski_harabasz as calinski_harabasz
from likely.metrics.silhouette import davies_bouldin as davies_bouldin
from likely.metrics.silhouette import silhouette_samples as silhouette_samples
from likely.metrics.silhouette import silhouette_score as silhouette_score
from likely.metrics.unimodality import check_unimodality as check_unimodality
