//! The plots, as SVG.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{MEMORY_GOAL, Report};
use crate::Error;
use crate::stats::cumulative;

const WIDTH: u32 = 860;

/// Bytes of a megabyte, as memory is counted.
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Points of a cumulative curve, at most: more only make the file larger.
const CURVE_POINTS: usize = 400;

const COLOURS: [RGBColor; 2] = [RGBColor(31, 119, 180), RGBColor(150, 150, 150)];
const GOAL_COLOUR: RGBColor = RGBColor(200, 40, 40);

/// A bar: its name, its length, and where its goal is.
struct Bar {
    name: String,
    value: f64,
    goal: Option<f64>,
}

/// A line: its name and its points.
struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

/// Draws what there is to draw into `folder`. Returns the files' names. A curve of a measure that was run earlier can't be drawn
/// again: its plot is kept, if it is there.
pub fn draw(report: &Report, folder: &Path) -> Result<Vec<String>, Error> {
    let mut drawn = Vec::new();
    let mut next = |name: &str| {
        drawn.push(name.to_owned());
        folder.join(name)
    };
    let ratios = ratio_bars(report);
    if !ratios.is_empty() {
        let title = "Wakelog beside the raw engine: ratio (red: goal)";
        bars(&next("ratios.svg"), title, &ratios)?;
    }
    for measure in ["unary", "barrier"] {
        let lines: Vec<Line> = report
            .curves
            .iter()
            .filter(|curve| curve.measure == measure)
            .map(|curve| Line {
                name: curve.name,
                points: thinned(cumulative(&curve.values)),
            })
            .collect();
        if !lines.is_empty() {
            let title = format!("{measure}: calls that took no longer, %");
            chart(&next(&format!("{measure}.svg")), &title, "ms", &lines)?;
            continue;
        }
        let name = format!("{measure}.svg");
        let is_kept = report.figures.iter().any(|figure| figure.measure == measure);
        if is_kept && folder.join(&name).exists() {
            next(&name);
        }
    }
    if !report.growth.is_empty() {
        let line = |name, value: fn(&super::GrowthPoint) -> f64| Line {
            name,
            points: report
                .growth
                .iter()
                .map(|point| (point.body_bytes as f64 / 1e6, value(point)))
                .collect(),
        };
        let appends = [
            line("ack by the log", |point| point.log_append_ms),
            line("ack by the hot tail", |point| point.store_append_ms),
        ];
        let body = "body, MB";
        chart(
            &next("growth-append.svg"),
            "Append as a session grows, ms",
            body,
            &appends,
        )?;
        let resumes = [line("resume", |point| point.resume_ms)];
        chart(
            &next("growth-resume.svg"),
            "Resume as a session grows, ms",
            body,
            &resumes,
        )?;
    }
    if !report.memory.is_empty() {
        let memory: Vec<Bar> = report
            .memory
            .iter()
            .map(|memory| Bar {
                name: format!("{}: {}", memory.measure, memory.service),
                value: memory.peak_bytes as f64 / MEBIBYTE,
                goal: Some(MEMORY_GOAL as f64 / MEBIBYTE),
            })
            .collect();
        bars(
            &next("memory.svg"),
            "Peak memory of each service, MB (red: goal)",
            &memory,
        )?;
    }
    Ok(drawn)
}

fn ratio_bars(report: &Report) -> Vec<Bar> {
    use super::Goal;
    report
        .figures
        .iter()
        .filter_map(|figure| {
            let goal = figure.goal.and_then(|goal| match goal {
                Goal::RatioAtLeast(goal) | Goal::RatioAtMost(goal) => Some(goal),
                Goal::AtMost(_) => None,
            });
            // A figure that nothing is said about would only stretch the axis.
            goal?;
            Some(Bar {
                name: format!("{}: {}", figure.measure, figure.what),
                value: figure.ratio?,
                goal,
            })
        })
        .collect()
}

/// Evenly chosen points, the last one always among them.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(CURVE_POINTS).max(1);
    let last = points.last().copied();
    points.into_iter().step_by(step).chain(last).collect()
}

