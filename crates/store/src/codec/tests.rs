//! Round trips of every kind of page, damaged images, and the documented bytes.

use super::*;
use crate::node::tests as pages;
use crate::node::{Key, Kind, OwnedKey};

fn leaf(page_size: usize, entries: usize) -> Vec<u8> {
    let mut page = vec![0xA5; page_size];
    pages::init(
        &mut page,
        Kind::BytesLeaf,
        0,
        7,
        Some(Key::Bytes(b"user")),
        Some(Key::Bytes(b"uservv")),
    );
    node::set_birth(&mut page, 99);
    for n in 0..entries {
        let key = format!("user{:05}", n * 7919 % 10_000);
        if let Err(i) = pages::search(&page, Key::Bytes(key.as_bytes())) {
            pages::insert_at(
                &mut page,
                i,
                Key::Bytes(key.as_bytes()),
                &[n as u8; 21],
                false,
            );
        }
    }
    page
}

fn inner(page_size: usize, separators: usize, bytes: bool) -> (Vec<u8>, Vec<(u64, u32)>) {
    let mut page = vec![0xA5; page_size];
    let kind = if bytes {
        Kind::BytesInner
    } else {
        Kind::IntInner
    };
    let mut n = 0;
    pages::init(
        &mut page[..node::key_area(page_size, 1)],
        kind,
        2,
        7,
        None,
        None,
    );
    while n < separators {
        let text = format!("{n:07}");
        let key = if bytes {
            Key::Bytes(text.as_bytes())
        } else {
            Key::Int(n as i64)
        };
        if !pages::insert_separator_at(&mut page[..node::key_area(page_size, n + 1)], n, key) {
            break;
        }
        n += 1;
    }
    let children = (0..=n as u64).map(|i| {
        (
            ExtentRef::new(i * 1000 + 1, 8).map_or(0, ExtentRef::word),
            i as u32 * 77,
        )
    });
    (page, children.collect())
}

/// Decodes an image of `keys` and compares everything but the gap.
fn round_trip(keys: &[u8], children: &[(u64, u32)], codec: Codec) -> usize {
    let mut scratch = Scratch::default();
    let page_size = keys.len() + CHILD * children.len();
    let image = encode(keys, children, codec, None, &mut scratch);
    assert_eq!(image.len() % UNIT, 0);
    assert!(image.len() <= (page_size + 16).next_multiple_of(UNIT));
    let mut page = vec![0x5A; page_size];
    decode(image, &mut page, None).unwrap();
    assert_eq!(node::check(&page), Ok(()));
    assert!(node::is_compact(&page));
    assert_eq!(node::birth(&page), node::birth(keys));
    let n = node::count(keys);
    assert_eq!(node::count(&page), n);
    let has_keys = node::kind(keys) != Some(Kind::Overflow);
    for i in (0..n).filter(|_| has_keys) {
        assert_eq!(pages::owned_key_at(&page, i), pages::owned_key_at(keys, i));
        if node::is_leaf(&page) {
            assert_eq!(node::value_at(&page, i), node::value_at(keys, i));
        }
    }
    for (i, (word, sum)) in children.iter().enumerate() {
        let at = node::child_offset(page_size, i);
        assert_eq!(page[at..at + 8], word.to_le_bytes());
        assert_eq!(page[at + 8..at + 12], sum.to_le_bytes());
        assert_eq!(page[at + 12..at + 16], [0xff; 4]);
    }
    image.len()
}

#[test]
fn pages_survive() {
    for codec in [Codec::None, Codec::Lz4] {
        for page_size in [4096, 16384, 65536] {
            for entries in [0, 1, 50, 5000] {
                round_trip(&leaf(page_size, entries), &[], codec);
                for bytes in [false, true] {
                    let (page, children) = inner(page_size, entries, bytes);
                    round_trip(
                        &page[..node::key_area(page_size, children.len())],
                        &children,
                        codec,
                    );
                }
            }
            for len in [0, 100, node::max_chunk(page_size)] {
                let mut page = vec![0; page_size];
                node::init_overflow(&mut page, 3, &vec![9; len]);
                round_trip(&page, &[], codec);
            }
            for children in [1, 100, node::max_overflow_children(page_size)] {
                let mut page = vec![0; page_size];
                node::init_overflow_index(&mut page, 3, 1, children);
                let children = vec![(5 | 8 << 44, 1); children];
                let keys = &page[..node::key_area(page_size, children.len())];
                round_trip(keys, &children, codec);
            }
        }
    }
    assert!(
        round_trip(&leaf(4096, 5000), &[], Codec::Lz4)
            < round_trip(&leaf(4096, 5000), &[], Codec::None)
    );
}

