//! `x LIKE 'abc%'` and `x GLOB 'abc*'` as ranges: texts that match begin with what stands
//! before the first wildcard, and so lie between that and the text right behind all of
//! those. The condition itself is evaluated for what lies there.
//!
//! That is so of texts. In a column of TEXT affinity there are no numbers, and NULL never
//! matches, but a blob may, as the text of the same bytes: all blobs are looked at as well.

use crate::bind::expr::{Comparison, Expr, ExprKind, LikeKind};
use crate::value::{Affinity, Collation, Value};

/// Patterns longer than this raise an error when they are evaluated, if they are.
const PATTERN_MAX: usize = 1_000;

/// What a pattern says of the texts that match.
pub struct Prefix<'e> {
    /// The expression that is matched.
    pub operand: &'e Expr,
    /// The lowest text, and the first one behind all others.
    pub bounds: [Expr; 2],
    /// How texts are compared with those.
    pub comparison: Comparison,
}

/// The prefix of a condition that is LIKE or GLOB of a constant pattern.
pub fn prefix(condition: &Expr) -> Option<Prefix<'_>> {
    let ExprKind::Like {
        kind,
        expr,
        pattern,
        escape: None,
        negated: false,
    } = &condition.kind
    else {
        return None;
    };
    let ExprKind::Literal(Value::Text(pattern)) = &pattern.kind else {
        return None;
    };
    if expr.props.affinity != Some(Affinity::Text) || pattern.len() > PATTERN_MAX {
        return None;
    }
    let (wildcards, collation) = match kind {
        LikeKind::Like => (&b"%_"[..], Collation::NoCase),
        LikeKind::LikeExact => (&b"%_"[..], Collation::Binary),
        LikeKind::Glob => (&b"*?["[..], Collation::Binary),
    };
    let low = before_wildcard(pattern, wildcards);
    let high = behind(low, collation)?;
    let text = |bytes: Vec<u8>| Expr::literal(Value::Text(bytes));
    Some(Prefix {
        operand: expr,
        bounds: [text(low.to_vec()), text(high)],
        comparison: Comparison {
            affinity: Affinity::Text,
            collation,
        },
    })
}

/// The beginning of a pattern up to a wildcard, a zero byte, where it ends, or what is not
/// UTF-8 or stands for that: a text may have other bytes there.
fn before_wildcard<'p>(pattern: &'p [u8], wildcards: &[u8]) -> &'p [u8] {
    let valid = match std::str::from_utf8(pattern) {
        Ok(text) => text,
        Err(error) => {
            let valid = pattern.get(..error.valid_up_to()).unwrap_or(&[]);
            std::str::from_utf8(valid).unwrap_or("")
        }
    };
    let ends = |c: char| {
        let is_wildcard = u8::try_from(c).is_ok_and(|byte| wildcards.contains(&byte));
        is_wildcard || c == '\0' || c == char::REPLACEMENT_CHARACTER
    };
    let end = valid.find(ends).unwrap_or(valid.len());
    pattern.get(..end).unwrap_or(&[])
}

/// The first text behind all that begin with this one; None for the empty one.
fn behind(text: &[u8], collation: Collation) -> Option<Vec<u8>> {
    let mut behind = text.to_vec();
    if collation == Collation::NoCase {
        // As keys have it: the letter behind Z is then one behind all letters.
        behind.make_ascii_lowercase();
    }
    let last = behind.last_mut()?;
    *last = last.checked_add(1)?;
    Some(behind)
}
