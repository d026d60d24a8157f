//! What the user types to run this program again.

use std::path::Path;

const NAME: &str = "wakelog";

/// Its name if it is on the search path, else where it is, seen from the current folder.
pub(super) fn name() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).any(|folder| folder.join(NAME).is_file());
    match (on_path, std::env::current_exe()) {
        (false, Ok(program)) => seen_from_here(&program),
        _ => NAME.to_owned(),
    }
}

fn seen_from_here(program: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = match program.strip_prefix(&here) {
        // Without a folder before it, a shell would look for it on the search path.
        Ok(below) if below.components().count() > 1 => below,
        _ => program,
    };
    shown.display().to_string()
}
