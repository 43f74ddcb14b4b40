//! CREATE, DROP and ALTER: trees, and the rows of sqlite_schema that name them,
//! all in the statement's transaction.

use fulgurite_store::{Cursor, Key, KeyKind, Seek, Tree, TreeId};

use crate::error::{Error, Result};
use crate::exec::alter;
use crate::exec::batch::{Batch, ROWS_FIRST};
use crate::exec::context::Context;
use crate::exec::dml::{Entry, KeyMaker, Records, duplicate, sequence};
use crate::exec::expr::Row;
use crate::exec::ops::build;
use crate::exec::schema_edits::SchemaEdits;
use crate::exec::sorter::Sorter;
use crate::exec::txns::Txns;
use crate::plan::physical::{IndexWriter, Node, Rebuild, SchemaChange, SchemaPlace};
use crate::row::{RowReader, RowWriter};
use crate::schema::{Index, KeyPlace, SEQUENCE, SchemaRow, Table};
use crate::value::{Affinity, ValueRef};

/// The rows of sqlite_schema, over which the cursor is, with their rowids.
pub fn schema_rows(mut cursor: Cursor) -> Result<Vec<(i64, SchemaRow)>> {
    let mut rows = Vec::new();
    let mut more = cursor.seek(Seek::First)?;
    while more {
        let rowid = cursor.key_int();
        let row = schema_row(cursor.value()?);
        let row =
            row.map_err(|error| error.within(format_args!("row {rowid} of sqlite_schema")))?;
        rows.push((rowid, row));
        more = cursor.next()?;
    }
    Ok(rows)
}

fn schema_row(stored: &[u8]) -> Result<SchemaRow> {
    let reader = RowReader::new(stored)?;
    let text = |i: usize| match reader.column(i)? {
        ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(Error::corrupt("one of its texts is none")),
    };
    let ValueRef::Integer(root) = reader.column(3)? else {
        return Err(Error::corrupt("its root is no number"));
    };
    let sql = match reader.column(4)?.is_null() {
        true => None,
        false => Some(text(4)?),
    };
    let kind = text(0)?;
    let is = |other: &str| kind.eq_ignore_ascii_case(other);
    // What others have there means nothing.
    let database = match reader.len() > 5 && is("trigger") {
        true => Some(text(5)?),
        false => None,
    };
    let key = match reader.len() > 6 && is("table") {
        true => Some(key_place(&reader)?),
        false => None,
    };
    Ok(SchemaRow {
        kind,
        name: text(1)?,
        table: text(2)?,
        root,
        sql,
        database,
        key,
    })
}

/// Where the primary key of a WITHOUT ROWID table is, from the table's row.
fn key_place(row: &RowReader<'_>) -> Result<KeyPlace> {
    match (row.column(5)?, row.column(6)?) {
        (ValueRef::Integer(number), ValueRef::Integer(root)) => Ok(KeyPlace { number, root }),
        _ => Err(Error::corrupt("the place of its primary key is none")),
    }
}

