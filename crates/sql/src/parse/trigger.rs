//! Lowering of CREATE TRIGGER.

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;

use super::Lowering;
use super::dml::conflict;
use crate::ast::{
    CreateTrigger, Delete, Indexed, Insert, InsertSource, Statement, TriggerEvent, TriggerTime,
    Update,
};
use crate::error::{Error, Result};

impl Lowering<'_> {
    pub(super) fn create_trigger(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::CreateTrigger {
            temporary,
            if_not_exists,
            trigger_name,
            time,
            event,
            tbl_name,
            when_clause,
            commands,
            ..
        } = stmt
        else {
            return Err(Error::misuse("not a CREATE TRIGGER"));
        };
        self.tokens.move_behind_head(T::TK_TRIGGER, *if_not_exists);
        let name = self.qualified(trigger_name);
        let text = self.text_from(&name.name);
        let time = match time {
            None | Some(raw::TriggerTime::Before) => TriggerTime::Before,
            Some(raw::TriggerTime::After) => TriggerTime::After,
            Some(raw::TriggerTime::InsteadOf) => TriggerTime::InsteadOf,
        };
        let event = match event {
            raw::TriggerEvent::Delete => TriggerEvent::Delete,
            raw::TriggerEvent::Insert => TriggerEvent::Insert,
            raw::TriggerEvent::Update => TriggerEvent::Update(None),
            raw::TriggerEvent::UpdateOf(names) => TriggerEvent::Update(Some(self.names(names))),
        };
        let table = self.qualified(tbl_name);
        self.databases.clear();
        let when = when_clause.as_ref().map(|e| self.expr(e)).transpose()?;
        let mut steps = Vec::with_capacity(commands.len());
        for command in *commands {
            steps.push(self.trigger_step(command)?);
        }
        Ok(Statement::CreateTrigger(Box::new(CreateTrigger {
            name,
            if_not_exists: *if_not_exists,
            temporary: *temporary,
            time,
            event,
            table,
            when,
            steps,
            databases: std::mem::take(&mut self.databases),
            has_parameters: !self.parameters.is_empty(),
            text,
        })))
    }

    fn trigger_step(&mut self, command: &raw::TriggerCmd<'_>) -> Result<Statement> {
        Ok(match command {
            raw::TriggerCmd::Select(select) => Statement::Select(Box::new(self.select(select)?)),
            raw::TriggerCmd::Insert {
                or_conflict,
                tbl_name,
                col_names,
                select,
                upsert,
            } => Statement::Insert(Box::new(Insert {
                ctes: Vec::new(),
                conflict: or_conflict.map(conflict),
                table: self.qualified(tbl_name),
                alias: tbl_name.alias.as_ref().map(|n| self.name(n.0)),
                columns: col_names.as_ref().map(|names| self.names(names)),
                source: InsertSource::Select(Box::new(self.select(select)?)),
                upserts: self.upserts(*upsert)?,
                returning: Vec::new(),
            })),
            raw::TriggerCmd::Update {
                or_conflict,
                tbl_name,
                sets,
                from,
                where_clause,
            } => Statement::Update(Box::new(Update {
                ctes: Vec::new(),
                conflict: or_conflict.map(conflict),
                table: self.qualified(tbl_name),
                alias: tbl_name.alias.as_ref().map(|n| self.name(n.0)),
                indexed: Indexed::Any,
                sets: self.sets(sets)?,
                from: from.as_ref().map_or(Ok(Vec::new()), |f| self.from(f))?,
                filter: where_clause.as_ref().map(|e| self.expr(e)).transpose()?,
                returning: Vec::new(),
            })),
            raw::TriggerCmd::Delete {
                tbl_name,
                where_clause,
            } => Statement::Delete(Box::new(Delete {
                ctes: Vec::new(),
                table: self.qualified(tbl_name),
                alias: tbl_name.alias.as_ref().map(|n| self.name(n.0)),
                indexed: Indexed::Any,
                filter: where_clause.as_ref().map(|e| self.expr(e)).transpose()?,
                returning: Vec::new(),
            })),
        })
    }
}
