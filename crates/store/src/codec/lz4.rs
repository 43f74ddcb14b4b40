//! LZ4 blocks whose matches may reach into a dictionary before them.
//!
//! A *window* is the dictionary followed by what is compressed or restored, in
//! one piece, so that a match is a match wherever it begins. Compressing starts
//! from a hash table that knows the dictionary already ([`preset`]): copying it
//! costs a tenth of what hashing a dictionary for each page would.
//!
//! The blocks are plain LZ4: any decoder that takes a dictionary restores them.
//! [`decompress`] trusts nothing: whatever it is given, it returns, and touches
//! nothing before the window's start. Windows always have the same size, so that
//! a place of 16 bits is known to lie in them without a look: most of the time goes
//! into places where nothing matches, and into sequences of a few bytes.

use std::ops::Range;

/// Entries of the hash table, as a power of two.
const TABLE_BITS: u32 = 12;
/// The shortest match.
const MATCH_MIN: usize = 4;
/// No match begins in so many bytes at the end.
const NO_MATCH: usize = 12;
/// So many bytes at the end are literals.
const LAST_LITERALS: usize = 5;
/// Misses, as a power of two, after which every second place is tried, and so on.
const PATIENCE: u32 = 6;
/// Bytes copied at once where there is room for them, needed or not.
const CHUNK: usize = 16;
/// The same for matches, which may be that near.
const STEP: usize = 8;
/// Bytes of a block that a sequence of one token takes at most: the token, the
/// literals and the distance.
const AHEAD: usize = 1 + 15 + 2;
/// Bytes that such a sequence restores at most.
const SHORT_MAX: usize = 14 + 14 + MATCH_MIN;
/// The longest window: places in it are 16 bits.
pub(super) const WINDOW_MAX: usize = 1 << 16;
/// What [`compress`] reads: room for the longest window, and behind it for the eight
/// bytes that are looked at from any place.
pub(super) type Window = [u8; WINDOW_MAX + STEP];
/// What [`decompress`] restores in: room for the longest window, and behind it for
/// the chunks copied needlessly.
pub(super) type Restoring = [u8; WINDOW_MAX + SHORT_MAX + CHUNK];

/// Where in the window each hash was last seen.
pub(super) type Table = [u16; 1 << TABLE_BITS];

