//! Values of JSON as parameters and out of columns, with the feature `serde_json`.
//!
//! Null is NULL, numbers are integers and reals (those beyond 64 bits with a sign texts),
//! all else is its text. Out of a column a text or blob has to be JSON.

use serde_json::{Number, Value as Json};

use super::{FromSql, FromSqlError, FromSqlResult, Null, ToSql, ToSqlOutput, ValueRef};
use crate::{Error, Result};

impl ToSql for Json {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        if self.is_null() {
            return Ok(Null.into());
        }
        if let Some(integer) = self.as_i64() {
            return Ok(integer.into());
        }
        match self.as_f64().filter(|_| self.is_f64()) {
            Some(real) => Ok(real.into()),
            None => match serde_json::to_string(self) {
                Ok(text) => Ok(text.into()),
                Err(e) => Err(Error::ToSqlConversionFailure(Box::new(e))),
            },
        }
    }
}

impl FromSql for Json {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(Self::Null),
            ValueRef::Integer(integer) => Ok(integer.into()),
            ValueRef::Real(real) => {
                let number = Number::from_f64(real).ok_or(FromSqlError::InvalidType)?;
                Ok(Self::Number(number))
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                serde_json::from_slice(bytes).map_err(FromSqlError::other)
            }
        }
    }
}
