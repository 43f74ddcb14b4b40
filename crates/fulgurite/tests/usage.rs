//! One source file of everyday use, compiled against rusqlite and against this
//! crate, must print the same.

// The parameters are written in every way there is, the long ones too.
#![expect(clippy::needless_borrows_for_generic_args)]

mod on_sqlite {
    use rusqlite as db;
    include!("usage/workload.rs");
}

mod on_fulgurite {
    use fulgurite as db;
    include!("usage/workload.rs");
}

#[test]
fn prints_the_same_as_rusqlite() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let ours = on_fulgurite::run(&dir.path().join("fulgurite.db"));
    let theirs = on_sqlite::run(&dir.path().join("sqlite.db"));
    for ((chapter, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        let ours: Vec<&str> = ours.lines().collect();
        let theirs: Vec<&str> = theirs.lines().collect();
        for (i, (o, t)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(o, t, "chapter {chapter}, line {}", i + 1);
        }
        assert_eq!(ours.len(), theirs.len(), "lines in chapter {chapter}");
        assert!(!ours.is_empty(), "chapter {chapter} printed nothing");
    }
    assert_eq!(ours.len(), theirs.len());
}
