//! Rows of a running statement.

use fallible_iterator::FallibleIterator;
use fallible_streaming_iterator::FallibleStreamingIterator;
use fulgurite_sql::session::{Prepared, Step};

use crate::types::{FromSql, FromSqlError, ValueRef};
use crate::{Error, Result, Statement};

/// The rows of a query, computed as they are asked for. Dropping it resets the
/// statement.
#[must_use = "Rows is lazy and will do nothing unless consumed"]
pub struct Rows<'stmt> {
    /// Where the engine's handle goes back to.
    home: &'stmt mut Option<Box<Prepared>>,
    /// Holds the handle meanwhile.
    row: Row<'stmt>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next step may give a row.
    Running,
    /// The row is there.
    OnRow,
    /// The statement was reset.
    Ended,
}

impl<'stmt> Rows<'stmt> {
    #[inline]
    pub(crate) fn new(stmt: &'stmt mut Statement<'_>) -> Self {
        let conn = stmt.conn;
        let home = &mut stmt.handle;
        let handle = home.take();
        Self {
            home,
            row: Row {
                stmt: Statement::new(conn, handle),
            },
            state: State::Running,
        }
    }

    /// The next row, or None at the end. The row lives until the next call.
    ///
    /// # Errors
    /// What the engine says; the query has then ended.
    #[expect(
        clippy::should_implement_trait,
        reason = "the row borrows from self, which Iterator cannot say"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<&Row<'stmt>>> {
        self.advance()?;
        Ok((*self).get())
    }

    #[inline]
    pub(crate) fn expect_row(&mut self) -> Result<&Row<'stmt>> {
        self.next()?.ok_or(Error::QueryReturnedNoRows)
    }

    /// Maps every row; a `FallibleIterator`.
    #[inline]
    pub fn map<F, B>(self, f: F) -> Map<'stmt, F>
    where
        F: FnMut(&Row<'_>) -> Result<B>,
    {
        Map { rows: self, f }
    }

    /// Maps every row; an `Iterator` of results.
    #[inline]
    pub fn mapped<F, B>(self, f: F) -> MappedRows<'stmt, F>
    where
        F: FnMut(&Row<'_>) -> Result<B>,
    {
        MappedRows { rows: self, map: f }
    }

    /// As [`Rows::mapped`] for functions with an error type of their own.
    #[inline]
    pub fn and_then<F, T, E>(self, f: F) -> AndThenRows<'stmt, F>
    where
        F: FnMut(&Row<'_>) -> Result<T, E>,
    {
        AndThenRows { rows: self, map: f }
    }

    /// The statement, as long as it has not ended.
    #[must_use]
    pub fn as_ref(&self) -> Option<&Statement<'stmt>> {
        (self.state != State::Ended).then_some(&self.row.stmt)
    }

    #[inline]
    fn end(&mut self) {
        if self.state != State::Ended {
            self.state = State::Ended;
            if let Some(handle) = &mut self.row.stmt.handle {
                handle.reset();
            }
        }
    }
}

impl Drop for Rows<'_> {
    #[inline]
    fn drop(&mut self) {
        self.end();
        *self.home = self.row.stmt.handle.take();
    }
}

impl<'stmt> FallibleStreamingIterator for Rows<'stmt> {
    type Error = Error;
    type Item = Row<'stmt>;

    #[inline]
    fn advance(&mut self) -> Result<()> {
        if self.state == State::Ended {
            return Ok(());
        }
        // An error resets the handle, so that the query cannot be stepped on.
        match self
            .row
            .stmt
            .handle_mut()
            .and_then(|h| h.step().map_err(Error::from_engine))
        {
            Ok(Step::Row) => {
                self.state = State::OnRow;
                Ok(())
            }
            Ok(Step::Done) => {
                self.end();
                Ok(())
            }
            Err(e) => {
                self.state = State::Ended;
                Err(e)
            }
        }
    }

    #[inline]
    fn get(&self) -> Option<&Row<'stmt>> {
        (self.state == State::OnRow).then_some(&self.row)
    }
}

/// Made by [`Rows::map`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Map<'stmt, F> {
    rows: Rows<'stmt>,
    f: F,
}

impl<F, B> FallibleIterator for Map<'_, F>
where
    F: FnMut(&Row<'_>) -> Result<B>,
{
    type Error = Error;
    type Item = B;

    #[inline]
    fn next(&mut self) -> Result<Option<B>> {
        self.rows.next()?.map(&mut self.f).transpose()
    }
}

/// Made by [`Statement::query_map`] and [`Rows::mapped`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct MappedRows<'stmt, F> {
    rows: Rows<'stmt>,
    map: F,
}

impl<T, F> Iterator for MappedRows<'_, F>
where
    F: FnMut(&Row<'_>) -> Result<T>,
{
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next().transpose()?;
        Some(row.and_then(&mut self.map))
    }
}

