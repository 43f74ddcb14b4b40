//! Functions of the program, to be called from SQL.
//!
//! ```
//! # fn main() -> fulgurite::Result<()> {
//! use fulgurite::Connection;
//! use fulgurite::functions::FunctionFlags;
//!
//! let db = Connection::open_in_memory()?;
//! let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
//! db.create_scalar_function("half", 1, flags, |ctx| Ok(ctx.get::<f64>(0)? / 2.0))?;
//! let half: f64 = db.query_row("SELECT half(7)", [], |row| row.get(0))?;
//! assert_eq!(half, 3.5);
//! # Ok(()) }
//! ```
//!
//! A function belongs to the connection that it is registered with; what the schema calls
//! (an index, a CHECK, a view) must be there on each connection that uses it, for which
//! [`Database::with_init`](crate::Database::with_init) is a good place.
//!
//! An error of a function ends its statement: SQLite's message is its text, and
//! [`Error::function_error`] gives the error itself back. So does a panic, as `unwinding
//! panic`. A function called by a statement that writes cannot use that connection
//! meanwhile; one that a query calls can.

use std::ffi::{c_int, c_uint};
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use fulgurite_sql::UserFunction;
use fulgurite_sql::error as sql;
use fulgurite_sql::func::user::{
    UserAggregate, UserCall, UserFlags, UserGroup, UserKind, UserScalar,
};
use parking_lot::ReentrantMutex;

use crate::types::{FromSql, FromSqlError, ToSql, ToSqlOutput, ValueRef};
use crate::{Connection, Error, Name, Result, ffi};

bitflags::bitflags! {
    /// What a function promises, and asks for.
    #[derive(Clone, Copy, Debug)]
    #[repr(C)]
    pub struct FunctionFlags: c_int {
        /// It takes UTF-8, as all functions do here.
        const SQLITE_UTF8 = 1;
        /// Accepted; texts are UTF-8.
        const SQLITE_UTF16LE = 2;
        /// Accepted; texts are UTF-8.
        const SQLITE_UTF16BE = 3;
        /// Accepted; texts are UTF-8.
        const SQLITE_UTF16 = 4;
        /// Equal arguments always give equal results: it may be in an index or a
        /// generated column, and need not be called once a row.
        const SQLITE_DETERMINISTIC = 0x0000_0800;
        /// Not to be called from a view, a trigger, or another text of the schema.
        const SQLITE_DIRECTONLY = 0x0008_0000;
        /// It asks for subtypes with [`Context::get_subtype`].
        const SQLITE_SUBTYPE = 0x0010_0000;
        /// Without effects: may be called where the schema is not trusted
        /// (`PRAGMA trusted_schema = OFF`).
        const SQLITE_INNOCUOUS = 0x0020_0000;
        /// Its results may have a subtype.
        const SQLITE_RESULT_SUBTYPE = 0x0100_0000;
        /// Accepted; it says nothing here.
        const SQLITE_SELFORDER1 = 0x0200_0000;
    }
}

impl Default for FunctionFlags {
    #[inline]
    fn default() -> Self {
        Self::SQLITE_UTF8
    }
}

impl FunctionFlags {
    fn to_engine(self) -> UserFlags {
        UserFlags {
            deterministic: self.contains(Self::SQLITE_DETERMINISTIC),
            direct_only: self.contains(Self::SQLITE_DIRECTONLY),
            innocuous: self.contains(Self::SQLITE_INNOCUOUS),
            takes_subtypes: self.contains(Self::SQLITE_SUBTYPE),
            gives_subtype: self.contains(Self::SQLITE_RESULT_SUBTYPE),
        }
    }
}

/// The call at hand: its arguments, and what the function keeps for them.
pub struct Context<'a> {
    call: &'a UserCall<'a>,
}

