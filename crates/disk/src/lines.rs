//! Cache lines: which fields of a shared structure move between processors together.

/// In a `repr(C)` structure, the field behind it begins a cache line of its own (two
/// of 64 bytes, which some processors fetch together). What one thread writes all the
/// time then takes nothing along that others only read; and what is written together
/// moves together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(align(128))]
pub struct LineStart;
