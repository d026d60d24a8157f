//! The results for programs: one object a line.

use serde::Serialize;

use super::{Figure, GrowthPoint, Machine, Memory, Report};

#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line<'a> {
    Machine(&'a Machine),
    Figure(&'a Figure),
    GrowthPoint(&'a GrowthPoint),
    Memory(&'a Memory),
}

/// The report as JSON objects; `record` says what each one is.
pub fn objects(report: &Report) -> Vec<serde_json::Value> {
    let machine = std::iter::once(Line::Machine(&report.machine));
    let figures = report.figures.iter().map(Line::Figure);
    let growth = report.growth.iter().map(Line::GrowthPoint);
    let memory = report.memory.iter().map(Line::Memory);
    machine
        .chain(figures)
        .chain(growth)
        .chain(memory)
        // Numbers and texts always serialise.
        .filter_map(|line| serde_json::to_value(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Goal;

    #[test]
    fn every_object_says_what_it_is() {
        let figure = Figure::beside(
            "commits",
            "pipelined commits",
            "entries/s",
            vec![50.0],
            vec![100.0],
            Some(Goal::RatioAtLeast(0.5)),
        );
        let report = Report {
            machine: Machine {
                processors: 2,
                load_before: 0.5,
                postgres: "15".to_owned(),
                rounds: 1,
                scale: 1.0,
                seed: 1,
            },
            figures: vec![figure],
            growth: Vec::new(),
            memory: vec![Memory {
                measure: "commits",
                service: "ingest",
                peak_bytes: 7,
                met: true,
            }],
            curves: Vec::new(),
        };
        let objects = objects(&report);
        let kinds: Vec<_> = objects.iter().map(|object| object["record"].as_str()).collect();
        assert_eq!(kinds, [Some("machine"), Some("figure"), Some("memory")]);
        assert_eq!(objects[1]["ratio"], 0.5);
        assert_eq!(objects[1]["goal"]["kind"], "ratio_at_least");
        assert_eq!(objects[1]["met"], true);
    }
}
