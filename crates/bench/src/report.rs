//! What a run says: one JSON shape for every command, and the same as a table.
//!
//! A ratio is always ours divided by SQLite's, whichever direction is better.

use crate::machine::Machine;
use crate::stats::{self, Pairs, Percentiles, Samples};
use anyhow::{Context, Result};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use std::path::Path;

/// Which direction of a figure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Lower,
    Higher,
}

/// A distribution or a single figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figures {
    Distribution(Percentiles),
    Single { value: f64 },
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Metric {
    pub name: String,
    pub better: Better,
    pub unit: &'static str,
    pub ours: Figures,
    pub sqlite: Figures,
    pub ratio: Figures,
    /// The quotient taken round by round, where there were rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// What was measured, in a few words.
    pub what: String,
    /// What the second figure is, where it is not SQLite's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

impl Metric {
    /// Latencies in microseconds, measured round by round.
    pub fn latency(name: &str, what: &str, ours: &Samples, sqlite: &Samples) -> Self {
        let pairs = stats::pairs(ours, sqlite);
        let mut metric = Self::distribution(name, what, "µs", ours.micros(), sqlite.micros());
        metric.pairs = Some(pairs);
        metric
    }

    /// Percentiles in a unit of their own; lower is better.
    pub fn distribution(
        name: &str,
        what: &str,
        unit: &'static str,
        ours: Percentiles,
        sqlite: Percentiles,
    ) -> Self {
        Self {
            name: name.into(),
            better: Better::Lower,
            unit,
            ours: Figures::Distribution(ours),
            sqlite: Figures::Distribution(sqlite),
            ratio: Figures::Distribution(ours.zip(sqlite, |a, b| a / b)),
            pairs: None,
            what: what.into(),
            beside: None,
        }
    }

    /// Says what the second figure is, where it is not SQLite's.
    pub fn beside(mut self, beside: &str) -> Self {
        self.beside = Some(beside.into());
        self
    }

    /// One figure a side.
    pub fn single(
        name: &str,
        what: &str,
        better: Better,
        unit: &'static str,
        ours: f64,
        sqlite: f64,
    ) -> Self {
        Self {
            name: name.into(),
            better,
            unit,
            ours: Figures::Single { value: ours },
            sqlite: Figures::Single { value: sqlite },
            ratio: Figures::Single {
                value: ours / sqlite,
            },
            pairs: None,
            what: what.into(),
            beside: None,
        }
    }

    /// A rate measured a few times a side: the medians.
    pub fn rate(name: &str, what: &str, unit: &'static str, ours: &[f64], sqlite: &[f64]) -> Self {
        let (a, b) = (stats::median(ours), stats::median(sqlite));
        let mut metric = Self::single(name, what, Better::Higher, unit, a, b);
        metric.pairs = Some(stats::pairs_of(ours, sqlite));
        metric
    }
}

/// All that one run found.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub sqlite_version: String,
    pub metrics: Vec<Metric>,
    /// What the run was to reach, where the command knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<Bar>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// `wal`: every combination of device and load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log_grid: Vec<crate::logs::Cell>,
}

/// A figure, and what it is to be.
#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    pub case: String,
    pub better: Better,
    pub bar: f64,
    pub figure: f64,
    pub met: bool,
}

impl Bar {
    pub fn at_least(case: &str, bar: f64, figure: f64) -> Self {
        Self {
            case: case.into(),
            better: Better::Higher,
            bar,
            figure,
            met: figure >= bar,
        }
    }

    pub fn at_most(case: &str, bar: f64, figure: f64) -> Self {
        Self {
            case: case.into(),
            better: Better::Lower,
            bar,
            figure,
            met: figure <= bar,
        }
    }
}