fn bars(path: &Path, title: &str, bars: &[Bar]) -> Result<(), Error> {
    let height = 90 + 26 * bars.len() as u32;
    let root = canvas(path, height)?;
    let longest = bars
        .iter()
        .flat_map(|bar| [bar.value, bar.goal.unwrap_or_default()])
        .fold(0.0, f64::max);
    let rows = bars.len() as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(300)
        .build_cartesian_2d(0.0..longest * 1.12, 0.0..rows)
        .map_err(wrong)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .label_style(("sans-serif", 12))
        .draw()
        .map_err(wrong)?;
    for (index, bar) in bars.iter().enumerate() {
        let (top, bottom) = (rows - index as f64 - 0.15, rows - index as f64 - 0.85);
        let rectangle = Rectangle::new([(0.0, bottom), (bar.value, top)], COLOURS[0].filled());
        let (_, right) = chart.backend_coord(&(bar.value, f64::midpoint(top, bottom)));
        let (left, _) = chart.backend_coord(&(bar.value, top));
        chart.draw_series([rectangle]).map_err(wrong)?;
        if let Some(goal) = bar.goal {
            let mark = PathElement::new(
                vec![(goal, bottom - 0.1), (goal, top + 0.1)],
                GOAL_COLOUR.stroke_width(2),
            );
            chart.draw_series([mark]).map_err(wrong)?;
        }
        let style = ("sans-serif", 12).into_font();
        root.draw(&Text::new(bar.name.clone(), (14, right - 6), style.clone()))
            .map_err(wrong)?;
        root.draw(&Text::new(
            format!("{:.2}", bar.value),
            (left + 6, right - 6),
            style,
        ))
        .map_err(wrong)?;
    }
    root.present().map_err(wrong)
}

fn chart(path: &Path, title: &str, across: &str, lines: &[Line]) -> Result<(), Error> {
    let root = canvas(path, 360)?;
    let points = || lines.iter().flat_map(|line| &line.points);
    let right = points().map(|point| point.0).fold(0.0, f64::max);
    let top = points().map(|point| point.1).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..right * 1.02, 0.0..top * 1.05)
        .map_err(wrong)?;
    chart
        .configure_mesh()
        .x_desc(across)
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(wrong)?;
    for (line, colour) in lines.iter().zip(COLOURS) {
        let points = line.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))
            .map_err(wrong)?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .label_font(("sans-serif", 12))
        .draw()
        .map_err(wrong)?;
    root.present().map_err(wrong)
}

fn canvas(path: &Path, height: u32) -> Result<DrawingArea<SVGBackend<'_>, Shift>, Error> {
    let root = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE).map_err(wrong)?;
    Ok(root)
}

fn wrong(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Curve, Figure, Goal, GrowthPoint, Machine, Memory};

    #[test]
    fn everything_that_was_measured_is_drawn() {
        let point = |body_bytes| GrowthPoint {
            body_bytes,
            log_append_ms: 0.4,
            store_append_ms: 9.0,
            resume_ms: 20.0,
            first_byte_ms: 15.0,
        };
        let report = Report {
            machines: Vec::<Machine>::new(),
            figures: vec![
                Figure::beside(
                    "commits",
                    "rate",
                    "entries/s",
                    vec![1.0],
                    vec![2.0],
                    Some(Goal::RatioAtLeast(0.5)),
                ),
                Figure::alone("barrier", "first byte", "ms", vec![1.0], None),
            ],
            growth: vec![point(1_000_000), point(2_000_000)],
            memory: vec![Memory {
                measure: "commits".into(),
                service: "ingest".into(),
                peak_bytes: 50 << 20,
                met: true,
            }],
            curves: vec![Curve {
                measure: "unary",
                name: "Wakelog",
                values: (1..5_000).map(f64::from).collect(),
            }],
        };
        let folder = tempfile::tempdir().unwrap();
        // Of an earlier run, whose values nobody has any more.
        std::fs::write(folder.path().join("barrier.svg"), "<svg</svg>").unwrap();
        let drawn = draw(&report, folder.path()).unwrap();
        assert_eq!(
            drawn,
            [
                "ratios.svg",
                "unary.svg",
                "barrier.svg",
                "growth-append.svg",
                "growth-resume.svg",
                "memory.svg"
            ]
        );
        for name in drawn {
            let svg = std::fs::read_to_string(folder.path().join(&name)).unwrap();
            assert!(
                svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
                "{name}"
            );
            assert!(svg.len() < 64 * 1024, "{name} has {} bytes", svg.len());
        }
    }

    #[test]
    fn a_thinned_curve_keeps_its_end() {
        let points: Vec<(f64, f64)> = (1..=5_000).map(|value| (f64::from(value), 0.0)).collect();
        let thinned = thinned(points);
        assert!(thinned.len() <= CURVE_POINTS + 1);
        assert_eq!(thinned.last(), Some(&(5_000.0, 0.0)));
        assert!(super::thinned(Vec::new()).is_empty());
    }
}
