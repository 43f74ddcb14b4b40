//! Windows in words.

use super::expr::{expr_text, list_text, sort_text};
use crate::bind::expr::{
    Exclude, Expr, Frame, FrameBound, FrameMode, OverWindow, SortKey, WindowCall, Windowing,
};

/// One line about windows that divide and order their rows alike.
pub fn window_text(window: &Windowing) -> String {
    let calls: Vec<String> = window.calls.iter().map(call_text).collect();
    let mut text = format!("WINDOW {}", calls.join(", "));
    let mut keys = |word: &str, keys: &[SortKey]| {
        if !keys.is_empty() {
            let keys: Vec<String> = keys.iter().map(sort_text).collect();
            text.push_str(&format!(" {word} BY {}", keys.join(", ")));
        }
    };
    keys("PARTITION", &window.partition);
    keys("ORDER", &window.order);
    text
}

fn call_text(call: &WindowCall) -> String {
    let args = match &call.function {
        OverWindow::Aggregate(_) if call.args.is_empty() => "*".to_owned(),
        _ => list_text(&call.args),
    };
    let filter = call
        .filter
        .as_ref()
        .map_or(String::new(), |f| format!(" FILTER {}", expr_text(f)));
    let has_frame = match &call.function {
        OverWindow::Aggregate(_) => true,
        OverWindow::Function(function) => function.kind.has_frame(),
    };
    let frame = if has_frame {
        frame_text(&call.frame)
    } else {
        String::new()
    };
    format!("{}({args}){filter}{frame}", call.function.name())
}

/// The frame, nothing where it is the usual one.
fn frame_text(frame: &Frame) -> String {
    let is_usual = frame.mode == FrameMode::Range
        && frame.start == FrameBound::Unbounded
        && frame.end == FrameBound::CurrentRow
        && frame.exclude == Exclude::Nothing;
    if is_usual {
        return String::new();
    }
    let mode = match frame.mode {
        FrameMode::Rows => "ROWS",
        FrameMode::Range => "RANGE",
        FrameMode::Groups => "GROUPS",
    };
    let exclude = match frame.exclude {
        Exclude::Nothing => "",
        Exclude::CurrentRow => " EXCLUDE CURRENT ROW",
        Exclude::Group => " EXCLUDE GROUP",
        Exclude::Ties => " EXCLUDE TIES",
    };
    let start = bound_text(&frame.start, "PRECEDING");
    let end = bound_text(&frame.end, "FOLLOWING");
    format!(" {mode} BETWEEN {start} AND {end}{exclude}")
}

fn bound_text(bound: &FrameBound<Expr>, unbounded: &str) -> String {
    match bound {
        FrameBound::Unbounded => format!("UNBOUNDED {unbounded}"),
        FrameBound::Preceding(offset) => format!("{} PRECEDING", expr_text(offset)),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::Following(offset) => format!("{} FOLLOWING", expr_text(offset)),
    }
}
