//! Results of an earlier run, as far as they were not measured anew. Pure.

use super::{Machine, Name, Report};
use crate::Measure;

/// The fresh results, and of the earlier ones those of the measures that the fresh run did not have; in the order of the
/// measures. Which run a result comes from is in [`Report::machines`].
pub fn merge(mut fresh: Report, mut earlier: Report) -> Report {
    name_measures(&mut earlier);
    let anew: Vec<Name> = measured(&fresh);
    let is_kept = |measure: &Name| !anew.contains(measure);

    earlier.figures.retain(|figure| is_kept(&figure.measure));
    earlier.memory.retain(|memory| is_kept(&memory.measure));
    for machine in &mut earlier.machines {
        machine.measures.retain(is_kept);
    }
    earlier.machines.retain(|machine| !machine.measures.is_empty());

    fresh.machines.extend(earlier.machines);
    fresh.figures.extend(earlier.figures);
    fresh.memory.extend(earlier.memory);
    if is_kept(&Name::from(Measure::Growth.name())) {
        fresh.growth = earlier.growth;
    }
    // Sorting keeps the order of what is equal: a measure's figures stay as the measure gave them.
    fresh
        .machines
        .sort_by_key(|machine| machine.measures.iter().map(place).min());
    fresh.figures.sort_by_key(|figure| place(&figure.measure));
    fresh.memory.sort_by_key(|memory| place(&memory.measure));
    fresh
}

/// Results that were written before a run named its measures are of one run.
fn name_measures(report: &mut Report) {
    let mut of_figures: Vec<Name> = Vec::new();
    for figure in &report.figures {
        if !of_figures.contains(&figure.measure) {
            of_figures.push(figure.measure.clone());
        }
    }
    let named = measured(report);
    of_figures.retain(|measure| !named.contains(measure));
    let is_nameless = |machine: &&mut Machine| machine.measures.is_empty();
    if let Some(machine) = report.machines.iter_mut().find(is_nameless) {
        machine.measures = of_figures;
    }
}

fn measured(report: &Report) -> Vec<Name> {
    let machines = report.machines.iter();
    machines.flat_map(|machine| machine.measures.clone()).collect()
}

/// The place of a measure among all of them.
fn place(measure: &Name) -> usize {
    let is_it = |known: &Measure| known.name() == measure.as_ref();
    Measure::ALL.iter().position(is_it).unwrap_or(Measure::ALL.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Figure, GrowthPoint};

    fn machine(measures: &[&'static str], day: Option<&str>) -> Machine {
        Machine {
            measures: measures.iter().map(|measure| Name::from(*measure)).collect(),
            day: day.map(str::to_owned),
            processors: 2,
            load_before: None,
            postgres: "15".to_owned(),
            replicas: 1,
            rounds: 1,
            scale: 1.0,
            seed: 1,
        }
    }

    fn figure(measure: &'static str, value: f64) -> Figure {
        Figure::alone(measure, "figure", "ms", vec![value], None)
    }

    fn found(report: &Report) -> Vec<(&str, f64)> {
        let figures = report.figures.iter();
        figures
            .map(|figure| (figure.measure.as_ref(), figure.ours.median))
            .collect()
    }

    fn earlier() -> Report {
        Report {
            machines: vec![machine(&[], None)],
            figures: vec![
                figure("commits", 1.0),
                figure("growth", 1.0),
                figure("barrier", 1.0),
            ],
            growth: vec![GrowthPoint {
                body_bytes: 1,
                log_append_ms: 1.0,
                store_append_ms: 1.0,
                resume_ms: 1.0,
                first_byte_ms: 1.0,
            }],
            ..Report::default()
        }
    }

    #[test]
    fn what_was_not_measured_anew_is_kept_and_says_of_which_run_it_is() {
        let fresh = Report {
            machines: vec![machine(&["commits", "archive"], Some("2026-11-30"))],
            figures: vec![figure("commits", 2.0), figure("archive", 2.0)],
            ..Report::default()
        };
        let merged = merge(fresh, earlier());
        assert_eq!(
            found(&merged),
            [
                ("commits", 2.0),
                ("growth", 1.0),
                ("barrier", 1.0),
                ("archive", 2.0)
            ]
        );
        assert_eq!(merged.growth.len(), 1);
        let runs: Vec<_> = merged
            .machines
            .iter()
            .map(|machine| (machine.measures.join(" "), machine.day.clone()))
            .collect();
        assert_eq!(
            runs,
            [
                ("commits archive".to_owned(), Some("2026-11-30".to_owned())),
                ("growth barrier".to_owned(), None)
            ]
        );
    }

    #[test]
    fn a_run_of_everything_leaves_nothing_of_an_earlier_one() {
        let fresh = Report {
            machines: vec![machine(&["commits", "growth", "barrier"], None)],
            figures: vec![figure("commits", 2.0)],
            ..Report::default()
        };
        assert_eq!(merge(fresh.clone(), earlier()), fresh);
    }
}
