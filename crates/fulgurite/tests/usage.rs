//! One source file of everyday use, compiled against rusqlite and against this
//! crate, must print the same.

// The parameters are written in every way there is, the long ones too.
#![expect(clippy::needless_borrows_for_generic_args)]

mod on_sqlite {
    use rusqlite as db;
    include!("usage/workload.rs");

    pub mod copies {
        use rusqlite as db;
        include!("usage/copies.rs");
    }

    pub mod blobs {
        use rusqlite as db;
        include!("usage/blobs.rs");
    }

    #[cfg(feature = "serde_json")]
    pub mod json {
        use rusqlite as db;
        include!("usage/json.rs");
    }
}

mod on_fulgurite {
    use fulgurite as db;
    include!("usage/workload.rs");

    pub mod copies {
        use fulgurite as db;
        include!("usage/copies.rs");
    }

    pub mod blobs {
        use fulgurite as db;
        include!("usage/blobs.rs");
    }

    #[cfg(feature = "serde_json")]
    pub mod json {
        use fulgurite as db;
        include!("usage/json.rs");
    }
}

/// Both said the same, which is more than nothing.
fn same_lines(what: &str, ours: &str, theirs: &str) {
    let lines = ours.lines().zip(theirs.lines()).enumerate();
    let differences: Vec<String> = lines
        .filter(|(_, (ours, theirs))| ours != theirs)
        .map(|(i, (ours, theirs))| format!("line {}:\n  {ours}\n  {theirs}", i + 1))
        .take(40)
        .collect();
    assert!(differences.is_empty(), "{what}\n{}", differences.join("\n"));
    assert_eq!(
        ours.lines().count(),
        theirs.lines().count(),
        "lines of {what}"
    );
    assert!(!ours.is_empty(), "{what} printed nothing");
}

#[test]
fn copies_are_the_same_as_rusqlites() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let [ours, theirs] = dirs.each_ref().map(tempfile::TempDir::path);
    let ours = on_fulgurite::copies::run(ours);
    same_lines("copies", &ours, &on_sqlite::copies::run(theirs));
}

#[test]
fn blobs_are_the_same_as_rusqlites() {
    same_lines(
        "blobs",
        &on_fulgurite::blobs::run(),
        &on_sqlite::blobs::run(),
    );
}

#[cfg(feature = "serde_json")]
#[test]
fn values_of_json_are_the_same_as_rusqlites() {
    same_lines("JSON", &on_fulgurite::json::run(), &on_sqlite::json::run());
}

#[test]
fn prints_the_same_as_rusqlite() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let ours = on_fulgurite::run(&dir.path().join("fulgurite.db"));
    let theirs = on_sqlite::run(&dir.path().join("sqlite.db"));
    for ((chapter, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        same_lines(&format!("chapter {chapter}"), ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