#[test]
fn incompressible_pages_are_stored_raw() {
    let mut page = vec![0; 4096];
    pages::init(&mut page, Kind::IntLeaf, 0, 7, None, None);
    let mut state = 1_u64;
    for i in 0..3 {
        let noise = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        });
        let noise: Vec<u8> = noise.take(1020).collect();
        assert!(pages::insert_at(
            &mut page,
            i,
            Key::Int(i as i64),
            &noise,
            false
        ));
    }
    let mut scratch = Scratch::default();
    let image = encode(&page, &[], Codec::Lz4, None, &mut scratch);
    assert_eq!((image[30], image.len()), (0x12, 3136));
}

#[test]
fn damaged_images_are_refused_or_harmless() {
    let mut scratch = Scratch::default();
    let (page, children) = inner(4096, 90, true);
    let images = [
        encode(&leaf(4096, 500), &[], Codec::Lz4, None, &mut scratch).to_vec(),
        encode(&leaf(4096, 30), &[], Codec::None, None, &mut scratch).to_vec(),
        encode(
            &page[..node::key_area(4096, children.len())],
            &children,
            Codec::Lz4,
            None,
            &mut scratch,
        )
        .to_vec(),
    ];
    let mut out = vec![0; 4096];
    for image in &images {
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&damaged), checksum(image));
            if decode(&damaged, &mut out, None).is_ok() {
                let _ = node::check(&out);
            }
        }
        for len in 0..image.len() {
            assert!(decode(&image[..len], &mut out, None).is_err());
        }
        assert_eq!(
            decode(image, &mut [0; 8192], None),
            Err(CodecError::PageSize)
        );
        let mut newer = image.clone();
        newer[30] = 0x20;
        assert_eq!(
            decode(&newer, &mut out, None),
            Err(CodecError::NewerVersion(2))
        );
        newer[30] = 0x19;
        assert_eq!(
            decode(&newer, &mut out, None),
            Err(CodecError::UnknownCodec(9))
        );
    }
    assert_eq!(
        decode(&[0; 512], &mut out, None),
        Err(CodecError::NotAnImage)
    );
}

/// Pages of one kind and what is trained on some others of it.
fn alike(bytes: bool) -> (Vec<Vec<u8>>, Arc<Dictionary>) {
    let page = |number: usize| {
        let mut page = vec![0xA5; 4096];
        let kind = if bytes {
            Kind::BytesLeaf
        } else {
            Kind::IntLeaf
        };
        pages::init(&mut page, kind, 0, 7, None, None);
        for n in 0.. {
            let id = number * 100 + n;
            let text = format!("key{id:09}");
            let key = match bytes {
                true => Key::Bytes(text.as_bytes()),
                false => Key::Int(id as i64),
            };
            let part = |at: u32| {
                ["rock", "lake", "hill", "dale", "ford"][(id * 7919 / 3) / 5_usize.pow(at) % 5]
            };
            let number = id * 2_654_435_761 % 99_991;
            let value = format!("{}{}{}{number:x}", part(0), part(1), part(2));
            if !pages::insert_at(&mut page, n, key, value.as_bytes(), false) {
                return page;
            }
        }
        page
    };
    let samples: Vec<Vec<u8>> = (0..40).map(|number| payload(&page(number))).collect();
    let trained = dictionary::train(&samples).expect("enough in common");
    (
        (50..60).map(page).collect(),
        Arc::new(Dictionary::new(3, trained)),
    )
}

#[test]
fn pages_survive_with_dictionaries() {
    for bytes in [false, true] {
        let (pages, dictionary) = alike(bytes);
        let mut scratch = Scratch::default();
        for page in &pages {
            let plain = encode(page, &[], Codec::Lz4, None, &mut scratch).to_vec();
            let image = encode(page, &[], Codec::Lz4, Some(&dictionary), &mut scratch).to_vec();
            assert!(image.len() < plain.len(), "shorter by a unit or more");
            assert_eq!((dictionary_of(&plain), dictionary_of(&image)), (0, 3));
            assert_eq!((image[31], plain[31]), (3 << 5 | 12, 12));
            let mut fresh = Scratch::default();
            let again = encode(page, &[], Codec::Lz4, Some(&dictionary), &mut fresh);
            assert_eq!(again, image, "the same bytes every time");

            let mut out = vec![0; 4096];
            for (image, dictionary) in [
                (&image, Some(&*dictionary)),
                (&plain, None),
                (&plain, Some(&*dictionary)),
            ] {
                decode(image, &mut out, dictionary).unwrap();
                assert_eq!(node::check(&out), Ok(()));
                assert_eq!(payload(&out), payload(page));
            }
            let other = Dictionary::new(2, dictionary.bytes().to_vec());
            for wrong in [None, Some(&other)] {
                let refused = decode(&image, &mut out, wrong);
                assert_eq!(refused, Err(CodecError::NoDictionary(3)));
            }
        }
    }
}

