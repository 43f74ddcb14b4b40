//! The grid as a chart: commits a second of every device, a group of bars for
//! each number of committers, at 128 bytes and zero-filled room, and which
//! device wins each group.

use super::grid::{COMMITTERS, Cell};
use crate::report::figure;
use std::fmt::Write;

const PAYLOAD: usize = 128;
const BAR: f64 = 22.0;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 520.0;
const COLORS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f",
    "#bab0ac", "#d37295",
];

/// The chart as an SVG document.
pub fn svg(cells: &[Cell]) -> String {
    let mut body = String::new();
    let mut y = 50.0;
    for committers in COMMITTERS {
        y = group(&mut body, cells, committers, y);
    }
    let (width, height) = (LEFT + WIDTH + 130.0, y + 10.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"26\" font-size=\"17\">Durable commits a second, {PAYLOAD} bytes each</text>\n\
         {body}</svg>\n"
    )
}

/// The bars of one number of committers; where the next group begins.
fn group(body: &mut String, cells: &[Cell], committers: usize, mut y: f64) -> f64 {
    let rows: Vec<(&str, f64)> = cells
        .iter()
        .filter(|cell| {
            cell.committers == committers
                && cell.payload_bytes == PAYLOAD
                && cell.preallocation == "zero-fill"
        })
        .filter_map(|cell| Some((cell.device.as_str(), cell.commits_per_second?)))
        .collect();
    // What is not durable, or no log, is shown and does not compete.
    let competes = |name: &str| name != "memory" && !name.starts_with("raw");
    let best = rows
        .iter()
        .filter(|(name, _)| competes(name))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let longest = rows
        .iter()
        .filter(|(name, _)| *name != "memory")
        .map(|(_, rate)| *rate)
        .fold(1.0, f64::max);
    let winner = best.map_or("", |(name, _)| name);
    line(
        body,
        10.0,
        y + 15.0,
        &format!("{committers} committers: {winner} wins"),
    );
    y += BAR;
    for (index, (name, rate)) in rows.iter().enumerate() {
        let width = (rate / longest).min(1.0) * WIDTH;
        let color = COLORS[index % COLORS.len()];
        let mark = if *name == winner { " ★" } else { "" };
        let over = if *rate > longest { " →" } else { "" };
        line(body, 24.0, y + 15.0, name);
        // Writing to a string cannot fail.
        let _ = writeln!(
            body,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" fill=\"{color}\"/>",
            y + 2.0,
            BAR - 5.0
        );
        let text = format!("{}{over}{mark}", figure(*rate));
        line(body, LEFT + width + 6.0, y + 15.0, &text);
        y += BAR;
    }
    y + 14.0
}

fn line(body: &mut String, x: f64, y: f64, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    // Writing to a string cannot fail.
    let _ = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}
