//! Compiles `wakelog/v1/*.proto` with protox, so that no protoc has to be installed.

use std::env;
use std::path::PathBuf;

const PROTO_FILES: &[&str] = &[
    "wakelog/v1/agent.proto",
    "wakelog/v1/archive.proto",
    "wakelog/v1/fold_state.proto",
    "wakelog/v1/record.proto",
    "wakelog/v1/refusal.proto",
    "wakelog/v1/relay.proto",
    "wakelog/v1/sessions.proto",
    "wakelog/v1/token.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto_root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=wakelog");
    let descriptors = protox::compile(PROTO_FILES, [&proto_root])?;
    let services = env::var_os("CARGO_FEATURE_SERVICES").is_some();
    tonic_prost_build::configure()
        .build_client(services)
        .build_server(services)
        // Sorted maps: the same message always has the same bytes.
        .btree_map(".")
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