#[test]
fn damaged_images_with_dictionaries_are_refused_or_harmless() {
    for bytes in [false, true] {
        let (pages, dictionary) = alike(bytes);
        let mut scratch = Scratch::default();
        let image = encode(&pages[0], &[], Codec::Lz4, Some(&dictionary), &mut scratch).to_vec();
        let mut out = vec![0; 4096];
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if decode(&damaged, &mut out, Some(&dictionary)).is_ok() {
                let _ = node::check(&out);
            }
        }
        // The right page with a dictionary of other bytes is not found out here,
        // but by the dictionary's checksum.
        let other = Dictionary::new(3, vec![0; dictionary.bytes().len()]);
        if decode(&image, &mut out, Some(&other)).is_ok() {
            let _ = node::check(&out);
        }
    }
}

#[test]
fn references() {
    let extent = ExtentRef::new(5, 8).unwrap();
    assert_eq!(
        (extent.position(), extent.units(), extent.end()),
        (5, 8, 13)
    );
    assert_eq!((extent.byte_offset(), extent.byte_len()), (320, 512));
    assert_eq!(extent.word(), 5 | 8 << 44);
    assert_eq!(ExtentRef::from_word(extent.word()), Some(extent));
    assert_eq!(ExtentRef::from_word(0), None);
    assert_eq!(ExtentRef::from_word(1 << 63 | extent.word()), None);
    assert_eq!(ExtentRef::new(1, UNITS_MAX + 1), None);
    assert_eq!(ExtentRef::new(ExtentRef::POSITION_END - 1, 2), None);
}

/// A leaf and an inner node, byte by byte as `docs/file-format.md` describes them.
#[test]
fn documented_bytes() {
    let mut golden = vec![0; UNIT];
    // kind 1, level 0, count 1, heap 2, garbage 0 | birth 6
    golden[0..16].copy_from_slice(&[1, 0, 1, 0, 2, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    // tree 17, heap end 256, flags 1 | stored 20, version 1, codec 2, log2 12
    golden[16..32].copy_from_slice(&[17, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 20, 0, 0x12, 12]);
    golden[32..48].copy_from_slice(&[
        254, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    // Key 3, length 2, the value.
    golden[48..52].copy_from_slice(&[6, 4, b'h', b'i']);
    let mut page = vec![0; 4096];
    decode(&golden, &mut page, None).unwrap();
    assert_eq!(node::check(&page), Ok(()));
    assert_eq!(
        (node::kind(&page), node::birth(&page), node::tree(&page)),
        (Some(Kind::IntLeaf), 6, 17)
    );
    assert_eq!(
        (pages::lower_fence(&page), pages::upper_fence(&page)),
        (Some(OwnedKey::Int(-2)), None)
    );
    assert_eq!(
        (node::int_key_at(&page, 0), node::value_at(&page, 0)),
        (3, (&b"hi"[..], false))
    );
    assert_eq!(
        encode(&page, &[], Codec::Lz4, None, &mut Scratch::default()),
        golden
    );

    let mut golden = vec![0; 2 * UNIT];
    // kind 4, level 1, count 1, heap 12 | birth 6
    golden[0..16].copy_from_slice(&[4, 1, 1, 0, 12, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    // tree 18, heap end 254, prefix 3, fences of 4 and 5 bytes
    golden[16..32].copy_from_slice(&[18, 0, 0, 0, 254, 0, 3, 0, 4, 0, 5, 0, 44, 0, 0x10, 12]);
    // The separator "abcdefghij": head "defg", tail "hij" at distance 12.
    golden[32..40].copy_from_slice(b"defg\x0c\x00\x07\x00");
    golden[40..52].copy_from_slice(b"hijabcxyabca");
    // Child 1, then child 0: position, length in units, checksum.
    golden[52..64].copy_from_slice(&[9, 0, 0, 0, 0, 0x80, 0, 0, 0xdd, 0xcc, 0xbb, 0xaa]);
    golden[64..76].copy_from_slice(&[1, 0, 0, 0, 0, 0x30, 0, 0, 1, 2, 3, 4]);
    decode(&golden, &mut page, None).unwrap();
    assert_eq!(node::check(&page), Ok(()));
    assert_eq!(
        pages::owned_key_at(&page, 0).as_key(),
        Key::Bytes(b"abcdefghij")
    );
    assert_eq!(pages::lower_fence(&page), Some(Key::Bytes(b"abca").into()));
    assert_eq!(pages::upper_fence(&page), Some(Key::Bytes(b"abcxy").into()));
    let children = [(1 | 3 << 44, 0x0403_0201), (9 | 8 << 44, 0xaabb_ccdd)];
    assert_eq!(
        encode(
            &page[..4064],
            &children,
            Codec::Lz4,
            None,
            &mut Scratch::default()
        ),
        golden
    );
    assert_eq!(checksum(b"123456789"), 0xe306_9283);
}
