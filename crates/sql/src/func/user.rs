//! Functions of the program: a connection registers them, and statements call them as they
//! call those that are built in. Its collations are registered beside them.
//!
//! What is registered is an immutable value ([`UserCode`]) that a connection replaces as a
//! whole, so that a plan, which holds the one it was made with, can tell whether it still
//! stands. No lock and no borrow of a connection's own tables is held while a function
//! runs, and a panic in one becomes an error of its statement.

use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_store::{Owned, caught};
use rustc_hash::FxHashMap;

use super::{AggregateFunction, AggregateKind, Context, Function, registry};
use crate::error::{Error, Result, code};
use crate::value::collate::{CollationName, Collations, CompareTexts};
use crate::value::{Collation, LENGTH_MAX, Value, ValueRef};

/// Most arguments of a function, as in SQLite.
pub const ARGUMENTS_MAX: usize = 1000;
/// Most bytes of a function's name, as in SQLite.
const NAME_BYTES_MAX: usize = 255;
/// The subtype of a text of JSON, as in SQLite.
pub const JSON_SUBTYPE: u32 = b'J' as u32;

/// What a function promises, or asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent flags")]
pub struct UserFlags {
    /// Equal arguments give equal results, always.
    pub deterministic: bool,
    /// Not to be called from texts of the schema.
    pub direct_only: bool,
    /// Without effects, so that a schema that is not trusted may call it.
    pub innocuous: bool,
    /// It asks for the subtypes of its arguments.
    pub takes_subtypes: bool,
    /// Its results may have a subtype.
    pub gives_subtype: bool,
}

/// The code of a scalar function.
pub trait UserScalar: Send + Sync {
    /// Computes it.
    ///
    /// # Errors
    /// Those of the program.
    fn call(&self, call: &UserCall<'_>) -> Result<Value>;
}

/// The code of an aggregate.
pub trait UserAggregate: Send + Sync {
    /// The state of a group without rows.
    fn group(&self) -> Box<dyn UserGroup>;
}

/// The state of an aggregate in one group.
pub trait UserGroup: Send {
    /// Takes a row.
    ///
    /// # Errors
    /// Those of the program.
    fn step(&mut self, call: &UserCall<'_>) -> Result<()>;

    /// Takes back the first row that it holds, of a window function.
    ///
    /// # Errors
    /// Those of the program.
    fn inverse(&mut self, _: &UserCall<'_>) -> Result<()> {
        Err(no_window())
    }

    /// What the rows so far give, of a window function.
    ///
    /// # Errors
    /// Those of the program.
    fn value(&mut self) -> Result<Value> {
        Err(no_window())
    }

    /// What all rows gave; it is not asked again.
    ///
    /// # Errors
    /// Those of the program.
    fn finish(&mut self) -> Result<Value>;
}

#[cold]
fn no_window() -> Error {
    Error::misuse("an aggregate that is no window function was used as one")
}

/// What a function is.
pub enum UserKind {
    /// Of one row.
    Scalar(Box<dyn UserScalar>),
    /// Of a group's rows.
    Aggregate(Box<dyn UserAggregate>),
    /// Of a group's rows, or of those of a window.
    Window(Box<dyn UserAggregate>),
}

/// A registered function.
pub struct UserFunction {
    /// In lower case.
    name: String,
    /// How many arguments it takes; None: any number.
    arguments: Option<usize>,
    /// What it promises.
    pub flags: UserFlags,
    kind: Owned<UserKind>,
}

impl fmt::Debug for UserFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.name)
    }
}

impl PartialEq for UserFunction {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl UserFunction {
    /// A function of this name; `arguments` is -1 where it takes any number.
    ///
    /// # Errors
    /// `SQLITE_MISUSE` for a name or a number that SQLite refuses.
    pub fn new(name: &str, arguments: i32, flags: UserFlags, kind: UserKind) -> Result<Self> {
        let (name, arguments) = checked(name, arguments)?;
        Ok(Self {
            name,
            arguments,
            flags,
            kind: Owned::new(kind),
        })
    }

    /// Its name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many arguments it takes; None: any number.
    pub fn arguments(&self) -> Option<usize> {
        self.arguments
    }

    /// What PRAGMA function_list has for its kind.
    pub fn kind_letter(&self) -> &'static str {
        match self.kind.get() {
            Some(UserKind::Aggregate(_)) => "a",
            Some(UserKind::Window(_)) => "w",
            Some(UserKind::Scalar(_)) | None => "s",
        }
    }

