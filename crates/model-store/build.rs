//! Selects the scheduler's threading primitives in the store's sources.

fn main() {
    println!("cargo::rustc-cfg=fulgurite_model");
    println!("cargo::rerun-if-changed=build.rs");
}
