//! A small B+tree over the page functions, as the store uses them, against a `BTreeMap`.

use std::collections::BTreeMap;

use super::*;

struct Tree {
    pages: Vec<Vec<u8>>,
    root: usize,
    page_size: usize,
    keys: Keys,
}

fn child(page: &[u8], i: usize) -> usize {
    get64(page, child_offset(page.len(), i)) as usize
}

fn children(page: &[u8]) -> Vec<usize> {
    (0..child_count(page)).map(|i| child(page, i)).collect()
}

fn put_children(page: &mut [u8], children: &[usize]) {
    for (i, &reference) in children.iter().enumerate() {
        let at = child_offset(page.len(), i);
        page[at..at + 16].fill(0);
        page[at..at + 8].copy_from_slice(&(reference as u64).to_le_bytes());
    }
}

impl Tree {
    fn new(keys: Keys, page_size: usize) -> Tree {
        let mut root = stale(page_size);
        init(&mut root, keys.leaf(), 0, 3, None, None);
        Tree {
            pages: vec![root],
            root: 0,
            page_size,
            keys,
        }
    }

    fn key_len(&self, page: usize) -> usize {
        key_area(self.page_size, child_count(&self.pages[page]))
    }

    fn path(&self, key: Key<'_>) -> Vec<(usize, usize)> {
        let mut path = Vec::new();
        let mut page = self.root;
        while !is_leaf(&self.pages[page]) {
            let i = child_index(&self.pages[page][..self.key_len(page)], key);
            path.push((page, i));
            page = child(&self.pages[page], i);
        }
        path.push((page, 0));
        assert!(self.keys == Keys::Beyond || covers(&self.pages[page], key));
        path
    }

    fn new_page(&mut self) -> usize {
        self.pages.push(stale(self.page_size));
        self.pages.len() - 1
    }

    fn put(&mut self, key: Key<'_>, value: &[u8], overflow: bool, at: SplitPoint) {
        let mut path = self.path(key);
        let Some((leaf, _)) = path.pop() else {
            unreachable!()
        };
        let page = &mut self.pages[leaf];
        let i = match search(page, key) {
            Ok(i) if replace_value_at(page, i, value, overflow) => return,
            Ok(i) => {
                remove_at(page, i);
                i
            }
            Err(i) => i,
        };
        if insert_at(page, i, key, value, overflow) {
            return;
        }
        let src = page.clone();
        let right = self.new_page();
        let mut right_page = stale(self.page_size);
        let split = split_leaf(
            &src,
            &mut self.pages[leaf],
            &mut right_page,
            at,
            i,
            key,
            value.len(),
        )
        .unwrap();
        self.pages[right] = right_page;
        let side = if split.right { right } else { leaf };
        assert!(insert_at(
            &mut self.pages[side],
            split.index,
            key,
            value,
            overflow
        ));
        self.insert_up(path, split.separator, right, at);
    }

    fn insert_up(
        &mut self,
        mut path: Vec<(usize, usize)>,
        separator: OwnedKey,
        right: usize,
        at: SplitPoint,
    ) {
        let Some((page, i)) = path.pop() else {
            let root = self.new_page();
            let level = level(&self.pages[self.root]) + 1;
            let children = [self.root, right];
            let area = key_area(self.page_size, 1);
            init(
                &mut self.pages[root][..area],
                self.keys.inner(),
                level,
                3,
                None,
                None,
            );
            assert!(insert_separator_at(
                &mut self.pages[root][..area],
                0,
                separator.as_key()
            ));
            put_children(&mut self.pages[root], &children);
            assert_eq!(check(&self.pages[root]), Ok(()));
            self.root = root;
            return;
        };
        if self.insert_child(page, i, &separator, right) {
            return;
        }
        let src = self.pages[page].clone();
        let (n, area) = (count(&src), self.key_len(page));
        let m = split_point(&src[..area], at, i);
        let mut right_page = stale(self.page_size);
        let (left_area, right_area) = (
            key_area(self.page_size, m + 1),
            key_area(self.page_size, n - m),
        );
        let up = split_inner(
            &src[..area],
            m,
            &mut self.pages[page][..left_area],
            &mut right_page[..right_area],
        );
        let all = children(&src);
        put_children(&mut self.pages[page], &all[..=m]);
        put_children(&mut right_page, &all[m + 1..]);
        assert_eq!(
            (check(&self.pages[page]), check(&right_page)),
            (Ok(()), Ok(()))
        );
        let new = self.new_page();
        self.pages[new] = right_page;
        let (side, index) = if i <= m { (page, i) } else { (new, i - m - 1) };
        assert!(self.insert_child(side, index, &separator, right));
        self.insert_up(path, up, new, at);
    }

