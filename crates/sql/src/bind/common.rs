//! Common table expressions that are named more than once: one query for all of the sources
//! that name it, so that its rows are made once.
//!
//! Not those that say NOT MATERIALIZED, that read something of what is around them, or whose
//! sources join those where they are named.

use std::sync::Arc;

use super::Binder;
use super::from::is_mergeable;
use super::logical::{Block, Query};
use crate::error::Result;

/// A common table expression whose rows may be those of several sources.
#[derive(Debug, Default)]
pub struct Common {
    /// Its query, once it has been named twice.
    pub query: Option<Arc<Query>>,
    /// It is the same whenever it is computed.
    pub deterministic: bool,
    /// Something in it may raise.
    fallible: bool,
}

impl Binder<'_> {
    /// A common table expression is bound anew where it is named for the first and for the
    /// second time, and wherever it cannot be shared; it sees those of its own WITH clause and
    /// of the ones around that, but itself only where it is recursive.
    pub(super) fn cte_source(
        &mut self,
        at: usize,
        shown: String,
        plain: bool,
        block: &mut Block,
    ) -> Result<()> {
        let Some(scoped) = self.ctes.get(at) else {
            return Ok(());
        };
        let (cte, known) = (scoped.cte.clone(), scoped.common);
        let common = known.and_then(|number| self.commons.get(number));
        if let Some(common) = common
            && let Some(query) = common.query.clone()
        {
            let fallible = common.fallible;
            if let Some(level) = self.levels.last_mut() {
                level.fallible |= fallible;
            }
            return self.query_of(query, shown, known, block);
        }
        let within = self.frames.len();
        let reached = std::mem::replace(&mut self.reached, usize::MAX);
        let (mut fallible, mut volatile) = (false, false);
        if let Some(level) = self.levels.last_mut() {
            fallible = std::mem::take(&mut level.fallible);
            volatile = std::mem::take(&mut level.volatile);
        }
        let query = self.cte_query(at, &cte);
        let alone = self.reached >= within;
        self.reached = self.reached.min(reached);
        let mut common = Common::default();
        if let Some(level) = self.levels.last_mut() {
            common.fallible = level.fallible;
            common.deterministic = !level.volatile;
            level.fallible |= fallible;
            level.volatile |= volatile;
        }
        let query = query?;
        let repeated = cte.repeated || self.uses.is_some() || is_mergeable(&query);
        if !alone || repeated {
            return self.query_source(query, shown, plain, block);
        }
        let Some(number) = known else {
            let number = self.commons.len();
            self.commons.push(Common::default());
            if let Some(scoped) = self.ctes.get_mut(at) {
                scoped.common = Some(number);
            }
            return self.query_of(Arc::new(query), shown, Some(number), block);
        };
        let query = Arc::new(query);
        common.query = Some(query.clone());
        if let Some(slot) = self.commons.get_mut(number) {
            *slot = common;
        }
        self.query_of(query, shown, known, block)
    }
}