    /// It may be used over a window.
    pub fn is_window(&self) -> bool {
        matches!(self.kind.get(), Some(UserKind::Window(_)))
    }

    /// A call of a scalar function at `site`.
    ///
    /// # Errors
    /// Those of the function, `SQLITE_TOOBIG`, a panic.
    pub fn call(
        &self,
        site: CallSite,
        arguments: &[ValueRef<'_>],
        subtypes: &[u32],
        context: &mut Context,
    ) -> Result<Value> {
        let Some(UserKind::Scalar(code)) = self.kind.get() else {
            return Err(Error::misuse("an aggregate is no scalar function"));
        };
        let call = UserCall {
            arguments,
            subtypes,
            site,
            kept: RefCell::new(context.kept.take()),
            subtype: Cell::new(0),
        };
        let outcome = guarded(|| code.call(&call));
        context.subtype = call.subtype.get();
        context.kept = call.into_kept();
        sized(outcome?)
    }
}

fn checked(name: &str, arguments: i32) -> Result<(String, Option<usize>)> {
    let count = usize::try_from(arguments).ok();
    let is_known = arguments == -1 || count.is_some_and(|count| count <= ARGUMENTS_MAX);
    if !is_known || name.len() > NAME_BYTES_MAX {
        return Err(Error::misuse("bad parameter or other API misuse").with_hint(
            "a function's name has up to 255 bytes; it takes up to 1000 arguments, or -1 for any number",
        ));
    }
    Ok((name.to_ascii_lowercase(), count))
}

fn sized(value: Value) -> Result<Value> {
    match &value {
        Value::Text(bytes) | Value::Blob(bytes) if bytes.len() > LENGTH_MAX => {
            Err(Error::too_big())
        }
        _ => Ok(value),
    }
}

/// Runs code of the program, whose panic becomes an error.
///
/// # Errors
/// Those of the code, and `unwinding panic`.
pub fn guarded<T>(code: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(code).unwrap_or_else(|| {
        Err(Error::sql("unwinding panic")
            .with_hint("code of the program that the statement called panicked"))
    })
}

/// Where a function is called in a statement: what it keeps for its arguments belongs to
/// that place. Two places are equal, so that equal calls are.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallSite {
    number: u64,
    /// Of the first 32 arguments, those that are the same for the whole statement.
    constant: u32,
}

impl PartialEq for CallSite {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl CallSite {
    /// A place of its own; `constant` tells of each argument whether it is the same for
    /// the whole statement.
    pub fn new(constant: impl Iterator<Item = bool>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let bits = constant.take(u32::BITS as usize).enumerate();
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            constant: bits.fold(0, |mask, (at, is)| mask | u32::from(is) << at),
        }
    }

    fn keeps(self, argument: usize) -> bool {
        argument < u32::BITS as usize && self.constant >> argument & 1 == 1
    }
}

/// What a function keeps for an argument.
pub type Kept = Arc<dyn Any + Send + Sync>;

/// What functions keep within a run of a statement, by place and argument.
#[derive(Default, Clone)]
pub struct KeptData(FxHashMap<(u64, usize), Owned<Kept>>);

impl fmt::Debug for KeptData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A call of a function: its arguments, and what it may keep for them.
pub struct UserCall<'a> {
    /// The arguments.
    pub arguments: &'a [ValueRef<'a>],
    subtypes: &'a [u32],
    site: CallSite,
    kept: RefCell<Option<Box<KeptData>>>,
    subtype: Cell<u32>,
}

