//! CAST: conversion by force.

use super::affinity::Affinity;
use super::number::{IntegerState, exact_integer, integer_prefix, parse_real};
use super::{Value, ValueRef};

/// `CAST(value AS type)`, the type given by its affinity.
pub fn cast(value: ValueRef<'_>, to: Affinity) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    match to {
        Affinity::Blob => match value.to_text() {
            Some(bytes) => Value::Blob(bytes.into_owned()),
            None => Value::Null,
        },
        Affinity::Text => match value.to_text() {
            Some(bytes) => Value::Text(bytes.into_owned()),
            None => Value::Null,
        },
        Affinity::Integer => Value::Integer(value.to_integer()),
        Affinity::Real => Value::real(value.to_real()),
        Affinity::Numeric => match value.bytes() {
            Some(text) => numeric(text),
            None => value.to_value(),
        },
    }
}

fn numeric(text: &[u8]) -> Value {
    let real = parse_real(text);
    if !real.fractional {
        let integer = integer_prefix(text);
        if integer.state != IntegerState::Overflow {
            return Value::Integer(integer.value);
        }
    }
    exact_integer(real.value).map_or(Value::Real(real.value), Value::Integer)
}