    fn insert_child(&mut self, page: usize, i: usize, separator: &OwnedKey, right: usize) -> bool {
        let area = self.key_len(page);
        let mut all = children(&self.pages[page]);
        if !insert_separator_at(&mut self.pages[page][..area], i, separator.as_key()) {
            return false;
        }
        all.insert(i + 1, right);
        put_children(&mut self.pages[page], &all);
        assert_eq!(check(&self.pages[page]), Ok(()));
        true
    }

    fn delete(&mut self, key: Key<'_>) {
        let mut path = self.path(key);
        let Some((mut page, _)) = path.pop() else {
            unreachable!()
        };
        let Ok(i) = search(&self.pages[page], key) else {
            return;
        };
        remove_at(&mut self.pages[page], i);
        while let Some((parent, i)) = path.pop() {
            if used_bytes(&self.pages[page]) > self.page_size / 3 || !self.merge(parent, i) {
                break;
            }
            page = parent;
        }
        while !is_leaf(&self.pages[self.root]) && count(&self.pages[self.root]) == 0 {
            self.root = child(&self.pages[self.root], 0);
        }
    }

    /// Merges child `i` of `parent` with a neighbour.
    fn merge(&mut self, parent: usize, i: usize) -> bool {
        let n = count(&self.pages[parent]);
        if n == 0 {
            return false;
        }
        let i = i.min(n - 1);
        let mut all = children(&self.pages[parent]);
        let (left, right) = (all[i], all[i + 1]);
        let (l, r) = (self.pages[left].clone(), self.pages[right].clone());
        let mut dst = stale(self.page_size);
        let merged = if is_leaf(&l) {
            merge_leaves(&l, &r, &mut dst)
        } else {
            let separator = owned_key_at(&self.pages[parent], i);
            let (ca, cb) = (children(&l), children(&r));
            let area = key_area(self.page_size, ca.len() + cb.len());
            let (la, ra) = (self.key_len(left), self.key_len(right));
            let ok = merge_inner(&l[..la], &r[..ra], separator.as_key(), &mut dst[..area]);
            if ok {
                put_children(&mut dst, &[ca, cb].concat());
            }
            ok
        };
        if !merged {
            return false;
        }
        assert_eq!(check(&dst), Ok(()));
        self.pages[left] = dst;
        let area = self.key_len(parent);
        remove_separator_at(&mut self.pages[parent][..area], i);
        all.remove(i + 1);
        put_children(&mut self.pages[parent], &all);
        assert_eq!(check(&self.pages[parent]), Ok(()));
        true
    }

    fn assert_same(&self, model: &BTreeMap<OwnedKey, (Vec<u8>, bool)>) {
        let mut entries = model.iter();
        self.walk(self.root, &mut |page, i| {
            let Some((key, (value, overflow))) = entries.next() else {
                panic!("an entry too many")
            };
            assert_eq!(&owned_key_at(page, i), key);
            assert_eq!(value_at(page, i), (&value[..], *overflow));
        });
        assert_eq!(entries.next(), None);
    }

    fn walk(&self, page: usize, visit: &mut dyn FnMut(&[u8], usize)) {
        let bytes = &self.pages[page];
        assert_eq!(check(bytes), Ok(()));
        if is_leaf(bytes) {
            (0..count(bytes)).for_each(|i| visit(bytes, i));
            return;
        }
        for (i, child) in children(bytes).into_iter().enumerate() {
            let kid = &self.pages[child];
            assert_eq!(level(kid) + 1, level(bytes));
            let (lower, upper) = (lower_fence(kid), upper_fence(kid));
            let own = |i: usize| (i < count(bytes)).then(|| owned_key_at(bytes, i));
            if i > 0 {
                assert_eq!(lower, own(i - 1));
            } else {
                assert_eq!(lower, lower_fence(bytes));
            }
            match own(i) {
                Some(key) => assert_eq!(upper, Some(key)),
                None => assert_eq!(upper, upper_fence(bytes)),
            }
            self.walk(child, visit);
        }
    }
}