/// Changes the schema of a database: an arm for each change, long only by their number.
pub fn change(
    change: &SchemaChange,
    place: &SchemaPlace,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let schema = &place.tree;
    match change {
        SchemaChange::CreateTable {
            name,
            sql,
            automatic_indexes,
            key,
            autoincrement,
            source,
        } => {
            let tree = txn.create_tree(schema, KeyKind::Int)?;
            let row = row_of("table", name, name, &tree, Some(sql));
            add_table(row, automatic_indexes, *key, schema, edits, txn)?;
            if *autoincrement {
                let stored = sequence_tree(schema, edits, txn)?;
                sequence::begin(txn, &stored, name, &tree)?;
            }
            match source {
                Some((node, affinities)) => fill(node, affinities, &tree, txn, cx),
                None => Ok(()),
            }
        }
        SchemaChange::CreateIndex {
            name,
            sql,
            table,
            source,
            writer,
        } => {
            let tree = txn.create_tree(schema, KeyKind::Bytes)?;
            build_index(table, source, writer, &tree, txn, cx)?;
            let row = row_of("index", name, &table.name, &tree, Some(sql));
            edits.add(schema, row, txn)
        }
        SchemaChange::Reindex(tables) => tables
            .iter()
            .try_for_each(|rebuild| reindex(rebuild, edits, txn, cx)),
        SchemaChange::DropTable(table, _) => drop_table(table, place, edits, txn),
        SchemaChange::DropIndex(index) => drop_index(index, schema, edits, txn),
        SchemaChange::DropMalformed { kind, name, trees } => {
            drop_rows(schema, edits, txn, |row| row.goes_with(kind, name))?;
            if *kind == "table" {
                drop_temporary_triggers(name, place, edits, txn)?;
            }
            Ok(trees.iter().try_for_each(|tree| txn.drop_tree(tree))?)
        }
        SchemaChange::CreateView { name, sql } => {
            edits.add(schema, text_row("view", name, name, sql), txn)
        }
        SchemaChange::DropView(name) => drop_view(name, place, edits, txn),
        SchemaChange::CreateTrigger {
            name,
            table,
            database,
            sql,
        } => {
            let row = SchemaRow {
                database: database.clone(),
                ..text_row("trigger", name, table, sql)
            };
            edits.add(schema, row, txn)
        }
        SchemaChange::DropTrigger(name) => drop_row("trigger", name, schema, edits, txn),
        SchemaChange::Rewrite(change, forbidding) => {
            for (rows, error) in forbidding {
                if has_rows(rows, txn, cx)? {
                    return Err(error.clone());
                }
            }
            alter::rewrite(std::slice::from_ref(change), place, edits, txn)
        }
        SchemaChange::RenameTable {
            rewrites,
            table,
            new_name,
        } => {
            if let Some(stored) = sequence_if_any(schema, edits, txn)? {
                sequence::rename(txn, &stored, &table.name, new_name)?;
            }
            alter::rewrite(rewrites, place, edits, txn)
        }
        SchemaChange::RenameColumn(rewrites) => alter::rewrite(rewrites, place, edits, txn),
        SchemaChange::DropColumn {
            rewrites,
            table,
            column,
        } => {
            alter::drop_column(table, *column, txn, cx.run)?;
            alter::rewrite(rewrites, place, edits, txn)
        }
    }
}

fn has_rows(node: &Node, txn: &mut Txns, cx: &mut Context<'_, '_>) -> Result<bool> {
    let mut source = build(node);
    source.attach(txn)?;
    source.open(cx)?;
    source.next(cx, ROWS_FIRST, &mut Batch::default())
}

/// The tree of sqlite_sequence, of which who bound the statement knows that it is one.
fn sequence_if_any(schema: &Tree, edits: &mut SchemaEdits, txn: &mut Txns) -> Result<Option<Tree>> {
    let is_it = |row: &SchemaRow| {
        row.kind.eq_ignore_ascii_case("table") && row.name.eq_ignore_ascii_case(SEQUENCE)
    };
    match edits.find(schema, is_it)?.first() {
        Some((_, row)) => {
            let id = u32::try_from(row.root).unwrap_or(u32::MAX);
            Ok(Some(txn.store_of(schema).tree(TreeId(id))?))
        }
        None => Ok(None),
    }
}

/// The same, which is created if there is none.
fn sequence_tree(schema: &Tree, edits: &mut SchemaEdits, txn: &mut Txns) -> Result<Tree> {
    if let Some(tree) = sequence_if_any(schema, edits, txn)? {
        return Ok(tree);
    }
    let tree = txn.create_tree(schema, KeyKind::Int)?;
    let sql = format!("CREATE TABLE {SEQUENCE}(name,seq)");
    let row = row_of("table", SEQUENCE, SEQUENCE, &tree, Some(&sql));
    edits.add(schema, row, txn)?;
    Ok(tree)
}