impl<'a> UserCall<'a> {
    /// A call that keeps nothing: one of an aggregate.
    pub fn plain(arguments: &'a [ValueRef<'a>]) -> Self {
        Self {
            arguments,
            subtypes: &[],
            site: CallSite::default(),
            kept: RefCell::default(),
            subtype: Cell::new(0),
        }
    }

    /// The subtype of an argument; 0 where it has none.
    pub fn subtype(&self, argument: usize) -> u32 {
        self.subtypes.get(argument).copied().unwrap_or(0)
    }

    /// Gives the result a subtype.
    pub fn set_subtype(&self, subtype: u32) {
        self.subtype.set(subtype);
    }

    /// What was kept for an argument.
    pub fn kept(&self, argument: usize) -> Option<Kept> {
        let kept = self.kept.borrow();
        let data = kept.as_ref()?;
        data.0.get(&(self.site.number, argument))?.get().cloned()
    }

    /// Keeps something for an argument: until the statement ends if that is constant, else
    /// until the call ends.
    pub fn keep(&self, argument: usize, value: Kept) {
        let mut kept = self.kept.borrow_mut();
        let data = kept.get_or_insert_default();
        let before = data
            .0
            .insert((self.site.number, argument), Owned::new(value));
        // It is the program's: it may do anything when it is dropped.
        drop(kept);
        drop(before);
    }

    fn into_kept(self) -> Option<Box<KeptData>> {
        let mut kept = self.kept.into_inner();
        if let Some(data) = &mut kept {
            let site = self.site;
            data.0
                .retain(|(number, argument), _| *number != site.number || site.keeps(*argument));
        }
        kept
    }
}

/// An aggregate's state in a group, or over a window.
pub struct UserState {
    group: Owned<Box<dyn UserGroup>>,
    is_window: bool,
}

impl fmt::Debug for UserState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserState").finish_non_exhaustive()
    }
}

impl UserState {
    /// Of a function, for a group without rows.
    pub(super) fn new(function: &UserFunction) -> Option<Self> {
        match function.kind.get()? {
            UserKind::Scalar(_) => None,
            UserKind::Aggregate(code) | UserKind::Window(code) => Some(Self {
                group: Owned::new(code.group()),
                is_window: function.is_window(),
            }),
        }
    }

    /// Takes a row.
    pub(super) fn step(&mut self, arguments: &[ValueRef<'_>]) -> Result<()> {
        self.ask(|group| group.step(&UserCall::plain(arguments)))
    }

    /// Takes a row back.
    pub(super) fn remove(&mut self, arguments: &[ValueRef<'_>]) -> Result<()> {
        self.ask(|group| group.inverse(&UserCall::plain(arguments)))
    }

    /// What the rows so far give; others may follow if it is a window function.
    pub(super) fn value(&mut self) -> Result<Value> {
        match self.is_window {
            true => self.ask(|group| group.value()).and_then(sized),
            false => self.finish(),
        }
    }

    /// What all rows gave.
    pub(super) fn finish(&mut self) -> Result<Value> {
        self.ask(|group| group.finish()).and_then(sized)
    }

    fn ask<T>(&mut self, call: impl FnOnce(&mut dyn UserGroup) -> Result<T>) -> Result<T> {
        match self.group.get_mut() {
            Some(group) => guarded(|| call(&mut **group)),
            None => Err(Error::misuse("a group was used after its end")),
        }
    }
}

/// What is registered, by names in lower case.
#[derive(Default, Clone)]
struct Registered {
    functions: FxHashMap<String, Vec<Arc<UserFunction>>>,
    collations: Collations,
}

/// All that a connection has registered. Equal is only what is the same value, or empty.
#[derive(Default, Clone)]
pub struct UserCode(Option<Arc<Registered>>);

impl PartialEq for UserCode {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for UserCode {}

impl fmt::Debug for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.functions()).finish()
    }
}

impl UserCode {
    /// Nothing.
    pub const NONE: UserCode = UserCode(None);

    /// The function of this name, in any case, for so many arguments: one for just as many
    /// goes before one for any number.
    #[inline]
    pub fn find(&self, name: &str, arguments: usize) -> Option<Function> {
        let registered = self.0.as_ref()?;
        let named = registered.functions.get(&name.to_ascii_lowercase())?;
        let exact = named.iter().find(|f| f.arguments == Some(arguments));
        let function = exact.or_else(|| named.iter().find(|f| f.arguments.is_none()))?;
        Some(match function.kind.get()? {
            UserKind::Scalar(_) => Function::User(Arc::clone(function)),
            UserKind::Aggregate(_) | UserKind::Window(_) => {
                Function::Aggregate(Arc::new(aggregate(function)))
            }
        })
    }

    /// Whether there is a function of this name, for whatever arguments.
    pub fn has(&self, name: &str) -> bool {
        let registered = self.0.as_ref();
        registered.is_some_and(|it| it.functions.contains_key(&name.to_ascii_lowercase()))
    }