/// Made by [`Statement::query_and_then`] and [`Rows::and_then`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct AndThenRows<'stmt, F> {
    rows: Rows<'stmt>,
    map: F,
}

impl<T, E, F> Iterator for AndThenRows<'_, F>
where
    E: From<Error>,
    F: FnMut(&Row<'_>) -> Result<T, E>,
{
    type Item = Result<T, E>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next().transpose()?;
        Some(row.map_err(E::from).and_then(&mut self.map))
    }
}

/// The current row of a query.
pub struct Row<'stmt> {
    stmt: Statement<'stmt>,
}

impl<'stmt> Row<'stmt> {
    /// As [`Row::get`].
    ///
    /// # Panics
    /// Where [`Row::get`] fails.
    #[track_caller]
    pub fn get_unwrap<I: RowIndex, T: FromSql>(&self, idx: I) -> T {
        match self.get(idx) {
            Ok(value) => value,
            Err(e) => panic!("cannot read the column: {e:?}"),
        }
    }

    /// A column's value, by its number from 0 or its name.
    ///
    /// # Errors
    /// No such column, or a value that is not of the type asked for.
    #[inline]
    pub fn get<I: RowIndex, T: FromSql>(&self, idx: I) -> Result<T> {
        let column = idx.idx(&self.stmt)?;
        let value = self.stmt.value_ref(column);
        T::column_result(value).map_err(|e| self.conversion_error(column, value, e))
    }

    #[cold]
    fn conversion_error(&self, column: usize, value: ValueRef<'_>, error: FromSqlError) -> Error {
        let kind = value.data_type();
        match error {
            FromSqlError::InvalidType => {
                Error::InvalidColumnType(column, self.stmt.name_or_empty(column).to_owned(), kind)
            }
            FromSqlError::OutOfRange(i) => Error::IntegralValueOutOfRange(column, i),
            FromSqlError::Utf8Error(e) => Error::Utf8Error(column, e),
            FromSqlError::Other(e) => Error::FromSqlConversionFailure(column, kind, e),
            FromSqlError::InvalidBlobSize { .. } => {
                Error::FromSqlConversionFailure(column, kind, Box::new(error))
            }
        }
    }

    /// A column's value as the engine holds it, valid until the next row.
    ///
    /// # Errors
    /// No such column.
    #[inline]
    pub fn get_ref<I: RowIndex>(&self, idx: I) -> Result<ValueRef<'_>> {
        Ok(self.stmt.value_ref(idx.idx(&self.stmt)?))
    }

    /// As [`Row::get_ref`].
    ///
    /// # Panics
    /// If there is no such column.
    #[track_caller]
    pub fn get_ref_unwrap<I: RowIndex>(&self, idx: I) -> ValueRef<'_> {
        match self.get_ref(idx) {
            Ok(value) => value,
            Err(e) => panic!("cannot read the column: {e:?}"),
        }
    }
}

impl<'stmt> AsRef<Statement<'stmt>> for Row<'stmt> {
    fn as_ref(&self) -> &Statement<'stmt> {
        &self.stmt
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (i, name) in self.stmt.column_names().enumerate() {
            let value = self.stmt.value_ref(i);
            let kind = value.data_type();
            map.key(&name);
            match value {
                ValueRef::Null => map.value(&(kind, ())),
                ValueRef::Integer(i) => map.value(&(kind, i)),
                ValueRef::Real(r) => map.value(&(kind, r)),
                ValueRef::Text(t) => map.value(&(kind, String::from_utf8_lossy(t))),
                ValueRef::Blob(b) => map.value(&(kind, b.len())),
            };
        }
        map.finish()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for &str {}
}

/// The number (from 0) or the name of a column.
pub trait RowIndex: sealed::Sealed + Copy {
    /// The number of the column in `stmt`.
    ///
    /// # Errors
    /// No such column.
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize>;
}

impl RowIndex for usize {
    #[inline]
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize> {
        if *self < stmt.column_count() {
            Ok(*self)
        } else {
            Err(Error::InvalidColumnIndex(*self))
        }
    }
}

impl RowIndex for &str {
    #[inline]
    fn idx(&self, stmt: &Statement<'_>) -> Result<usize> {
        stmt.column_index(self)
    }
}

/// `let (id, name): (i64, String) = row.try_into()?`
macro_rules! tuples {
    ($(($($t:ident $i:literal),*))+) => {$(
        impl<'a, $($t: FromSql),*> TryFrom<&'a Row<'a>> for ($($t,)*) {
            type Error = Error;

            fn try_from(row: &'a Row<'a>) -> Result<Self> {
                let _ = row;
                Ok(($(row.get::<usize, $t>($i)?,)*))
            }
        }
    )+};
}
tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
}
