//! What hooks and functions of the program are told while a statement runs.

use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{must, run};
use crate::world::{ADDS_77, BEGIN, CHANGES_1, Stand, World};
use fulgurite_sql::error::Error;
use fulgurite_sql::func::UserFunction;
use fulgurite_sql::func::hooks::{RollbackHook, UpdateHook};
use fulgurite_sql::func::user::{UserCall, UserFlags, UserKind, UserScalar};
use fulgurite_sql::session::Engine;
use fulgurite_sql::value::Value;

/// What may be told of a row while a statement runs is told what a reader can see.
fn sees(engine: &Engine, n: &'static str) -> impl Fn() + Send + Sync + use<> {
    let engine = engine.clone();
    move || {
        let there = must(&engine.session(), "SELECT n FROM t WHERE id = 1");
        assert_eq!(there, [n], "told too early, or too late");
    }
}

#[test]
fn an_update_hook_is_told_nothing_early() {
    for (second, there) in [
        ("UPDATE t SET n = 0 WHERE id = 1", "100"),
        ("UPDATE s SET n = (SELECT n FROM t WHERE id = 1)", "100"),
        ("INSERT INTO s SELECT id + 100, n FROM t", "100"),
        ("UPDATE t SET n = 0 WHERE id = 2", "10"),
        ("INSERT INTO s VALUES (10, 0), (11, 0)", "10"),
    ] {
        let world = World::new();
        world.meanwhile(CHANGES_1, |session| {
            let told = sees(&world.engine, there);
            let hook: UpdateHook = Arc::new(move |_, _, _, _| told());
            session
                .set_hooks(|hooks| hooks.update = Some(hook))
                .unwrap();
            world.runs(session, second, there == "10");
        });
    }
}

/// It hears of the failure that undoes the transaction before who ran the statement.
#[test]
fn a_rollback_hook_is_told_nothing_early() {
    let world = World::new();
    world.meanwhile(ADDS_77, |session| {
        let engine = world.engine.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        let hook: RollbackHook = Arc::new(move || {
            *sees.lock().unwrap() = must(&engine.session(), "SELECT n FROM t WHERE id = 77");
        });
        session
            .set_hooks(|hooks| hooks.rollback = Some(hook))
            .unwrap();
        must(session, BEGIN);
        let told = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            run(session, "INSERT OR ROLLBACK INTO t VALUES (77, 0, 'other')")
        });
        assert_eq!(told, ["error 1555: UNIQUE constraint failed: t.id"]);
        assert_eq!(*seen.lock().unwrap(), ["770"], "told too early");
    });
}

struct Calls<F>(F);

impl<F: Fn() + Send + Sync> UserScalar for Calls<F> {
    fn call(&self, _: &UserCall<'_>) -> Result<Value, Error> {
        (self.0)();
        Ok(Value::Integer(1000))
    }
}

/// A function of the program that makes a value of a new row knows nothing of the database;
/// one that is given rows, or called where some were found, does.
#[test]
fn a_function_is_told_nothing_early() {
    for (second, there) in [
        ("INSERT INTO t(n) VALUES (f())", "10"),
        ("INSERT OR IGNORE INTO t VALUES (f(), f(), 'u3')", "10"),
        ("UPDATE t SET n = f() WHERE id = 2", "10"),
        ("UPDATE t SET n = 5 WHERE id = 2 AND f() > n", "10"),
        ("DELETE FROM t WHERE u = 'u3' AND f() > n", "10"),
        ("UPDATE t SET n = f() WHERE id = 1", "100"),
        ("DELETE FROM t WHERE u = 'u1' AND f() > n", "100"),
        ("UPDATE t SET n = f() WHERE id = 2 RETURNING f()", "100"),
        ("SELECT f() FROM t WHERE n = 10", ""),
        ("SELECT f() FROM t WHERE n = 100", "100"),
        ("UPDATE s SET n = f()", "100"),
        ("INSERT INTO t(n) VALUES (f()) RETURNING f()", "100"),
        ("INSERT INTO s VALUES (20, 0), (f(), 0)", "100"),
        ("INSERT INTO s SELECT f(), n FROM t WHERE id = 1", "100"),
        ("INSERT INTO c VALUES (1)", "100"),
    ] {
        let world = World::new();
        let none = UserFlags::default();
        let function = |told| UserFunction::new("f", 0, none, UserKind::Scalar(told)).unwrap();
        let first = world.engine.session();
        first
            .register_function(function(Box::new(Calls(|| ()))))
            .unwrap();
        must(&first, "CREATE TABLE c(n INT CHECK (n < f()))");
        world.meanwhile(CHANGES_1, |session| {
            let told = Box::new(Calls(sees(&world.engine, there)));
            session.register_function(function(told)).unwrap();
            world.runs(session, second, there == "10");
        });
    }
}

/// Nor is either of them by a statement alone, which commits with the sync that is held.
#[test]
fn a_statement_alone_tells_nothing_early() {
    for (second, there) in [
        ("UPDATE t SET n = 0 WHERE id = 2", "10"),
        ("UPDATE t SET n = 0 WHERE id = 1", "100"),
        ("UPDATE s SET n = (SELECT n FROM t WHERE id = 1)", "100"),
        ("INSERT INTO s SELECT id + 100, n FROM t", "100"),
        ("INSERT INTO t(n) VALUES (f())", "10"),
        ("UPDATE t SET n = f() WHERE id = 2", "10"),
        ("UPDATE t SET n = f() WHERE id = 1", "100"),
        ("UPDATE s SET n = f()", "100"),
    ] {
        let world = World::new();
        let told = || {
            let (told, gate) = (sees(&world.engine, there), Arc::clone(&world.gate));
            move || {
                told();
                gate.set(Stand::Open);
            }
        };
        world.meanwhile(CHANGES_1, |session| {
            match second.contains("f()") {
                true => {
                    let function = UserKind::Scalar(Box::new(Calls(told())));
                    let function = UserFunction::new("f", 0, UserFlags::default(), function);
                    session.register_function(function.unwrap()).unwrap();
                }
                false => {
                    let told = told();
                    let hook: UpdateHook = Arc::new(move |_, _, _, _| told());
                    let set = session.set_hooks(|hooks| hooks.update = Some(hook));
                    set.unwrap();
                }
            }
            thread::scope(|scope| {
                if there == "100" {
                    scope.spawn(|| world.gate.set(Stand::Open));
                }
                must(session, second);
            });
        });
    }
}
