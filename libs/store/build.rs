//! Rebuilds the crate when a migration is added: the embedded set is read at compile time.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
