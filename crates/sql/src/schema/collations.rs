//! Collations as the schema names them.

use crate::ast;
use crate::error::{Error, Result};
use crate::value::Collation;
use crate::value::collate::CollationName;

/// A collation as the schema names it: whether a connection has one of the program's is
/// seen where that is used.
pub fn declared_collation(name: &ast::Name) -> Result<Collation> {
    match Collation::by_name(&name.text) {
        Some(known) => Ok(known),
        None => CollationName::new(&name.text).map(Collation::Program),
    }
}

/// Only collations with sort keys may be in an index.
pub fn indexed_collation(collation: Collation) -> Result<Collation> {
    match collation.is_of_program() {
        false => Ok(collation),
        true => Err(Error::sql(format!(
            "an index by the collation {} is not supported",
            collation.name()
        ))
        .with_hint(
            "it compares texts and makes no keys of them; let the index, or the column that is UNIQUE, have another one: COLLATE BINARY, NOCASE or RTRIM",
        )),
    }
}
