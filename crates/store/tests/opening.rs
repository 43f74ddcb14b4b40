//! What opening a store costs.

#[cfg(target_os = "linux")]
mod memory {
    use fulgurite_store::{Options, Store};

    /// Bytes of memory that the process has, as the kernel counts them.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
        kibibytes.parse::<u64>().unwrap() * 1_024
    }

    /// Each opening wrote zeros over the whole cache, with an allocator that gives
    /// nothing larger than a word aligned and zeroed for free, as the system's: 64 MiB
    /// and 35 ms, for a database of two rows.
    #[test]
    fn a_cache_takes_no_memory_before_it_is_used() {
        let options = Options {
            cache_bytes: 1 << 30,
            ..Options::default()
        };
        let before = resident();
        let store = Store::in_memory(options).unwrap();
        let grown = resident() - before;
        assert!(grown < 4 << 20, "{grown} bytes for an empty store");
        drop(store);
    }
}