fn run(keys: Keys, page_size: usize, operations: usize, seed: u64) {
    let mut random = Random(seed);
    let mut tree = Tree::new(keys, page_size);
    let mut model = BTreeMap::new();
    for n in 0..operations {
        let deleting = (n * 4 / operations) % 2 == 1;
        let key = keys.draw(&mut random, page_size);
        if random.below(10) < if deleting { 8 } else { 2 } {
            let key = model
                .range(key.clone()..)
                .next()
                .map_or(key, |(k, _): (&OwnedKey, _)| k.clone());
            tree.delete(key.as_key());
            model.remove(&key);
        } else {
            let (value, overflow) = draw_value(&mut random, &key, page_size);
            let at = [SplitPoint::Middle, SplitPoint::Append, SplitPoint::Prepend][random.below(3)];
            tree.put(key.as_key(), &value, overflow, at);
            model.insert(key, (value, overflow));
        }
        if n % 2000 == 0 {
            tree.assert_same(&model);
        }
    }
    tree.assert_same(&model);
}

#[test]
fn trees_of_dense_ints() {
    run(Keys::DenseInts, 4096, 20_000, 3);
}

#[test]
fn trees_of_wide_ints() {
    run(Keys::WideInts, 4096, 40_000, 4);
}

#[test]
fn trees_of_short_strings() {
    run(Keys::Short, 4096, 40_000, 5);
    run(Keys::Short, 65536, 10_000, 6);
}

#[test]
fn trees_of_long_strings() {
    run(Keys::Long, 4096, 20_000, 7);
    run(Keys::Long, 8192, 10_000, 8);
    run(Keys::Beyond, 4096, 20_000, 9);
    run(Keys::Beyond, 8192, 10_000, 10);
}

#[test]
fn ascending_and_descending() {
    for (at, sign) in [(SplitPoint::Append, 1), (SplitPoint::Prepend, -1)] {
        let mut ints = Tree::new(Keys::WideInts, 4096);
        let mut strings = Tree::new(Keys::Short, 4096);
        let mut int_model = BTreeMap::new();
        let mut string_model = BTreeMap::new();
        for n in 0..30_000_i64 {
            let key = OwnedKey::Int(n * sign);
            ints.put(key.as_key(), &[5; 33], false, at);
            int_model.insert(key, (vec![5; 33], false));
            let key = OwnedKey::Bytes(format!("user-{:08}", 50_000_000 + n * sign).into_bytes());
            strings.put(key.as_key(), &[6; 9], false, at);
            string_model.insert(key, (vec![6; 9], false));
        }
        ints.assert_same(&int_model);
        strings.assert_same(&string_model);
        let used: usize = ints.pages.iter().map(|p| used_bytes(p)).sum();
        assert!(
            used * 100 / (ints.pages.len() * 4096) > 95,
            "ordered inserts fill pages"
        );
    }
}

#[test]
fn the_child_of_an_integer_is_found_however_the_separators_are_spread() {
    let spreads: [fn(i64) -> i64; 5] = [
        |i| 77 * i,
        |i| i * i * i,
        |i| i64::MIN + 1 + i * i,
        |i| i64::MAX - 200 * 200 + i * i,
        |i| if i < 60 { i } else { i64::MAX / 200 * i },
    ];
    for (spread, fenced) in spreads.iter().flat_map(|s| [(s, true), (s, false)]) {
        for count in [0, 1, 2, 3, 40, 100] {
            let separators: Vec<i64> = (1..=count).map(spread).collect();
            let mut page = stale(4096);
            let area = key_area(4096, separators.len() + 1);
            let fence = |i| fenced.then_some(Key::Int(spread(i)));
            let fences = (fence(0), fence(count + 1));
            init(&mut page[..area], Kind::IntInner, 1, 4, fences.0, fences.1);
            for (i, separator) in separators.iter().enumerate() {
                assert!(insert_separator_at(
                    &mut page[..area],
                    i,
                    Key::Int(*separator)
                ));
            }
            let near = |key: i64| [key.saturating_sub(1), key, key.saturating_add(1)];
            let ends = [i64::MIN, spread(0), spread(count + 1), i64::MAX];
            for key in separators.iter().copied().chain(ends).flat_map(near) {
                let expected = separators.iter().filter(|s| **s <= key).count();
                assert_eq!(child_index(&page[..area], Key::Int(key)), expected, "{key}");
            }
        }
    }
}
