//! A file that was left in the midst of a commit to it and another one, and is attached to a
//! database whose own doubts were decided by whoever opened it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite::{Database, InDoubt, Options};
use fulgurite_sim::{SimDisk, SimDriver};
use fulgurite_store::{Isolation, Key, KeyKind, Result, Store, Tree, commit_together};

const KEY: Key<'static> = Key::Int(1);

fn open(disk: &SimDisk, name: &str, in_doubt: InDoubt) -> Result<(Store, Tree)> {
    let options = Options {
        driver: Some(SimDriver::new(disk)),
        in_doubt,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), format!("d/{name}"), options)?;
    let tree = store.create_family("t", KeyKind::Int)?;
    Ok((store, tree))
}

fn put(files: &[(Store, Tree); 2], byte: u8) -> Result<()> {
    let mut txns = files.each_ref().map(|(store, _)| store.txn());
    for (txn, (_, tree)) in txns.iter_mut().zip(files) {
        txn.begin(Isolation::Serializable)?;
        txn.put(tree, KEY, &[byte])?;
    }
    let [a, b] = &mut txns;
    commit_together(&mut [a, b])
}

fn value((store, tree): &(Store, Tree)) -> Vec<u8> {
    let (mut txn, mut value) = (store.txn(), Vec::new());
    txn.begin_read().expect("begins");
    assert!(txn.get_into(tree, KEY, &mut value).expect("reads"));
    value
}

/// What the end of the process leaves in the midst of a commit to `a.db` and `b.db` that the
/// first one has decided, and the second has not heard of.
fn decided() -> SimDisk {
    let before = SimDisk::new(1);
    let files = ["a.db", "b.db"].map(|name| open(&before, name, InDoubt::Ask).expect("opens"));
    put(&files, 1).expect("commits");
    drop(files);
    for call in 0.. {
        let disk = before.fork();
        let files = ["a.db", "b.db"].map(|name| open(&disk, name, InDoubt::Ask).expect("opens"));
        disk.stop_at(disk.calls() + call);
        let is_over = put(&files, 2).is_ok();
        let left = disk.kill_image();
        let as_asked = |in_doubt| open(&left.fork(), "b.db", in_doubt).map(|file| value(&file));
        let [told, undone] = [InDoubt::Ask, InDoubt::RollBack].map(as_asked);
        if told.is_ok_and(|value| value == [2]) && undone.is_ok_and(|value| value == [1]) {
            return left;
        }
        assert!(!is_over, "the commit was never in doubt");
    }
    unreachable!("the commit ends")
}

/// A folder on the real disk, gone with this.
struct Folder(PathBuf);

impl Folder {
    fn of(disk: &SimDisk) -> Self {
        let name = format!("fulgurite-{}-in-doubt", std::process::id());
        let this = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&this.0).expect("a folder");
        for file in disk.files() {
            let bytes = disk.contents(&file).expect("is there");
            let name = file.file_name().expect("a name");
            std::fs::write(this.0.join(name), bytes).expect("writes");
        }
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn attach(main: &Path, in_doubt: InDoubt, other: &Path) -> Vec<u8> {
    let options = Options {
        in_doubt,
        ..Options::default()
    };
    let db = Database::open_with_options(main, options).expect("opens");
    let connection = db.connect().expect("connects");
    connection
        .execute("ATTACH ? AS b", [other.to_str()])
        .expect("attaches");
    let store = Store::open(other, Options::default()).expect("joins");
    let tree = store.family("t").expect("reads").expect("is there");
    value(&(store, tree))
}

/// What was decided for the main database, whose deciding file was lost, was done to attached
/// files, too, without asking those that had decided: half of a commit was lost.
#[test]
fn what_is_decided_for_the_main_database_decides_for_no_other() {
    let left = decided();
    for in_doubt in [InDoubt::RollBack, InDoubt::Commit, InDoubt::Ask] {
        let folder = Folder::of(&left);
        let found = attach(&folder.path("main.db"), in_doubt, &folder.path("b.db"));
        assert_eq!(found, [2], "{in_doubt:?}");
    }
}
