//! Which start of the operating system this is: Linux says so in a file of its own.

/// The number that this start of the system has.
#[cfg(target_os = "linux")]
pub(super) fn id() -> Option<[u8; 16]> {
    use std::sync::OnceLock;

    static ID: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    *ID.get_or_init(|| parse(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn id() -> Option<[u8; 16]> {
    None
}

/// A UUID in hexadecimal, with hyphens anywhere.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has the file")
)]
fn parse(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().split('-').collect();
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (is_hex && digits.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_uuid_is_read_and_nothing_else() {
        let id = parse("0f0e0d0c-0b0a-0908-0706-050403020100\n").expect("a UUID");
        assert_eq!((id[0], id[15]), (0x0f, 0));
        for wrong in ["", "0f0e", "+f0e0d0c0b0a09080706050403020100", "no id"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