impl Context<'_> {
    /// How many arguments there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.call.arguments.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.call.arguments.is_empty()
    }

    /// An argument, counted from 0, as a Rust value.
    ///
    /// # Errors
    /// [`Error::InvalidFunctionParameterType`] for a value of another kind, those of the
    /// conversion, [`Error::InvalidColumnIndex`] where there is no such argument.
    pub fn get<T: FromSql>(&self, idx: usize) -> Result<T> {
        self.check(idx)?;
        let value = self.get_raw(idx);
        FromSql::column_result(value).map_err(|error| match error {
            FromSqlError::InvalidType => {
                Error::InvalidFunctionParameterType(idx, value.data_type())
            }
            FromSqlError::OutOfRange(i) => Error::IntegralValueOutOfRange(idx, i),
            FromSqlError::Utf8Error(error) => Error::Utf8Error(idx, error),
            FromSqlError::Other(error) => {
                Error::FromSqlConversionFailure(idx, value.data_type(), error)
            }
            FromSqlError::InvalidBlobSize { .. } => {
                Error::FromSqlConversionFailure(idx, value.data_type(), Box::new(error))
            }
        })
    }

    fn check(&self, idx: usize) -> Result<()> {
        match idx < self.len() {
            true => Ok(()),
            false => Err(Error::InvalidColumnIndex(idx)),
        }
    }

    /// An argument, counted from 0, as it is; NULL where there is none.
    #[inline]
    #[must_use]
    pub fn get_raw(&self, idx: usize) -> ValueRef<'_> {
        let value = self.call.arguments.get(idx);
        value.map_or(ValueRef::Null, |value| ValueRef::from_engine(*value))
    }

    /// An argument to be given back as the result.
    #[inline]
    #[must_use]
    pub fn get_arg(&self, idx: usize) -> SqlFnArg {
        SqlFnArg { idx }
    }

    /// The subtype of an argument, which another function gave it, or that of a text of
    /// JSON; 0 where it has none. The function must have said that it asks:
    /// [`FunctionFlags::SQLITE_SUBTYPE`].
    #[must_use]
    pub fn get_subtype(&self, idx: usize) -> c_uint {
        self.call.subtype(idx)
    }

    /// What is kept for an argument, made by `func` from its value where nothing is. It is
    /// kept for the rest of the statement where the argument is constant: a pattern that
    /// is compiled once, for instance.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # use fulgurite::{Connection, Error, functions::FunctionFlags};
    /// # let db = Connection::open_in_memory()?;
    /// db.create_scalar_function("has_word", 2, FunctionFlags::SQLITE_DETERMINISTIC, |ctx| {
    ///     let words = ctx.get_or_create_aux(0, |list| -> Result<Vec<String>, Error> {
    ///         Ok(list.as_str()?.split(' ').map(str::to_owned).collect())
    ///     })?;
    ///     Ok(words.contains(&ctx.get(1)?))
    /// })?;
    /// let found = "SELECT has_word('red green', 'green')";
    /// assert!(db.query_row(found, [], |row| row.get::<_, bool>(0))?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `func`, and as [`Context::get_aux`].
    pub fn get_or_create_aux<T, E, F>(&self, arg: c_int, func: F) -> Result<Arc<T>>
    where
        T: Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
        F: FnOnce(ValueRef<'_>) -> Result<T, E>,
    {
        if let Some(kept) = self.get_aux(arg)? {
            return Ok(kept);
        }
        let value = func(self.get_raw(self.place(arg)?));
        self.set_aux(arg, value.map_err(|e| Error::UserFunctionError(e.into()))?)
    }

    /// Keeps something for an argument.
    ///
    /// # Errors
    /// [`Error::InvalidColumnIndex`] where there is no such argument.
    pub fn set_aux<T: Send + Sync + 'static>(&self, arg: c_int, value: T) -> Result<Arc<T>> {
        let kept = Arc::new(value);
        self.call.keep(self.place(arg)?, Arc::clone(&kept) as _);
        Ok(kept)
    }

    /// What is kept for an argument.
    ///
    /// # Errors
    /// [`Error::GetAuxWrongType`] where that is of another type,
    /// [`Error::InvalidColumnIndex`] where there is no such argument.
    pub fn get_aux<T: Send + Sync + 'static>(&self, arg: c_int) -> Result<Option<Arc<T>>> {
        let kept = self.call.kept(self.place(arg)?);
        let kept = kept.map(Arc::downcast::<T>).transpose();
        kept.map_err(|_| Error::GetAuxWrongType)
    }

    fn place(&self, arg: c_int) -> Result<usize> {
        let idx = usize::try_from(arg).unwrap_or(usize::MAX);
        self.check(idx).map(|()| idx)
    }
}