fn row_of(kind: &str, name: &str, table: &str, tree: &Tree, sql: Option<&str>) -> SchemaRow {
    SchemaRow {
        kind: kind.to_owned(),
        name: name.to_owned(),
        table: table.to_owned(),
        root: i64::from(tree.id().0),
        sql: sql.map(str::to_owned),
        database: None,
        key: None,
    }
}

/// The row of a view or a trigger, which has no tree.
fn text_row(kind: &str, name: &str, table: &str, sql: &str) -> SchemaRow {
    SchemaRow {
        kind: kind.to_owned(),
        name: name.to_owned(),
        table: table.to_owned(),
        root: 0,
        sql: Some(sql.to_owned()),
        database: None,
        key: None,
    }
}

/// A row of sqlite_schema as it is stored.
pub fn encode_row(row: &SchemaRow) -> Result<Vec<u8>> {
    let mut record = Vec::new();
    let sql = row
        .sql
        .as_ref()
        .map_or(ValueRef::Null, |s| ValueRef::Text(s.as_bytes()));
    let mut values = vec![
        ValueRef::Text(row.kind.as_bytes()),
        ValueRef::Text(row.name.as_bytes()),
        ValueRef::Text(row.table.as_bytes()),
        ValueRef::Integer(row.root),
        sql,
    ];
    let database = row.database.as_deref().map(str::as_bytes);
    values.extend(database.map(ValueRef::Text));
    if let Some(KeyPlace { number, root }) = row.key {
        values.extend([ValueRef::Integer(number), ValueRef::Integer(root)]);
    }
    RowWriter::encode(&mut record, values)?;
    Ok(record)
}

/// Adds the rows of a table and of its automatic indexes, whose trees it makes; the table's
/// own row says where the index is that is the `key` of a WITHOUT ROWID table.
fn add_table(
    mut table: SchemaRow,
    automatic: &[String],
    key: Option<usize>,
    schema: &Tree,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    let mut indexes = Vec::with_capacity(automatic.len());
    for (number, (at, index)) in (1..).zip(automatic.iter().enumerate()) {
        let tree = txn.create_tree(schema, KeyKind::Bytes)?;
        let row = row_of("index", index, &table.name, &tree, None);
        match key == Some(at) {
            true => {
                let root = row.root;
                table.key = Some(KeyPlace { number, root });
            }
            false => indexes.push(row),
        }
    }
    edits.add(schema, table, txn)?;
    let mut indexes = indexes.into_iter();
    indexes.try_for_each(|index| edits.add(schema, index, txn))
}

/// CREATE TABLE … AS SELECT.
fn fill(
    node: &Node,
    affinities: &[Affinity],
    tree: &Tree,
    txn: &mut Txns,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let mut source = build(node);
    let (mut batch, mut records) = (Batch::default(), Records::default());
    source.attach(txn)?;
    source.open(cx)?;
    while source.next(cx, usize::MAX, &mut batch)? {
        cx.run.check_interrupt()?;
        records.clear();
        batch.selection().try_each(|row| {
            let values = batch.columns.iter().map(|column| column.get(row));
            let mut stored = values.clone().zip(affinities);
            if stored.all(|(value, affinity)| affinity.keeps(value)) {
                return records.push(values);
            }
            let stored = values.zip(affinities);
            let stored: Vec<_> = stored.map(|(value, to)| to.apply(value)).collect();
            records.push(stored.iter().map(|value| value.as_ref()))
        })?;
        records.append(tree, txn)?;
    }
    Ok(())
}

