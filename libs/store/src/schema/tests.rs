use super::*;

const ONE: &[u8] = b"one";
const TWO: &[u8] = b"two";

fn applied(version: i64, checksum: &[u8]) -> Applied {
    Applied {
        version,
        success: true,
        checksum: checksum.to_vec(),
    }
}

#[test]
fn the_embedded_migrations_are_numbered_without_a_gap() {
    let versions: Vec<i64> = embedded().iter().map(|(version, _)| *version).collect();
    assert!(!versions.is_empty());
    assert_eq!(first_gap(versions.iter().copied()), None, "{versions:?}");
}

#[test]
fn equal_sets_are_fine() {
    judge(&[(1, ONE), (2, TWO)], &[applied(1, ONE), applied(2, TWO)]).unwrap();
}

#[test]
fn a_hole_in_the_embedded_numbers_is_found_even_on_an_empty_database() {
    let error = judge(&[(1, ONE), (3, TWO)], &[]).unwrap_err();
    assert!(matches!(error, Error::SchemaGap { missing: 2 }), "{error}");
    let error = judge(&[(2, ONE)], &[]).unwrap_err();
    assert!(matches!(error, Error::SchemaGap { missing: 1 }), "{error}");
}

#[test]
fn a_hole_in_the_applied_numbers_is_found() {
    let error = judge(&[(1, ONE), (2, TWO)], &[applied(2, TWO)]).unwrap_err();
    assert!(matches!(error, Error::SchemaGap { missing: 1 }), "{error}");
}

#[test]
fn a_newer_schema_is_named_before_anything_else() {
    let changed_and_newer = [applied(1, b"other"), applied(4, TWO)];
    let error = judge(&[(1, ONE), (2, TWO)], &changed_and_newer).unwrap_err();
    assert!(
        matches!(error, Error::SchemaNewer { found: 4, known: 2 }),
        "{error}"
    );
}

#[test]
fn a_migration_that_is_not_applied_is_named() {
    let error = judge(&[(1, ONE), (2, TWO)], &[]).unwrap_err();
    assert!(matches!(error, Error::MigrationMissing { version: 1 }), "{error}");
    let error = judge(&[(1, ONE), (2, TWO)], &[applied(1, ONE)]).unwrap_err();
    assert!(matches!(error, Error::MigrationMissing { version: 2 }), "{error}");
}

#[test]
fn a_changed_and_a_half_applied_migration_are_named() {
    let error = judge(&[(1, ONE)], &[applied(1, b"other")]).unwrap_err();
    assert!(matches!(error, Error::MigrationChanged { version: 1 }), "{error}");
    let half = Applied {
        success: false,
        ..applied(1, ONE)
    };
    let error = judge(&[(1, ONE)], &[half]).unwrap_err();
    assert!(matches!(error, Error::MigrationDirty { version: 1 }), "{error}");
}