/// The eight bytes at a place of the window.
#[inline]
fn eight(window: &Window, at: usize) -> u64 {
    debug_assert!(at < WINDOW_MAX);
    let bytes = window[usize::from(at as u16)..].first_chunk();
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Of the lowest five bytes: four would find many matches that are hardly worth
/// their place.
#[inline]
fn hash(bytes: u64) -> usize {
    ((bytes << 24).wrapping_mul(889_523_592_379) >> (64 - TABLE_BITS)) as usize
}

/// The table of a window whose first `from` bytes are a dictionary.
pub(super) fn preset(window: &Window, from: usize) -> Box<Table> {
    let mut table = Box::new([0; 1 << TABLE_BITS]);
    for at in 0..(from + 1).saturating_sub(STEP) {
        table[hash(eight(window, at))] = at as u16;
    }
    table
}

/// How many bytes from `early` and `late` on agree, before `end`.
#[inline]
fn agreeing(window: &Window, early: usize, late: usize, end: usize) -> usize {
    let mut length = 0;
    while late + length + 8 <= end {
        let differ = eight(window, early + length) ^ eight(window, late + length);
        if differ != 0 {
            return length + (differ.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    while late + length < end && window[early + length] == window[late + length] {
        length += 1;
    }
    length
}

/// How many bytes before `early` and `late` agree, at most `most`.
#[inline]
fn agreeing_before(window: &Window, early: usize, late: usize, most: usize) -> usize {
    if early >= 8 {
        let differ = eight(window, early - 8) ^ eight(window, late - 8);
        let length = (differ.leading_zeros() / 8) as usize;
        if length < 8 || most <= 8 {
            return length.min(most);
        }
    }
    let most = most.min(early);
    let mut length = 0;
    while length < most && window[early - length - 1] == window[late - length - 1] {
        length += 1;
    }
    length
}

/// Compresses `window[from..end]`, with `window[..from]` as its dictionary and the
/// dictionary's `table`, which is spoilt. Returns the block's length; `None` if
/// it does not fit `out`.
pub(super) fn compress(
    window: &Window,
    Range { start: from, end }: Range<usize>,
    table: &mut Table,
    out: &mut [u8],
) -> Option<usize> {
    debug_assert!(end <= WINDOW_MAX);
    let mut to = 0;
    let mut literals = from;
    // Place 0 is what an empty table says.
    let mut at = from.max(1);
    let last_start = end.saturating_sub(NO_MATCH);
    let matches_end = end.saturating_sub(LAST_LITERALS);
    let mut misses = 1 << PATIENCE;
    while at < last_start {
        let here = eight(window, at);
        let entry = &mut table[hash(here)];
        let candidate = usize::from(*entry);
        *entry = at as u16;
        let differ = eight(window, candidate) ^ here;
        if differ as u32 != 0 {
            at += misses >> PATIENCE;
            misses += 1;
            continue;
        }
        misses = 1 << PATIENCE;
        let length = match differ {
            0 => 8 + agreeing(window, candidate + 8, at + 8, matches_end),
            differ => (differ.trailing_zeros() / 8) as usize,
        };
        let match_end = (at + length).min(matches_end);
        let begin = at - agreeing_before(window, candidate, at, at - literals);
        let token = to;
        to = put_literals(&window[literals..], begin - literals, out, to)?;
        to = put_match(at - candidate, match_end - begin, out, token, to)?;
        at = match_end;
        table[hash(eight(window, at - 2))] = (at - 2) as u16;
        literals = at;
    }
    put_literals(&window[literals..], end - literals, out, to)
}

/// What of a length does not fit the token.
#[inline]
fn put_rest(mut length: usize, out: &mut [u8], mut to: usize) -> Option<usize> {
    while length >= 255 {
        *out.get_mut(to)? = 255;
        to += 1;
        length -= 255;
    }
    *out.get_mut(to)? = length as u8;
    Some(to + 1)
}

/// A token at `to` and the first `count` bytes of `source` behind it.
#[inline]
fn put_literals(source: &[u8], count: usize, out: &mut [u8], mut to: usize) -> Option<usize> {
    *out.get_mut(to)? = (count.min(15) as u8) << 4;
    to += 1;
    if count >= 15 {
        to = put_rest(count - 15, out, to)?;
    }
    let room = out.get_mut(to..)?;
    match (source.first_chunk::<CHUNK>(), room.first_chunk_mut()) {
        (Some(chunk), Some(target)) if count <= CHUNK => *target = *chunk,
        _ => room.get_mut(..count)?.copy_from_slice(&source[..count]),
    }
    Some(to + count)
}

/// A match, which belongs to the token.
#[inline]
fn put_match(
    distance: usize,
    length: usize,
    out: &mut [u8],
    token: usize,
    to: usize,
) -> Option<usize> {
    let length = length - MATCH_MIN;
    out[token] |= length.min(15) as u8;
    let place = out.get_mut(to..)?.first_chunk_mut()?;
    *place = (distance as u16).to_le_bytes();
    match length {
        0..15 => Some(to + 2),
        _ => put_rest(length - 15, out, to + 2),
    }
}

/// Restores a block behind `window[..from]`, its dictionary, not beyond `limit`.
/// Returns where it ends; `None` if it is no block, or a longer one. Bytes of the
/// window from there on are spoilt.
pub(super) fn decompress(
    block: &[u8],
    window: &mut Restoring,
    from: usize,
    limit: usize,
) -> Option<usize> {
    debug_assert!(from <= limit && limit <= WINDOW_MAX);
    let mut to = from;
    let mut at = 0;
    loop {
        (at, to) = short_sequences(block, window, at, to, limit);
        let token = *block.get(at)?;
        at += 1;
        let mut literals = usize::from(token >> 4);
        if literals == 15 {
            literals += take_rest(block, &mut at)?;
        }
        let source = block.get(at..)?.get(..literals)?;
        let target = window.get_mut(to..limit)?.get_mut(..literals)?;
        target.copy_from_slice(source);
        at += literals;
        to += literals;
        if at == block.len() {
            return Some(to);
        }
        let distance = u16::from_le_bytes(*block.get(at..)?.first_chunk()?);
        at += 2;
        let mut length = usize::from(token & 15);
        if length == 15 {
            length += take_rest(block, &mut at)?;
        }
        length += MATCH_MIN;
        if length > limit.checked_sub(to)? {
            return None;
        }
        repeat(window, to, usize::from(distance), length)?;
        to += length;
    }
}

/// Restores sequences from `block[at..]` on to `window[to..]` as long as their
/// lengths are in the token, the match is not too near, and there is room for the
/// longest such. Returns both places behind them.
#[inline]
fn short_sequences(
    block: &[u8],
    window: &mut Restoring,
    mut at: usize,
    mut to: usize,
    limit: usize,
) -> (usize, usize) {
    while to + SHORT_MAX <= limit
        && let Some(next) = block.get(at..).and_then(|rest| rest.first_chunk::<AHEAD>())
    {
        let literals = usize::from(next[0] >> 4);
        let length = usize::from(next[0] & 15);
        let distance = u16::from_le_bytes([next[literals + 1], next[literals + 2]]);
        let begin = to + literals;
        let (source, before) = (begin as u16).overflowing_sub(distance);
        if literals == 15 || length == 15 || usize::from(distance) < STEP || before {
            break;
        }
        copy::<CHUNK>(&next[1..], window, to as u16);
        // A step may begin with what the one before it wrote.
        for done in [0, STEP, 2 * STEP] {
            let from = usize::from(source) + done;
            let Some(step) = window[from..].first_chunk::<STEP>().copied() else {
                return (at, to);
            };
            copy::<STEP>(&step, window, begin as u16 + done as u16);
        }
        at += literals + 3;
        to = begin + length + MATCH_MIN;
    }
    (at, to)
}

/// Copies the first `N` bytes of `source` to the window.
#[inline]
fn copy<const N: usize>(source: &[u8], window: &mut Restoring, to: u16) {
    let target = window[usize::from(to)..].first_chunk_mut::<N>();
    if let (Some(source), Some(target)) = (source.first_chunk::<N>(), target) {
        *target = *source;
    }
}

#[inline]
fn take_rest(block: &[u8], at: &mut usize) -> Option<usize> {
    let mut length = 0;
    loop {
        let byte = *block.get(*at)?;
        *at += 1;
        length += usize::from(byte);
        if byte < 255 {
            return Some(length);
        }
    }
}

/// Copies `length` bytes from `distance` before `to` to it; they may overlap.
#[inline]
fn repeat(window: &mut Restoring, mut to: usize, distance: usize, length: usize) -> Option<()> {
    let mut from = to.checked_sub(distance)?;
    let end = to + length;
    if distance >= CHUNK && end + CHUNK <= window.len() {
        while to < end {
            let chunk: [u8; CHUNK] = *window.get(from..)?.first_chunk()?;
            *window.get_mut(to..)?.first_chunk_mut()? = chunk;
            from += CHUNK;
            to += CHUNK;
        }
        return Some(());
    }
    if distance == 0 {
        return None;
    }
    while to < end {
        let byte = *window.get(from)?;
        *window.get_mut(to)? = byte;
        from += 1;
        to += 1;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Text that repeats itself and the dictionary now and then.
    fn text(dictionary: &[u8], pieces: &[(usize, usize, u8)]) -> Vec<u8> {
        let mut text = Vec::new();
        for &(at, length, byte) in pieces {
            match (byte % 4, dictionary.len(), text.len()) {
                (0, 1.., _) => {
                    let at = at % dictionary.len();
                    let end = dictionary.len().min(at + length);
                    text.extend_from_slice(&dictionary[at..end]);
                }
                (1, _, 1..) => {
                    let at = at % text.len();
                    (at..at + length).for_each(|at| text.push(text[at]));
                }
                (2, _, _) => text.extend((0..length).map(|i| ((at * i) >> 3) as u8 ^ byte)),
                _ => text.resize(text.len() + length, byte),
            }
        }
        text
    }

    fn packed(dictionary: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut window: Window = [0xEE; _];
        let from = dictionary.len();
        let end = from + text.len();
        window[..from].copy_from_slice(dictionary);
        window[from..end].copy_from_slice(text);
        let mut out = vec![0; text.len()];
        let mut table = preset(&window, from);
        let length = compress(&window, from..end, &mut table, &mut out)?;
        out.truncate(length);
        Some(out)
    }

    fn restored(dictionary: &[u8], block: &[u8], length: usize) -> Option<Vec<u8>> {
        let from = dictionary.len();
        let mut window: Restoring = [0xEE; _];
        window[..from].copy_from_slice(dictionary);
        let end = decompress(block, &mut window, from, from + length)?;
        assert_eq!(&window[..from], dictionary, "left as it was");
        Some(window[from..end].to_vec())
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            dictionary in vec(any::<u8>(), 0..4096),
            pieces in vec((0_usize..5000, 0_usize..300, any::<u8>()), 0..60),
        ) {
            let text = text(&dictionary, &pieces);
            if let Some(block) = packed(&dictionary, &text) {
                prop_assert_eq!(restored(&dictionary, &block, text.len()), Some(text.clone()));
                if let Some(less) = text.len().checked_sub(1) {
                    prop_assert_eq!(restored(&dictionary, &block, less), None);
                }
                // It is LZ4 to another library.
                let theirs = lz4_flex::block::decompress_with_dict(&block, text.len(), &dictionary);
                prop_assert_eq!(theirs.ok(), Some(text.clone()));
            }
            let theirs = lz4_flex::block::compress_with_dict(&text, &dictionary);
            prop_assert_eq!(restored(&dictionary, &theirs, text.len()), Some(text));
        }

        #[test]
        fn anything_at_all_is_read_without_harm(
            dictionary in vec(any::<u8>(), 0..64),
            block in vec(any::<u8>(), 0..300),
            limit in 0_usize..400,
        ) {
            let ours = restored(&dictionary, &block, limit);
            prop_assert!(ours.is_none_or(|text| text.len() <= limit));
        }

        #[test]
        fn damaged_blocks_are_read_without_harm(
            pieces in vec((0_usize..500, 0_usize..80, any::<u8>()), 1..30),
            at in any::<prop::sample::Index>(),
            flip in 1_u8..,
        ) {
            let dictionary = b"a dictionary of a few words, few words".as_slice();
            let text = text(dictionary, &pieces);
            if let Some(mut block) = packed(dictionary, &text) && !block.is_empty() {
                let at = at.index(block.len());
                block[at] ^= flip;
                let ours = restored(dictionary, &block, text.len());
                prop_assert!(ours.is_none_or(|ours| ours.len() <= text.len()));
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_given_up() {
        assert_eq!(packed(b"", b"abcdefgh"), None);
        assert_eq!(packed(b"", b""), None);
        let same = packed(b"", &[7; 4000]).expect("shrinks");
        assert!(same.len() < 40);
        // With a dictionary that has all of it.
        let words: Vec<u8> = (0..500_u32)
            .flat_map(|n| n.wrapping_mul(n * 77).to_le_bytes())
            .collect();
        let short = packed(&words, &words[100..1100]).expect("shrinks");
        assert!(short.len() < 40, "{}", short.len());
    }
}