/// Puts the entries of all rows into a new index, in key order.
fn build_index(
    table: &Table,
    source: &Node,
    writer: &IndexWriter,
    tree: &Tree,
    txn: &mut Txns,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let mut source = build(source);
    let maker = KeyMaker::new(writer);
    let mut sorter = Sorter::new(&cx.run.memory, None);
    let (mut batch, mut entry) = (Batch::default(), Entry::default());
    source.attach(txn)?;
    source.open(cx)?;
    while source.next(cx, usize::MAX, &mut batch)? {
        cx.run.check_interrupt()?;
        batch.selection().try_each(|row| {
            let ValueRef::Integer(rowid) = batch.get(0, row) else {
                return Ok(());
            };
            maker.make(writer, Row::Batch(&batch, row), rowid, cx, &mut entry)?;
            if entry.present {
                sorter.add(&entry.key, &entry.value)
            } else {
                Ok(())
            }
        })?;
    }
    sorter.finish()?;
    let mut written = 0u32;
    let mut entries = txn.append(tree);
    while let Some((key, value)) = sorter.next_record()? {
        // Keys that need not be unique end with the rowid and never meet.
        if !entries.insert(Key::Bytes(key), value)? {
            return Err(duplicate(table, &writer.index));
        }
        written = written.wrapping_add(1);
        if written.is_multiple_of(4096) {
            cx.run.check_interrupt()?;
        }
    }
    Ok(entries.finish()?)
}

/// Makes indexes anew, one at a time: what is sorted for one is let go before the next.
fn reindex(
    rebuild: &Rebuild,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let Rebuild {
        schema,
        table,
        indexes,
    } = rebuild;
    for (source, writer) in indexes {
        let tree = txn.create_tree(schema, KeyKind::Bytes)?;
        build_index(table, source, writer, &tree, txn, cx)?;
        alter::move_index(&writer.index.name, &tree, schema, edits, txn)?;
        txn.drop_tree(&writer.index.tree)?;
    }
    Ok(())
}

/// Removes the temporary triggers of a table or view of another database.
fn drop_temporary_triggers(
    name: &str,
    place: &SchemaPlace,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    let Some(temp) = &place.temp else {
        return Ok(());
    };
    drop_rows(temp, edits, txn, |row| {
        let database = row.database.as_ref();
        database.is_some_and(|it| it.eq_ignore_ascii_case(&place.name))
            && row.table.eq_ignore_ascii_case(name)
    })
}

fn drop_table(
    table: &Table,
    place: &SchemaPlace,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    drop_rows(&place.tree, edits, txn, |row| {
        let is_other =
            row.kind.eq_ignore_ascii_case("table") && !row.name.eq_ignore_ascii_case(&table.name);
        row.database.is_none() && row.table.eq_ignore_ascii_case(&table.name) && !is_other
    })?;
    drop_temporary_triggers(&table.name, place, edits, txn)?;
    for index in &table.indexes {
        txn.drop_tree(&index.tree)?;
    }
    if let Some(stored) = &table.sequence {
        sequence::end(txn, stored, table)?;
    }
    txn.drop_tree(&table.tree)?;
    Ok(())
}

fn drop_view(
    name: &str,
    place: &SchemaPlace,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    drop_row("view", name, &place.tree, edits, txn)?;
    drop_rows(&place.tree, edits, txn, |row| {
        row.kind.eq_ignore_ascii_case("trigger")
            && row.database.is_none()
            && row.table.eq_ignore_ascii_case(name)
    })?;
    drop_temporary_triggers(name, place, edits, txn)
}

fn drop_index(index: &Index, schema: &Tree, edits: &mut SchemaEdits, txn: &mut Txns) -> Result<()> {
    drop_row("index", &index.name, schema, edits, txn)?;
    txn.drop_tree(&index.tree)?;
    Ok(())
}

fn drop_row(
    kind: &str,
    name: &str,
    schema: &Tree,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
) -> Result<()> {
    drop_rows(schema, edits, txn, |row| {
        row.kind.eq_ignore_ascii_case(kind) && row.name.eq_ignore_ascii_case(name)
    })
}

fn drop_rows(
    schema: &Tree,
    edits: &mut SchemaEdits,
    txn: &mut Txns,
    goes: impl Fn(&SchemaRow) -> bool,
) -> Result<()> {
    for (rowid, _) in edits.find(schema, goes)? {
        edits.remove(schema, rowid, txn)?;
    }
    Ok(())
}
