//! Medians, percentiles and ratios. Pure.

use std::time::Duration;

/// The middle value; the mean of the two middle ones if their number is even. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The smallest value that at least `percent` of all values do not exceed (nearest rank). `None` for no values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).or_else(|| sorted.last()).copied()
}

/// The median of `ours / baseline`, round by round: what slows a whole round down slows both of its halves down.
/// `None` unless there is a round, and no baseline is zero.
pub fn median_ratio(ours: &[f64], baseline: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours
        .iter()
        .zip(baseline)
        .map(|(ours, baseline)| ours / baseline)
        .collect();
    median(&ratios).filter(|ratio| ratio.is_finite())
}

/// The same durations in milliseconds.
pub fn milliseconds(durations: &[Duration]) -> Vec<f64> {
    durations
        .iter()
        .map(|duration| duration.as_secs_f64() * 1_000.0)
        .collect()
}

/// For a cumulative plot: each value with the percentage of values that do not exceed it.
pub fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = sorted(values);
    let count = sorted.len() as f64;
    sorted
        .into_iter()
        .enumerate()
        .map(|(index, value)| (value, (index + 1) as f64 / count * 100.0))
        .collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), Some(50.0));
        assert_eq!(percentile(&values, 99.0), Some(99.0));
        assert_eq!(percentile(&values, 99.1), Some(100.0));
        assert_eq!(percentile(&values, 100.0), Some(100.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&[7.0], 99.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // The second round was slow for both.
        assert_eq!(median_ratio(&[50.0, 5.0, 60.0], &[100.0, 10.0, 100.0]), Some(0.5));
        assert_eq!(median_ratio(&[], &[]), None);
        assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn a_cumulative_curve_ends_at_all_values() {
        let curve = cumulative(&[2.0, 1.0, 4.0, 3.0]);
        assert_eq!(curve, [(1.0, 25.0), (2.0, 50.0), (3.0, 75.0), (4.0, 100.0)]);
    }

    #[test]
    fn durations_become_milliseconds() {
        assert_eq!(milliseconds(&[Duration::from_micros(1_500)]), [1.5]);
    }
}
