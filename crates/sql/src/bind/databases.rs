//! In which database a name is looked for.

use super::Binder;
use super::dml::text;
use super::logical::Bound;
use crate::ast::{self, CreateIndex, Name, QualifiedName};
use crate::error::{Error, Result};
use crate::plan::physical::SchemaPlace;
use crate::schema::{Schema, TEMP, Table, nearest};

impl<'a> Binder<'a> {
    /// The database that a table or view of this name is in. Of a bare name that is nowhere,
    /// the one of what names it; None where the name says which, and there is no such.
    pub(super) fn schema_of(&self, name: &QualifiedName) -> Option<&'a Schema> {
        let text = &name.name.text;
        if name.schema.is_none() && self.catalog.temp().is_none() {
            const OWN: &str = "sqlite_temp_";
            let start = text.get(..OWN.len());
            if start.is_some_and(|start| start.eq_ignore_ascii_case(OWN)) {
                self.catalog.want_temp();
            }
        }
        if name.schema.is_none() && self.catalog.is_alone() {
            return Some(self.catalog.main());
        }
        let key = text.to_ascii_lowercase();
        self.schema_where(name.schema.as_ref(), |schema| schema.holds(&key))
    }

    /// The same of what `holds` tells a database to have.
    pub(super) fn schema_where(
        &self,
        qualifier: Option<&Name>,
        holds: impl Fn(&Schema) -> bool,
    ) -> Option<&'a Schema> {
        let catalog = self.catalog;
        match (qualifier, self.home) {
            (None, Some(home)) => Some(home),
            (Some(name), home) => {
                let named = catalog.named(&name.text)?;
                let is_known = home.is_none_or(|home| home.tree() == named.tree());
                is_known.then_some(named)
            }
            (None, None) => {
                let found = catalog.find(holds);
                Some(found.unwrap_or(catalog.main()))
            }
        }
    }

    /// What the texts that a database keeps may name: None, if anything.
    pub(super) fn home_in(&self, schema: &'a Schema) -> Option<&'a Schema> {
        (!schema.is_temp()).then_some(schema)
    }

    /// The name of the one database that all names belong to, if it is one.
    pub(super) fn own_database(&self) -> Option<&'a str> {
        self.home.map(|home| self.catalog.name_of(home))
    }

    /// Runs `f` where names stand in a text that a database keeps.
    pub(super) fn at_home<T>(
        &mut self,
        schema: &'a Schema,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let home = self.home_in(schema);
        let before = std::mem::replace(&mut self.home, home);
        let result = f(self);
        self.home = before;
        result
    }

    /// The database that a statement creates something in.
    pub(super) fn new_in(&self, name: &QualifiedName, temporary: bool) -> Result<&'a Schema> {
        let named = match &name.schema {
            Some(schema) => Some(self.database(schema)?),
            None => None,
        };
        match (named, temporary) {
            (Some(schema), true) if !schema.is_temp() => {
                Err(Error::sql("temporary table name must be unqualified"))
            }
            (Some(schema), _) => Ok(schema),
            (None, true) => self.temporary(),
            (None, false) => Ok(self.catalog.main()),
        }
    }

    /// The temporary database, which there is once somebody asks for it.
    pub(super) fn temporary(&self) -> Result<&'a Schema> {
        let temp = self.catalog.named(TEMP);
        temp.ok_or_else(|| Error::sql("unknown database temp"))
    }

    /// The database of a name.
    pub(super) fn database(&self, name: &Name) -> Result<&'a Schema> {
        self.catalog.named(&name.text).ok_or_else(|| {
            Error::sql(format!("unknown database {}", name.text)).with_offset(name.offset)
        })
    }

    /// The statement changes the schema of this database. `temp`: what the temporary one has
    /// changes with it.
    pub(super) fn changes(&mut self, schema: &Schema, temp: bool) {
        let beside = self.catalog.temp_beside(schema).filter(|_| temp);
        self.place = Some(Box::new(SchemaPlace {
            name: self.catalog.name_of(schema).to_owned(),
            tree: schema.tree().clone(),
            temp: beside.map(|temp| temp.tree().clone()),
            others: Vec::new(),
        }));
    }

    /// The statement changes the schemas of these databases, if of any.
    pub(super) fn changes_all(&mut self, schemas: &[&Schema]) {
        let main = self.catalog.main().tree();
        let of_main = |schema: &&Schema| schema.tree() == main;
        let at = schemas.iter().position(of_main).unwrap_or(0);
        let Some(first) = schemas.get(at) else {
            return;
        };
        self.changes(first, false);
        if let Some(place) = &mut self.place {
            let others = schemas
                .iter()
                .filter(|schema| schema.tree() != first.tree());
            place.others = others.map(|schema| schema.tree().clone()).collect();
        }
    }

    /// What a database keeps may name nothing of another one, unless it is temporary.
    /// `databases`: those named in the text of a view or trigger of this `name`.
    pub(super) fn check_own(
        &self,
        schema: &Schema,
        (kind, name): (&str, &Name),
        databases: &[Name],
    ) -> Result<()> {
        if schema.is_temp() {
            return Ok(());
        }
        let own = self.catalog.name_of(schema);
        let other = databases
            .iter()
            .find(|it| !it.text.eq_ignore_ascii_case(own));
        other.map_or(Ok(()), |other| {
            let (name, database) = (&name.text, &other.text);
            let message = format!("{kind} {name} cannot reference objects in database {database}");
            Err(Error::sql(message).with_offset(other.offset))
        })
    }

    /// The database of an index that a CREATE INDEX makes: that of its table, if that is
    /// temporary.
    pub(super) fn indexed_in(&self, create: &CreateIndex) -> Result<&'a Schema> {
        if let Some(schema) = &create.name.schema {
            return self.database(schema);
        }
        let key = create.table.text.to_ascii_lowercase();
        let temp = self.catalog.temp().filter(|temp| temp.holds(&key));
        Ok(temp.unwrap_or(self.catalog.main()))
    }

    /// The error of a view, index or trigger that is not there, with the one of the `known`
    /// names that was probably meant.
    pub(super) fn missing<'n>(
        &self,
        kind: &str,
        name: &QualifiedName,
        known: impl Iterator<Item = &'n str>,
    ) -> Error {
        let text = &name.name.text;
        let full = match &name.schema {
            Some(schema) => format!("{}.{text}", schema.text),
            None => text.clone(),
        };
        let error = Error::sql(format!("no such {kind}: {full}")).with_offset(name.name.offset);
        match nearest(text, known) {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None => error,
        }
    }

    /// ATTACH of a file by a name, or DETACH of a name. What looks like a column is a text.
    pub(super) fn attachment(&mut self, texts: &[ast::Expr]) -> Result<Bound> {
        let row = texts.iter().map(|expr| match &expr.kind {
            ast::ExprKind::Column(name) => Ok(text(name.text.clone())),
            _ => self.expr(expr),
        });
        Ok(Bound::Attachment(row.collect::<Result<_>>()?))
    }

    /// Whether a table is sqlite_schema, of whichever database.
    pub(super) fn is_schema_table(&self, table: &Table) -> bool {
        table.tree == *self.catalog.of(&table.tree).tree()
    }
}