    /// All functions.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<UserFunction>> {
        let registered = self.0.iter();
        registered.flat_map(|it| it.functions.values().flatten())
    }

    /// Registers a function, in place of one of that name and number of arguments. `busy`:
    /// statements are running.
    ///
    /// # Errors
    /// `SQLITE_BUSY` where one would be replaced that they may use.
    pub fn register(&mut self, function: Arc<UserFunction>, busy: bool) -> Result<()> {
        let arguments = function.arguments;
        let replaces = self.position(&function.name, arguments);
        let hides = registry::has(&function.name, arguments);
        if busy && (replaces.is_some() || hides) {
            return Err(busy_function());
        }
        let registered = Arc::make_mut(self.0.get_or_insert_default());
        let named = registered
            .functions
            .entry(function.name.clone())
            .or_default();
        match replaces.and_then(|at| named.get_mut(at)) {
            Some(slot) => *slot = function,
            None => named.push(function),
        }
        Ok(())
    }

    /// Removes a function, if there is one of that name and number of arguments.
    ///
    /// # Errors
    /// `SQLITE_MISUSE` as [`UserFunction::new`], `SQLITE_BUSY` while statements are running.
    pub fn remove(&mut self, name: &str, arguments: i32, busy: bool) -> Result<()> {
        let (name, arguments) = checked(name, arguments)?;
        let Some(at) = self.position(&name, arguments) else {
            return Ok(());
        };
        if busy {
            return Err(busy_function());
        }
        let Some(registered) = self.0.as_mut().map(Arc::make_mut) else {
            return Ok(());
        };
        if let Some(named) = registered.functions.get_mut(&name) {
            named.remove(at);
            if named.is_empty() {
                registered.functions.remove(&name);
            }
        }
        self.forget_if_empty();
        Ok(())
    }

    fn forget_if_empty(&mut self) {
        let is_empty = |it: &Arc<Registered>| it.functions.is_empty() && it.collations.is_empty();
        if self.0.as_ref().is_some_and(is_empty) {
            self.0 = None;
        }
    }

    /// The collations.
    pub fn collations(&self) -> Collations {
        let registered = self.0.as_ref();
        registered.map_or_else(Collations::default, |it| it.collations.clone())
    }

    /// Registers a collation, in place of one of that name; None removes it. `busy`:
    /// statements are running.
    ///
    /// # Errors
    /// `SQLITE_BUSY` where one would be changed that they may use, `SQLITE_MISUSE` for a
    /// name that is built in, or too long.
    pub fn collate(&mut self, name: &str, how: Option<CompareTexts>, busy: bool) -> Result<()> {
        if Collation::by_name(name).is_some() {
            return Err(Error::misuse("bad parameter or other API misuse")
                .with_hint("BINARY, NOCASE and RTRIM stay what they are: keys are made by them"));
        }
        let known = CollationName::known(name).filter(|it| self.collations().has(*it));
        if known.is_some() && busy {
            return Err(Error::new(
                code::BUSY,
                "unable to delete/modify collation sequence due to active statements",
            )
            .with_hint("it can be changed once the rows of all queries are read or dropped"));
        }
        match (how, known) {
            (Some(how), _) => {
                let name = CollationName::new(name)?;
                let registered = Arc::make_mut(self.0.get_or_insert_default());
                registered.collations.set(name, how);
            }
            (None, Some(name)) => {
                if let Some(registered) = self.0.as_mut().map(Arc::make_mut) {
                    registered.collations.remove(name);
                }
                self.forget_if_empty();
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn position(&self, name: &str, arguments: Option<usize>) -> Option<usize> {
        let named = self.0.as_ref()?.functions.get(name)?;
        named.iter().position(|f| f.arguments == arguments)
    }
}

fn busy_function() -> Error {
    Error::new(
        code::BUSY,
        "unable to delete/modify user-function due to active statements",
    )
    .with_hint("it can be changed once the rows of all queries are read or dropped")
}

/// A registered aggregate as the binder and the operators see it.
fn aggregate(function: &Arc<UserFunction>) -> AggregateFunction {
    AggregateFunction {
        name: Cow::Owned(function.name.clone()),
        kind: AggregateKind::User,
        arguments_min: function.arguments.unwrap_or(0),
        arguments_max: function.arguments.unwrap_or(ARGUMENTS_MAX),
        fallible: true,
        user: Some(Arc::clone(function)),
    }
}