impl Report {
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            sqlite_version: rusqlite::version().into(),
            metrics: Vec::new(),
            bars: Vec::new(),
            notes: Vec::new(),
            log_grid: Vec::new(),
        }
    }

    /// Adds a metric and says on standard error that it is there.
    pub fn push(&mut self, metric: Metric) {
        let ratio = match metric.ratio {
            Figures::Distribution(p) => p.p50,
            Figures::Single { value } => value,
        };
        let other = metric.beside.as_deref().unwrap_or("SQLite");
        eprintln!("  {:<28} {:>8} × {other}", metric.name, figure(ratio));
        self.metrics.push(metric);
    }

    /// Adds a bar.
    pub fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Adds a line to be printed below the tables.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Prints the table, and writes the JSON file if one is wanted.
    pub fn finish(&self, json: Option<&Path>) -> Result<()> {
        println!("{}", self.machine);
        println!("SQLite {}, bundled\n", self.sqlite_version);
        println!("{}", self.table());
        println!(
            "\nRatios are ours / SQLite's (or / what stands beside); in the bar, | is where that stands."
        );
        if !self.bars.is_empty() {
            println!("\n{}", self.bar_table());
        }
        for note in &self.notes {
            println!("{note}");
        }
        if !self.log_grid.is_empty() {
            println!("\n{}", crate::logs::table(&self.log_grid));
        }
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(self)?;
            std::fs::write(path, text + "\n")
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn bar_table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["case", "bar", "figure", "met"]);
        for bar in &self.bars {
            let sign = match bar.better {
                Better::Lower => "≤",
                Better::Higher => "≥",
            };
            table.add_row([
                Cell::new(&bar.case),
                right(&format!("{sign} {}", figure(bar.bar))),
                right(&figure(bar.figure)),
                Cell::new(if bar.met { "yes" } else { "no" }),
            ]);
        }
        table
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header([
            "metric", "unit", "better", "ours", "SQLite", "ratio", "by pairs", "",
        ]);
        for metric in &self.metrics {
            table.add_row([
                Cell::new(match &metric.beside {
                    Some(other) => format!("{} (beside: {other})", metric.name),
                    None => metric.name.clone(),
                }),
                Cell::new(metric.unit),
                Cell::new(match metric.better {
                    Better::Lower => "lower",
                    Better::Higher => "higher",
                }),
                right(&columns(metric.ours)),
                right(&columns(metric.sqlite)),
                right(&columns(metric.ratio)),
                right(&metric.pairs.map_or(String::new(), |pairs| {
                    format!("{}–{}", figure(pairs.low), figure(pairs.high))
                })),
                Cell::new(bar(metric.ratio)),
            ]);
        }
        table
    }
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn columns(figures: Figures) -> String {
    match figures {
        Figures::Distribution(p) => {
            format!("{} / {} / {}", figure(p.p50), figure(p.p95), figure(p.p99))
        }
        Figures::Single { value } => figure(value),
    }
}

/// Three significant digits, and digit groups in large numbers.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "–".into()
    } else if size >= 1_000.0 {
        grouped(value.round() as i64)
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Ten cells are SQLite's figure; twenty and an arrow are twice that or more.
fn bar(ratio: Figures) -> String {
    let ratio = match ratio {
        Figures::Distribution(p) => p.p50,
        Figures::Single { value } => value,
    };
    if !ratio.is_finite() {
        return String::new();
    }
    let filled = ((ratio * 10.0).round() as usize).min(20);
    let mut cells: String = (0..20.max(filled))
        .map(|i| match (i < filled, i) {
            (true, _) => '█',
            (false, 10) => '|',
            (false, _) => ' ',
        })
        .collect();
    if ratio > 2.05 {
        cells.push('▶');
    }
    cells.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        let texts: Vec<String> = [0.1234, 1.234, 12.34, 123.4, 1_234_567.0, f64::NAN]
            .into_iter()
            .map(figure)
            .collect();
        assert_eq!(texts, ["0.123", "1.23", "12.3", "123", "1,234,567", "–"]);
    }

    #[test]
    fn the_json_has_the_shape_that_tools_read() {
        let p = |p50, p95, p99| Percentiles { p50, p95, p99 };
        let metric = Metric::distribution("m", "w", "µs", p(1.0, 2.0, 3.0), p(2.0, 4.0, 4.0));
        let json = serde_json::to_value(&metric).unwrap();
        assert_eq!(json["better"], "lower");
        assert_eq!(
            json["ratio"],
            serde_json::json!({"p50": 0.5, "p95": 0.5, "p99": 0.75})
        );
        let metric = Metric::single("s", "w", Better::Higher, "rows/s", 3.0, 2.0);
        let json = serde_json::to_value(&metric).unwrap();
        assert_eq!(json["ratio"], serde_json::json!({"value": 1.5}));
    }
}