/// The subtype of a result; None leaves it without one.
pub type SubType = Option<c_uint>;

/// What a function may give: whatever is [`ToSql`], and that with a subtype.
pub trait SqlFnOutput {
    /// The value and its subtype.
    ///
    /// # Errors
    /// Those of the conversion.
    fn to_sql(&self) -> Result<(ToSqlOutput<'_>, SubType)>;
}

impl<T: ToSql> SqlFnOutput for T {
    #[inline]
    fn to_sql(&self) -> Result<(ToSqlOutput<'_>, SubType)> {
        ToSql::to_sql(self).map(|output| (output, None))
    }
}

impl<T: ToSql> SqlFnOutput for (T, SubType) {
    fn to_sql(&self) -> Result<(ToSqlOutput<'_>, SubType)> {
        ToSql::to_sql(&self.0).map(|output| (output, self.1))
    }
}

/// An argument of the call at hand as its result; see [`Context::get_arg`].
pub struct SqlFnArg {
    idx: usize,
}

impl ToSql for SqlFnArg {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Arg(self.idx))
    }
}

/// An aggregate: `A` is the state of a group, `T` what it gives.
///
/// ```
/// # fn main() -> fulgurite::Result<()> {
/// use fulgurite::functions::{Aggregate, Context, FunctionFlags};
/// use fulgurite::{Connection, Result};
///
/// struct Product;
///
/// impl Aggregate<i64, i64> for Product {
///     fn init(&self, _: &mut Context<'_>) -> Result<i64> {
///         Ok(1)
///     }
///
///     fn step(&self, ctx: &mut Context<'_>, acc: &mut i64) -> Result<()> {
///         *acc *= ctx.get::<i64>(0)?;
///         Ok(())
///     }
///
///     fn finalize(&self, _: &mut Context<'_>, acc: Option<i64>) -> Result<i64> {
///         Ok(acc.unwrap_or(1))
///     }
/// }
///
/// let db = Connection::open_in_memory()?;
/// db.create_aggregate_function("product", 1, FunctionFlags::SQLITE_DETERMINISTIC, Product)?;
/// let sql = "SELECT product(value) FROM json_each('[2, 3, 7]')";
/// assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0))?, 42);
/// # Ok(()) }
/// ```
pub trait Aggregate<A, T>
where
    A: RefUnwindSafe + UnwindSafe,
    T: SqlFnOutput,
{
    /// The state of a group, before its first row, whose arguments `ctx` has.
    ///
    /// # Errors
    /// Whatever ends the statement.
    fn init(&self, ctx: &mut Context<'_>) -> Result<A>;

    /// Takes a row.
    ///
    /// # Errors
    /// Whatever ends the statement.
    fn step(&self, ctx: &mut Context<'_>, acc: &mut A) -> Result<()>;

    /// The value of a group; None: it had no rows. `ctx` has no arguments.
    ///
    /// # Errors
    /// Whatever ends the statement.
    fn finalize(&self, ctx: &mut Context<'_>, acc: Option<A>) -> Result<T>;
}

/// An aggregate that may also be used over a window.
pub trait WindowAggregate<A, T>: Aggregate<A, T>
where
    A: RefUnwindSafe + UnwindSafe,
    T: SqlFnOutput,
{
    /// The value of the rows that the state has now; None: it had none yet.
    ///
    /// # Errors
    /// Whatever ends the statement.
    fn value(&self, acc: Option<&mut A>) -> Result<T>;

    /// Takes back the first of the rows that the state has.
    ///
    /// # Errors
    /// Whatever ends the statement.
    fn inverse(&self, ctx: &mut Context<'_>, acc: &mut A) -> Result<()>;
}

impl Connection {
    /// Registers a scalar function for `n_arg` arguments, -1: any number. It takes the
    /// place of one of that name and number of arguments, and hides a built-in one; a
    /// function for just as many arguments goes before one for any number.
    ///
    /// # Errors
    /// `SQLITE_BUSY` where it would replace one while rows are being read, `SQLITE_MISUSE`
    /// for more than 1000 arguments or 255 bytes of name.
    pub fn create_scalar_function<F, N: Name, T>(
        &self,
        fn_name: N,
        n_arg: c_int,
        flags: FunctionFlags,
        x_func: F,
    ) -> Result<()>
    where
        F: Fn(&Context<'_>) -> Result<T> + Send + 'static,
        T: SqlFnOutput,
    {
        let code = move |ctx: &Context<'_>| result(ctx, x_func(ctx));
        let code = Scalar(ReentrantMutex::new(code));
        self.register(fn_name, n_arg, flags, UserKind::Scalar(Box::new(code)))
    }

    /// Registers an aggregate; as [`Connection::create_scalar_function`].
    ///
    /// # Errors
    /// As there.
    pub fn create_aggregate_function<A, D, N: Name, T>(
        &self,
        fn_name: N,
        n_arg: c_int,
        flags: FunctionFlags,
        aggr: D,
    ) -> Result<()>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        D: Aggregate<A, T> + Send + 'static,
        T: SqlFnOutput + 'static,
    {
        let code = Groups::<A, D, T>::new(aggr);
        self.register(fn_name, n_arg, flags, UserKind::Aggregate(Box::new(code)))
    }

    /// Registers an aggregate that may also be used over a window; as
    /// [`Connection::create_scalar_function`].
    ///
    /// # Errors
    /// As there.
    pub fn create_window_function<A, N: Name, W, T>(
        &self,
        fn_name: N,
        n_arg: c_int,
        flags: FunctionFlags,
        aggr: W,
    ) -> Result<()>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        W: WindowAggregate<A, T> + Send + 'static,
        T: SqlFnOutput + 'static,
    {
        let code = Windows(Groups::<A, W, T>::new(aggr));
        self.register(fn_name, n_arg, flags, UserKind::Window(Box::new(code)))
    }

    /// Removes a function that was registered for that number of arguments. A built-in one
    /// that it has hidden is back.
    ///
    /// # Errors
    /// `SQLITE_BUSY` while rows are being read.
    pub fn remove_function<N: Name>(&self, fn_name: N, n_arg: c_int) -> Result<()> {
        let removed = self.session().remove_function(&text(fn_name)?, n_arg);
        self.user_code_changed(removed)
    }

    fn register<N: Name>(
        &self,
        name: N,
        arguments: c_int,
        flags: FunctionFlags,
        kind: UserKind,
    ) -> Result<()> {
        let name = text(name)?;
        let function = UserFunction::new(&name, arguments, flags.to_engine(), kind);
        let registered = function.and_then(|it| self.session().register_function(it));
        self.user_code_changed(registered)
    }
}

/// A name, which must not hold a zero byte.
pub(crate) fn text<N: Name>(name: N) -> Result<String> {
    let name = name.as_text()?;
    std::ffi::CString::new(name.as_str())?;
    Ok(name)
}

/// What a call gives, as the engine takes it.
fn result<T: SqlFnOutput>(
    ctx: &Context<'_>,
    given: Result<T>,
) -> sql::Result<fulgurite_sql::Value> {
    let owned = || {
        let given = given?;
        let (output, subtype) = given.to_sql()?;
        if let Some(subtype) = subtype {
            ctx.call.set_subtype(subtype);
        }
        Ok(match output {
            ToSqlOutput::Arg(idx) => ctx.get_raw(idx).to_engine().to_value(),
            other => other.as_value_ref()?.to_engine().to_value(),
        })
    };
    owned().map_err(failed)
}

/// An error of the program as the engine takes it: with SQLite's code where only that is
/// given, else with the error's text.
fn failed(error: Error) -> sql::Error {
    let engine = match &error {
        Error::SqliteFailure(code, None) => {
            sql::Error::new(code.extended_code, ffi::code_to_str(code.extended_code))
        }
        Error::SqliteFailure(_, Some(message)) => sql::Error::sql(message.clone()),
        other => sql::Error::sql(other.to_string()),
    };
    engine.with_cause(match error {
        Error::UserFunctionError(cause) => cause.into(),
        other => Arc::new(other),
    })
}

/// A scalar function. One thread runs it at a time, which may call it again from within.
struct Scalar<F>(ReentrantMutex<F>);

impl<F> UserScalar for Scalar<F>
where
    F: Fn(&Context<'_>) -> sql::Result<fulgurite_sql::Value> + Send,
{
    fn call(&self, call: &UserCall<'_>) -> sql::Result<fulgurite_sql::Value> {
        self.0.lock()(&Context { call })
    }
}

/// An aggregate.
struct Groups<A, D, T> {
    code: Arc<ReentrantMutex<D>>,
    kinds: PhantomData<fn() -> (A, T)>,
}

impl<A, D, T> Groups<A, D, T> {
    fn new(code: D) -> Self {
        Self {
            code: Arc::new(ReentrantMutex::new(code)),
            kinds: PhantomData,
        }
    }

    fn empty(&self) -> Group<A, D, T> {
        Group {
            code: Arc::clone(&self.code),
            state: None,
            kinds: PhantomData,
        }
    }
}

/// One that may be used over windows.
struct Windows<A, D, T>(Groups<A, D, T>);

/// The state of a group.
struct Group<A, D, T> {
    code: Arc<ReentrantMutex<D>>,
    state: Option<A>,
    kinds: PhantomData<fn() -> T>,
}

impl<A, D, T> Group<A, D, T>
where
    A: RefUnwindSafe + UnwindSafe,
    D: Aggregate<A, T>,
    T: SqlFnOutput,
{
    fn take(&mut self, call: &UserCall<'_>) -> sql::Result<()> {
        let code = self.code.lock();
        let mut ctx = Context { call };
        let taken = (|| {
            let state = match &mut self.state {
                Some(state) => state,
                None => self.state.insert(code.init(&mut ctx)?),
            };
            code.step(&mut ctx, state)
        })();
        taken.map_err(failed)
    }

    fn end(&mut self) -> sql::Result<fulgurite_sql::Value> {
        let call = UserCall::plain(&[]);
        let mut ctx = Context { call: &call };
        let given = self.code.lock().finalize(&mut ctx, self.state.take());
        result(&ctx, given)
    }
}

impl<A, D, T> UserAggregate for Groups<A, D, T>
where
    A: RefUnwindSafe + UnwindSafe + Send + 'static,
    D: Aggregate<A, T> + Send + 'static,
    T: SqlFnOutput + 'static,
{
    fn group(&self) -> Box<dyn UserGroup> {
        Box::new(self.empty())
    }
}

impl<A, D, T> UserGroup for Group<A, D, T>
where
    A: RefUnwindSafe + UnwindSafe + Send,
    D: Aggregate<A, T> + Send,
    T: SqlFnOutput,
{
    fn step(&mut self, call: &UserCall<'_>) -> sql::Result<()> {
        self.take(call)
    }

    fn finish(&mut self) -> sql::Result<fulgurite_sql::Value> {
        self.end()
    }
}

impl<A, D, T> UserAggregate for Windows<A, D, T>
where
    A: RefUnwindSafe + UnwindSafe + Send + 'static,
    D: WindowAggregate<A, T> + Send + 'static,
    T: SqlFnOutput + 'static,
{
    fn group(&self) -> Box<dyn UserGroup> {
        Box::new(Window(self.0.empty()))
    }
}

/// The state of a group, or of the rows of a window.
struct Window<A, D, T>(Group<A, D, T>);

impl<A, D, T> UserGroup for Window<A, D, T>
where
    A: RefUnwindSafe + UnwindSafe + Send,
    D: WindowAggregate<A, T> + Send,
    T: SqlFnOutput,
{
    fn step(&mut self, call: &UserCall<'_>) -> sql::Result<()> {
        self.0.take(call)
    }

    fn inverse(&mut self, call: &UserCall<'_>) -> sql::Result<()> {
        let Some(state) = &mut self.0.state else {
            return Ok(());
        };
        let taken = self.0.code.lock().inverse(&mut Context { call }, state);
        taken.map_err(failed)
    }

    fn value(&mut self) -> sql::Result<fulgurite_sql::Value> {
        let call = UserCall::plain(&[]);
        let given = self.0.code.lock().value(self.0.state.as_mut());
        result(&Context { call: &call }, given)
    }

    fn finish(&mut self) -> sql::Result<fulgurite_sql::Value> {
        self.0.end()
    }
}
